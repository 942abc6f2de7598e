"""Read logs that wrap conversations: what a model was sent and replied, as observability tools record it.

The reader of a wrapper finds the exchanges with a model, and the runs of tools beside them. The exchange with the most
input messages (the last of several) is the conversation: its messages and reply are read in whatever format they have.
Everything else is compared with it: a call or text of another exchange that the conversation lacks, and a tool run
whose call or result it lacks, are unread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.members import JsonObject, find_object, find_text, list_objects, read_type
from service.core.json.pointers import escape_token
from service.core.trace import Trace
from service.errors import InputError, Problem
from service.intake.build import Record, Request, Transcript, add_offers
from service.intake.log_messages import HOLDERS, LocatedMessage, list_input_messages, list_reply_messages, strip_message
from service.intake.pairing import Answers
from service.intake.unread_parts.endings import Ending, list_endings
from service.intake.unread_parts.repeated_calls import KnownCalls, PossibleCall
from service.intake.unread_parts.suspects import clip, list_possible_calls

ReadAny = Callable[[JsonObject], Trace]
"""Reads a record that names no format."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a model was sent and what it replied, in any form that logs use, with the pointers of both."""

    input: JsonValue
    input_path: str
    reply: JsonValue
    reply_path: str
    tools: JsonValue = None
    tools_path: str = ""
    sample: int | None = None
    """Index of the reply to read, from 0. None: the first; the others are unread."""
    error_path: str = ""
    """Pointer of what says that the request failed; "" if it did not."""


