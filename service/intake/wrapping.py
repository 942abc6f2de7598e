"""Logs that wrap conversations: what a model was given and replied, as tools of observation record it.

A wrapper's reader finds the exchanges with a model, and the runs of tools beside them. The exchange that was given the most
messages (of several, the last one) is the conversation: its messages and its reply are read in whichever format they are in.
All else is held against it. A call or a text of another exchange that the conversation does not have, and a tool's run whose
call or result it does not have, are unread.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.pointers import escape_token, split_pointer
from service.core.trace import ToolCall, Trace, Unread
from service.errors import InputError, Problem
from service.intake.accounting import Members, account_members, find_calls, lose_value, members_of
from service.intake.build import Record, Transcript
from service.intake.offers import Request, add_offers
from service.intake.shapes import pick_sample
from service.intake.speech import Given, find_object, list_objects

ReadAny = Callable[[Given], Trace]
"""Reads a record that names no format."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a model was given and what it replied, in any of the forms in which logs have them, and where both stand."""

    given: JsonValue
    given_at: str
    reply: JsonValue
    reply_at: str
    tools: JsonValue = None
    tools_at: str = ""
    sample: int | None = None
    """Which of several replies is read, from 0. None: the first, and the others are unread."""


class ToolRun(NamedTuple):
    """A tool's own entry in a log."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Wrapped:
    """What the reader of a wrapper found. `lost` was told of what it does not read."""

    exchanges: Sequence[Exchange]
    runs: Sequence[ToolRun] = ()
    id: str | None = None
    lost: Transcript = field(default_factory=Transcript)
    rest: list[tuple[JsonValue, str]] = field(default_factory=list[tuple[JsonValue, str]])
    """What else may hold calls, which are those of the conversation again as a rule, and its pointers."""


class Inner(NamedTuple):
    """A record that names no format, and the pointers of its parts in the source."""

    record: dict[str, JsonValue]
    places: Mapping[str, str]

    def locate(self, path: str) -> str:
        """The pointer in the source of what stands at `path` in the record."""
        head = path
        while head and head not in self.places:
            head = head.rpartition("/")[0]
        return self.places.get(head, "") + path[len(head) :]


def read_wrapped(record: Record, wrapped: Wrapped, read_any: ReadAny) -> Trace:
    """The trace of the conversation that a log holds.

    Raises InputError: no exchange with a model, messages that no format has, and what the reader of their format raises.
    """
    if not wrapped.exchanges:
        raise InputError.at("", "expected what a model was given and what it replied")
    lost = wrapped.lost
    chosen = max(range(len(wrapped.exchanges)), key=lambda at: (_count(wrapped.exchanges[at]), at))
    inner = _join(wrapped.exchanges[chosen], lost)
    trace = _read(inner, read_any)
    if len(wrapped.exchanges) > 1:
        trace = _add_offers(trace, wrapped.exchanges, wrapped.exchanges[chosen], read_any)
    for at, exchange in enumerate(wrapped.exchanges):
        if at != chosen:
            _account_exchange(exchange, trace, lost, read_any)
            wrapped.rest.append((exchange.given, exchange.given_at))
    for value, path in wrapped.rest:
        _account_rest(value, path, trace, lost)
    _account_runs(wrapped.runs, trace, lost)
    kept = lost.trace(record, trace_id=wrapped.id, tools=None)
    unread = (*[_move(item, inner) for item in trace.unread], *kept.unread)
    return replace(trace, id=wrapped.id, format=record["format"], raw=kept.raw, unread=unread)


def _read(inner: Inner, read_any: ReadAny) -> Trace:
    try:
        return read_any(inner.record)
    except InputError as error:
        raise InputError([Problem(inner.locate(one.path), one.message) for one in error.problems]) from None


def _move(unread: Unread, inner: Inner) -> Unread:
    return replace(unread, path=inner.locate(unread.path))


def _add_offers(trace: Trace, exchanges: Sequence[Exchange], last: Exchange, read_any: ReadAny) -> Trace:
    """The trace with what the requests list that the last one continues, if they do not all list the same."""
    said = [_strip(message) for message, _ in _list_given(last.given, last.given_at)[1]]
    told = [
        (len(given), exchange, [rest, exchange.tools])
        for exchange in exchanges
        for rest, given in [_list_plain(exchange)]
        if given and given == said[: len(given)]
    ]
    if all(listed == told[0][2] for _, _, listed in told):
        return trace
    asked = [_read_asked(exchange, read_any) for _, exchange, _ in sorted(told, key=lambda one: one[0])]
    return add_offers(trace, asked, [step.call.name for step in trace.steps[: asked[0].calls]])


def _list_plain(exchange: Exchange) -> tuple[dict[str, JsonValue], list[JsonValue]]:
    """What stands beside the messages that a model was given, and what each of these says."""
    rest, given = _list_given(exchange.given, exchange.given_at)
    return {name: value for name, (value, _) in rest.items()}, [_strip(message) for message, _ in given]


def _read_asked(exchange: Exchange, read_any: ReadAny) -> Request:
    try:
        asked = read_any(_join(replace(exchange, reply=None), Transcript()).record)
    except InputError:
        return Request(0, 0, None)
    return Request(len(asked.steps), asked.turns, asked.tools)


Placed = tuple[JsonValue, str]


def _count(exchange: Exchange) -> int:
    return len(_list_given(exchange.given, exchange.given_at)[1])


def _join(exchange: Exchange, lost: Transcript) -> Inner:
    """The messages given and the reply as one record, with whatever stands beside the messages."""
    rest, given = _list_given(exchange.given, exchange.given_at)
    reply = list(_list_reply(exchange.reply, exchange.reply_at, lost, exchange.sample))
    messages = reply if _repeats(given, reply) else [*given, *reply]
    key = _name_messages(messages)
    record: dict[str, JsonValue] = {name: value for name, (value, _) in rest.items()}
    places = {f"/{escape_token(name)}": path for name, (_, path) in rest.items()}
    if exchange.tools is not None and "tools" not in record:
        record["tools"], places["/tools"] = exchange.tools, exchange.tools_at
    record[key] = [value for value, _ in messages]
    places |= {f"/{key}/{index}": path for index, (_, path) in enumerate(messages)}
    return Inner(record, places)


def _list_given(value: JsonValue, path: str) -> tuple[dict[str, Placed], list[Placed]]:
    """What stands beside the messages that a model was given, by its name, and the messages."""
    if isinstance(value, str):
        return {}, [({"role": "user", "content": value}, path)]
    if isinstance(value, list):
        if len(value) == 1 and isinstance(value[0], list):  # a batch of one
            return _list_given(value[0], f"{path}/0")
        return {}, [_place(item, f"{path}/{index}") for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return {}, []
    key = next((key for key in ("messages", "contents", "input") if isinstance(value.get(key), (list, str))), None)
    if key is None:
        return {}, [(value, path)] if "role" in value or "lc" in value else []
    rest = {
        name: (item, f"{path}/{escape_token(name)}")
        for name, item in value.items()
        if name not in (key, "format", "id", "state")
    }
    return rest, _list_given(value[key], f"{path}/{key}")[1]


def _place(item: JsonValue, path: str) -> Placed:
    return (item, path) if isinstance(item, dict) else ({"role": "user", "content": item}, path)


REPLY = members_of(
    "a reply",
    "",
    "id object created created_at model usage usage_metadata system_fingerprint service_tier finish_reason index logprobs "
    "generation_info llm_output run type text provider moderation stop_reason provider_specific_fields "
    "finishReason safetyRatings usageMetadata modelVersion responseId avgLogprobs citationMetadata groundingMetadata "
    "tokenCount sdkHttpResponse automaticFunctionCallingHistory stopReason metrics trace additionalModelResponseFields "
    "performanceConfig serviceTier completed_at status error incomplete_details instructions max_output_tokens max_tool_calls "
    "parallel_tool_calls previous_response_id reasoning temperature tool_choice tools top_p top_logprobs truncation user "
    "metadata background conversation prompt prompt_cache_key prompt_cache_retention safety_identifier store billing "
    "frequency_penalty presence_penalty output_text",
)
_HOLDERS = ("choices", "generations", "candidates", "messages", "message", "output")
"""Members that hold a reply or several, the outer ones first."""


def _list_reply(value: JsonValue, path: str, lost: Transcript, sample: int | None = None) -> Iterator[Placed]:
    """The messages of a reply, out of whatever holds them. Further samples of it are told to `lost`, unless one is chosen."""
    if isinstance(value, str):
        yield {"role": "assistant", "content": value}, path
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _list_reply(item, f"{path}/{index}", lost)
    elif isinstance(value, dict):
        holder = None if "role" in value or "lc" in value else next((key for key in _HOLDERS if value.get(key)), None)
        if holder == "output" and isinstance(value.get("type"), str) and value["type"] != "message":
            holder = None  # an item of the Responses API, whose output is its own
        if holder is None and "parts" in find_object(value, "content"):  # one of Gemini's candidates
            account_members(lost, value, _without(REPLY, "content"), path)
            yield find_object(value, "content"), f"{path}/content"
        elif holder is None:
            yield from _list_message(value, path, lost)
        else:
            account_members(lost, value, _without(REPLY, holder), path)
            yield from _list_held(value[holder], f"{path}/{holder}", lost, sample, sampled=holder in _HOLDERS[:3])


def _without(members: Members, name: str) -> Members:
    return replace(members, idle=members.idle | {name})


def _list_message(value: dict[str, JsonValue], path: str, lost: Transcript) -> Iterator[Placed]:
    if value.keys() & {"role", "lc", "type", "content", "kind"}:
        yield value if value.keys() & {"role", "lc", "type", "kind"} else {"role": "assistant", **value}, path
    elif value:
        lose_value(lost, value, path, "a reply of no known form", holds="text")


def _list_held(value: JsonValue, path: str, lost: Transcript, sample: int | None, *, sampled: bool) -> Iterator[Placed]:
    if not sampled or not isinstance(value, list):
        yield from _list_reply(value, path, lost)
        return
    chosen = 0 if sample is None or not value else pick_sample(sample, len(value), path)
    for index, item in enumerate(value):
        if index != chosen and sample is None:
            lose_value(lost, item, f"{path}/{index}", "another sample of a reply")
        elif index == chosen and isinstance(item, list):
            yield from _list_held(item, f"{path}/{index}", lost, None, sampled=True)
        elif index == chosen:
            yield from _list_reply(item, f"{path}/{index}", lost)


def _repeats(given: Sequence[Placed], reply: Sequence[Placed]) -> bool:
    """Whether a reply is the whole conversation, as the state of an agent is."""
    return 0 < len(given) < len(reply) and all(
        _strip(one) == _strip(other) for (one, _), (other, _) in zip(given, reply, strict=False)
    )


def _strip(message: JsonValue) -> JsonValue:
    if not isinstance(message, dict):
        return message
    inner = next((message[key] for key in ("kwargs", "data") if isinstance(message.get(key), dict)), message)
    return [inner.get("content"), inner.get("tool_calls") or None] if isinstance(inner, dict) else inner


def _name_messages(messages: Sequence[Placed]) -> str:
    """The name that the format of these messages has for them."""
    objects = [message for message, _ in messages if isinstance(message, dict)]
    if any("parts" in message and message.keys() <= {"parts", "role"} for message in objects):
        return "contents"
    return "input" if any(map(_is_item, objects)) else "messages"


def _is_item(message: Given) -> bool:
    """Whether it is an item of the Responses API."""
    kind = str(message.get("type"))
    parts = (part for part in list_objects(message.get("content")) if part.get("type") in ("input_text", "output_text"))
    return kind == "reasoning" or kind.endswith(("_call", "_call_output")) or any(parts)


def _account_exchange(exchange: Exchange, trace: Trace, lost: Transcript, read_any: ReadAny) -> None:
    """Tells of the calls and texts of an exchange's reply that the conversation does not have."""
    reply = list(_list_reply(exchange.reply, exchange.reply_at, lost, exchange.sample))
    if not reply:
        return
    key = _name_messages(reply)
    inner = Inner(
        {key: [value for value, _ in reply]}, {f"/{key}/{index}": path for index, (_, path) in enumerate(reply)}
    )
    other = _read(inner, read_any)
    known = Counter(_identify(step.call) for step in trace.steps)
    for step in other.steps:
        known.subtract([_identify(step.call)])
        if known[_identify(step.call)] < 0:
            lost.lose(
                "call", exchange.reply_at, f"a call of {step.call.name[:60]!r} that the conversation does not have"
            )
    texts = {message.text for message in trace.messages}
    for message in other.messages:
        if message.text not in texts:
            lost.lose("other", exchange.reply_at, "a text that the conversation does not have")
    for unread in other.unread:
        if unread.kind == "call":
            lost.lose("call", inner.locate(unread.path), "a call")


def _account_rest(value: JsonValue, path: str, trace: Trace, lost: Transcript) -> None:
    """Tells of calls that stand in what is not read and that the conversation does not have."""
    known = {step.call.id or step.call.name for step in trace.steps}
    for place in find_calls(value, path):
        if known.isdisjoint(_list_texts(value, split_pointer(place[len(path) :]))):
            lost.lose("call", place, "a call that the conversation does not have")


def _list_texts(value: JsonValue, way: Sequence[str]) -> list[str]:
    """The texts in the last two objects on a way: Chat Completions has a call's id outside of its function."""
    passed: list[JsonValue] = [value]
    for token in way:
        here = passed[-1]
        passed.append(here[int(token)] if isinstance(here, list) else here[token] if isinstance(here, dict) else None)
    return [item for here in passed[-2:] if isinstance(here, dict) for item in here.values() if isinstance(item, str)]


def _identify(call: ToolCall) -> str:
    return call.id or json.dumps([call.name, call.raw], sort_keys=True, default=str)


def _account_runs(runs: Sequence[ToolRun], trace: Trace, lost: Transcript) -> None:
    """Tells of tools' runs that the conversation does not have the call or the result of."""
    made = Counter(step.call.name for step in trace.steps)
    answered = Counter(step.call.name for step in trace.steps if step.result is not None)
    for name, path in runs:
        if answered[name] > 0:
            answered[name] -= 1
        elif made[name] > 0:
            lost.lose("result", path, f"a run of {name[:60]!r} whose result the conversation does not have")
        else:
            lost.lose("call", path, f"a run of {name[:60]!r} that the conversation does not have")
        made[name] -= 1