class ToolRun(NamedTuple):
    """A tool's own entry in a log."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class WrapperContents:
    """What the reader of a wrapper found. `notes` has what it does not read."""

    exchanges: Sequence[Exchange]
    runs: Sequence[ToolRun] = ()
    id: str | None = None
    notes: Transcript = field(default_factory=Transcript)
    extra_values: list[tuple[JsonValue, str]] = field(default_factory=list[tuple[JsonValue, str]])
    """Other values that may hold calls, usually those of the conversation again, with their pointers."""
    packed_values: list[tuple[JsonValue, str]] = field(default_factory=list[tuple[JsonValue, str]])
    """The same for values in which calls may stand in texts and under dotted keys."""


class InnerRecord(NamedTuple):
    """A record that names no format, with the pointers of its parts in the source."""

    record: dict[str, JsonValue]
    places: Mapping[str, str]

    def locate(self, path: str) -> str:
        """Translate a pointer into the record to one into the source."""
        head = path
        while head and head not in self.places:
            head = head.rpartition("/")[0]
        return self.places.get(head, "") + path[len(head) :]


def read_wrapper(record: Record, contents: WrapperContents, read_any: ReadAny) -> Trace:
    """Build the trace of the conversation in a log.

    Raises InputError: no exchange with a model, messages in no known format, and whatever the reader of their format
    raises.
    """
    if not contents.exchanges:
        raise InputError.at("", "expected a model's input and its reply")
    notes = contents.notes
    chosen, conversation, trace = _choose(contents.exchanges, notes, read_any)
    if len(contents.exchanges) > 1:
        trace = _add_offers(trace, contents.exchanges, contents.exchanges[chosen], read_any)
    known = KnownCalls(step.call for step in trace.steps)
    own = _read_replies([(conversation.reply, "")], read_any, notes)
    others = [exchange for at, exchange in enumerate(contents.exchanges) if at != chosen]
    replies = _read_replies(
        [(list(list_reply_messages(one.reply, one.reply_path, notes, one.sample)), one.reply_path) for one in others],
        read_any,
        notes,
    )
    _note_failure(contents.exchanges[chosen], own, notes)
    if not (trace.messages or trace.unread):
        notes.miss_reply(_find_place(contents.exchanges[chosen]), "an exchange of which the log holds nothing")
    # A call without an id counts as often as all replies together have it.
    mentions = [PossibleCall(step.call, one.path) for one in (*own, *replies) for step in one.trace.steps]
    for call, path in known.take_new(mentions):
        notes.note_unread("call", path, f"a call of {clip(call.name)!r} that the conversation does not have")
    _note_texts_missing(replies, trace, notes)
    mention_lists = [list_possible_calls(value, path) for value, path in contents.extra_values]
    mention_lists += [list_possible_calls(one.input, one.input_path) for one in others]
    mention_lists += [list_possible_calls(conversation.repeated, contents.exchanges[chosen].input_path)]
    mention_lists += [list_possible_calls(value, path, packed=True) for value, path in contents.packed_values]
    for mentions in mention_lists:
        for call in known.take_new(mentions):
            notes.note_unread("call", call.path, "a call that the conversation does not have")
    _note_runs_missing(contents.runs, trace, notes)
    answers: Answers = {step.index: step.result for step in trace.steps if step.result is not None}
    missing, ignored = notes.list_unread([step.call for step in trace.steps], trace.tools, answers)
    unread = (*[replace(item, path=conversation.inner.locate(item.path)) for item in trace.unread], *missing)
    return replace(
        trace, id=contents.id, format=record["format"], raw=record, unread=unread, ignored=(*trace.ignored, *ignored)
    )  # pyright: ignore[reportArgumentType] (a validated record is JSON)


def _choose(exchanges: Sequence[Exchange], notes: Transcript, read_any: ReadAny) -> tuple[int, _Conversation, Trace]:
    """Read the conversation: the exchange with the most input messages that can be read; one that cannot is unread.

    Raises InputError: none can be read.
    """
    fault: InputError | None = None
    counts = [len(list_input_messages(one.input, one.input_path)[1]) for one in exchanges]
    for at in sorted(range(len(exchanges)), key=lambda at: (counts[at], at), reverse=True):
        conversation = _join_conversation(exchanges[at], notes)
        try:
            trace = _read(conversation.inner, read_any)
        except InputError as error:
            fault = fault or error
            notes.miss_reply(
                _find_place(exchanges[at]), f"an exchange that is not readable ({error.problems[0].message})"
            )
        else:
            return at, conversation, trace
    raise fault or InputError.at("", "expected a model's input and its reply")


def _find_place(exchange: Exchange) -> str:
    return exchange.input_path if exchange.reply is None else exchange.reply_path


def _read(inner: InnerRecord, read_any: ReadAny) -> Trace:
    try:
        return read_any(inner.record)
    except InputError as error:
        raise InputError([Problem(inner.locate(one.path), one.message) for one in error.problems]) from None


def _add_offers(trace: Trace, exchanges: Sequence[Exchange], last: Exchange, read_any: ReadAny) -> Trace:
    """Return the trace with the tools listed by the requests that the last one continues, unless all list the same."""
    messages = [strip_message(one) for one, *_ in list_input_messages(last.input, last.input_path)[1]]
    earlier = [
        (len(own_messages), exchange, [rest, exchange.tools])
        for exchange in exchanges
        for rest, own_messages in [_list_plain(exchange)]
        if own_messages and own_messages == messages[: len(own_messages)]
    ]
    if all(listed == earlier[0][2] for _, _, listed in earlier):
        return trace
    requests = [_read_request(exchange, read_any) for _, exchange, _ in sorted(earlier, key=lambda one: one[0])]
    return add_offers(trace, requests, [step.call.name for step in trace.steps[: requests[0].calls]])


def _list_plain(exchange: Exchange) -> tuple[dict[str, JsonValue], list[JsonValue]]:
    """Return the members beside the messages that a model was sent, and what each message says."""
    rest, messages = list_input_messages(exchange.input, exchange.input_path)
    return {name: value for name, (value, _) in rest.items()}, [strip_message(message) for message, *_ in messages]


def _read_request(exchange: Exchange, read_any: ReadAny) -> Request:
    try:
        trace = read_any(_join_conversation(replace(exchange, reply=None), Transcript()).inner.record)
    except InputError:
        return Request(0, 0, None)
    return Request(len(trace.steps), trace.turns, trace.tools)


class _Conversation(NamedTuple):
    """A conversation as one record, and the messages of its reply unless that repeats the whole conversation."""

    inner: InnerRecord
    reply: Sequence[LocatedMessage]
    repeated: JsonValue
    """The input, if it is not read: the reply repeats it all, or it holds no messages."""


def _join_conversation(exchange: Exchange, notes: Transcript) -> _Conversation:
    """Combine input messages, reply, and the members beside the messages into one record."""
    rest, inputs = list_input_messages(exchange.input, exchange.input_path)
    reply = list(list_reply_messages(exchange.reply, exchange.reply_path, notes, exchange.sample))
    whole = 0 < len(inputs) < len(reply) and all(  # as an agent's state does
        strip_message(one.value) == strip_message(other.value) for one, other in zip(inputs, reply, strict=False)
    )
    inner = _enclose(reply if whole else [*inputs, *reply])
    record: dict[str, JsonValue] = {name: value for name, (value, _) in rest.items()}
    places = {f"/{escape_token(name)}": path for name, (_, path) in rest.items()}
    if exchange.tools is not None and "tools" not in record:
        record["tools"], places["/tools"] = exchange.tools, exchange.tools_path
    return _Conversation(
        InnerRecord(record | inner.record, {**places, **inner.places}),
        () if whole else reply,
        exchange.input if whole or not inputs else None,
    )


def _enclose(messages: Sequence[LocatedMessage]) -> InnerRecord:
    """Put messages into a record, in the member that their format has for them."""
    objects = [one.value for one in messages if isinstance(one.value, dict)]
    key = "input" if any(map(_is_item, objects)) else "messages"
    if any("parts" in message and message.keys() <= {"parts", "role"} for message in objects):
        key = "contents"
    places = {f"/{key}/{index}": one.path for index, one in enumerate(messages)}
    places |= {
        f"/{key}/{at}/content": one.content_path for at, one in enumerate(messages) if one.content_path is not None
    }
    return InnerRecord({key: [one.value for one in messages]}, places)


def _is_item(message: JsonObject) -> bool:
    """Whether a message is an item of the Responses API."""
    kind = read_type(message)
    parts = (part for part in list_objects(message.get("content")) if part.get("type") in ("input_text", "output_text"))
    return kind == "reasoning" or kind.endswith(("_call", "_call_output")) or any(parts)


class _Reply(NamedTuple):
    """A reply read apart from its conversation."""

    inner: InnerRecord
    trace: Trace
    path: str


def _read_replies(
    replies: Iterable[tuple[Sequence[LocatedMessage], str]], read_any: ReadAny, notes: Transcript
) -> list[_Reply]:
    """Read replies apart from their conversations; one that is not readable is unread."""
    read: list[_Reply] = []
    for messages, path in replies:
        inner = _enclose(messages)
        try:
            read += [_Reply(inner, _read(inner, read_any), path)] if messages else []
        except InputError as error:
            notes.miss_reply(path, f"a reply that is not readable ({error.problems[0].message})")
    return read


def _note_failure(exchange: Exchange, own: Sequence[_Reply], notes: Transcript) -> None:
    """Report what the conversation's last reply lacks, if it failed or says that it has more than the log holds."""
    if exchange.error_path and not exchange.reply:
        notes.miss_reply(exchange.error_path, "the reply of a request that failed")
        return
    called = any(one.trace.steps or any(part.kind == "call" for part in one.trace.unread) for one in own)
    for ending in _list_endings(exchange.reply, exchange.reply_path, exchange.sample or 0):
        notes.end_with(ending, called=called)


def _list_endings(value: JsonValue, path: str, sample: int) -> Iterator[Ending]:
    """Iterate over how a reply ended according to what wraps its message.

    The message's own ending is for its reader.
    """
    if isinstance(value, list):
        if sample < len(value):
            yield from _list_endings(value[sample], f"{path}/{sample}", 0)
        return
    if not isinstance(value, dict) or value.keys() & {"role", "lc"}:
        return
    if value.get("status") in ("failed", "cancelled"):
        yield Ending("failed", f"{path}/status")
        return
    yield from list_endings(value, path)
    for name in ("incomplete_details", "generation_info"):
        details = find_object(value, name)
        reason = find_text(details, "reason", "finish_reason")
        if reason:
            yield Ending(reason, f"{path}/{name}")
    holder = next((key for key in HOLDERS[:3] if value.get(key)), None)
    if holder is not None:
        yield from _list_endings(value[holder], f"{path}/{holder}", sample)


def _note_texts_missing(replies: Sequence[_Reply], trace: Trace, notes: Transcript) -> None:
    """Report texts that the conversation lacks, and calls that nobody could read."""
    texts = {message.text for message in trace.messages}
    for one in replies:
        for message in one.trace.messages:
            if message.text not in texts:
                notes.note_unread("other", one.path, "a text that the conversation does not have")
        for unread in one.trace.unread:
            if unread.kind == "call":
                notes.note_unread("call", one.inner.locate(unread.path), "a call")


def _note_runs_missing(runs: Sequence[ToolRun], trace: Trace, notes: Transcript) -> None:
    """Report tool runs whose call or result the conversation lacks."""
    made = Counter(step.call.name for step in trace.steps)
    answered = Counter(step.call.name for step in trace.steps if step.result is not None)
    for name, path in runs:
        if answered[name] > 0:
            answered[name] -= 1
        elif made[name] > 0:
            notes.note_unread("result", path, f"a run of {name[:60]!r} whose result the conversation does not have")
        else:
            notes.note_unread("call", path, f"a run of {name[:60]!r} that the conversation does not have")
        made[name] -= 1
