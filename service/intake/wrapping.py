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

from service.core.json.pointers import escape_token
from service.core.trace import Trace, Unread
from service.errors import InputError, Problem
from service.intake.accounting import Members, clip
from service.intake.build import Record, Transcript
from service.intake.endings import Ending, account_ending, list_endings, lose_reply
from service.intake.held_messages import HOLDERS, Placed, list_given, list_reply, strip_message
from service.intake.known_calls import KnownCalls, list_told, list_unpacked, tell
from service.intake.offers import Request, add_offers
from service.intake.speech import Given, find_object, find_text, list_objects

ReadAny = Callable[[Given], Trace]
"""Reads a record that names no format."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a model was sent and what it replied, in any form that logs use, with the pointers of both."""

    given: JsonValue
    given_at: str
    reply: JsonValue
    reply_at: str
    tools: JsonValue = None
    tools_at: str = ""
    sample: int | None = None
    """Index of the reply to read, from 0. None: the first; the others are unread."""
    failed_at: str = ""
    """Pointer of what says that the request failed; "" if it did not."""


class ToolRun(NamedTuple):
    """A tool's own entry in a log."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Wrapped:
    """What the reader of a wrapper found. `lost` has what it does not read."""

    exchanges: Sequence[Exchange]
    runs: Sequence[ToolRun] = ()
    id: str | None = None
    lost: Transcript = field(default_factory=Transcript)
    rest: list[tuple[JsonValue, str]] = field(default_factory=list[tuple[JsonValue, str]])
    """Other values that may hold calls, usually those of the conversation again, with their pointers."""
    beside: list[tuple[JsonValue, str]] = field(default_factory=list[tuple[JsonValue, str]])
    """The same for values in which calls may stand in texts and under dotted keys."""


def list_beside(given: Given, members: Members, path: str, *but: str) -> Iterator[tuple[JsonValue, str]]:
    """Iterate over the known members of an entry, except those in `but`, with their pointers."""
    names = (members.read | members.idle).difference(but)
    return ((value, f"{path}/{escape_token(name)}") for name, value in given.items() if name in names)


class Inner(NamedTuple):
    """A record that names no format, with the pointers of its parts in the source."""

    record: dict[str, JsonValue]
    places: Mapping[str, str]

    def locate(self, path: str) -> str:
        """Translate a pointer into the record to one into the source."""
        head = path
        while head and head not in self.places:
            head = head.rpartition("/")[0]
        return self.places.get(head, "") + path[len(head) :]


def read_wrapped(record: Record, wrapped: Wrapped, read_any: ReadAny) -> Trace:
    """Build the trace of the conversation in a log.

    Raises InputError: no exchange with a model, messages in no known format, and whatever the reader of their format
    raises.
    """
    if not wrapped.exchanges:
        raise InputError.at("", "expected what a model was given and what it replied")
    lost = wrapped.lost
    chosen = max(range(len(wrapped.exchanges)), key=lambda at: (_count(wrapped.exchanges[at]), at))
    joined = _join(wrapped.exchanges[chosen], lost)
    trace = _read(joined.inner, read_any)
    if len(wrapped.exchanges) > 1:
        trace = _add_offers(trace, wrapped.exchanges, wrapped.exchanges[chosen], read_any)
    known = KnownCalls(step.call for step in trace.steps)
    own = _read_replies([(joined.reply, "")], read_any)
    others = [exchange for at, exchange in enumerate(wrapped.exchanges) if at != chosen]
    replies = _read_replies(
        [(list(list_reply(one.reply, one.reply_at, lost, one.sample)), one.reply_at) for one in others], read_any
    )
    _account_failure(wrapped.exchanges[chosen], own, lost)
    _account_calls([*own, *replies], known, lost)
    _account_texts(replies, trace, lost)
    rest = [list_told(value, path) for value, path in wrapped.rest]
    rest += [list_told(one.given, one.given_at) for one in others]
    rest += [list_told(joined.repeated, wrapped.exchanges[chosen].given_at)]
    rest += [list_unpacked(value, path) for value, path in wrapped.beside]
    for told in rest:
        for call in known.list_unknown(told):
            lost.lose("call", call.path, "a call that the conversation does not have")
    _account_runs(wrapped.runs, trace, lost)
    kept = lost.list_unread([step.call for step in trace.steps])
    unread = (*[_move(item, joined.inner) for item in trace.unread], *kept)
    return replace(trace, id=wrapped.id, format=record["format"], raw=record, unread=unread)  # pyright: ignore[reportArgumentType] (a validated record is JSON)


def _read(inner: Inner, read_any: ReadAny) -> Trace:
    try:
        return read_any(inner.record)
    except InputError as error:
        raise InputError([Problem(inner.locate(one.path), one.message) for one in error.problems]) from None


def _move(unread: Unread, inner: Inner) -> Unread:
    return replace(unread, path=inner.locate(unread.path))


def _add_offers(trace: Trace, exchanges: Sequence[Exchange], last: Exchange, read_any: ReadAny) -> Trace:
    """Return the trace with the tools listed by the requests that the last one continues, unless all list the same."""
    said = [strip_message(message) for message, *_ in list_given(last.given, last.given_at)[1]]
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
    """Return the members beside the messages that a model was sent, and what each message says."""
    rest, given = list_given(exchange.given, exchange.given_at)
    return {name: value for name, (value, _) in rest.items()}, [strip_message(message) for message, *_ in given]


def _read_asked(exchange: Exchange, read_any: ReadAny) -> Request:
    try:
        asked = read_any(_join(replace(exchange, reply=None), Transcript()).inner.record)
    except InputError:
        return Request(0, 0, None)
    return Request(len(asked.steps), asked.turns, asked.tools)


def _count(exchange: Exchange) -> int:
    return len(list_given(exchange.given, exchange.given_at)[1])


class _Joined(NamedTuple):
    """A conversation as one record, and the messages of its reply unless that repeats the whole conversation."""

    inner: Inner
    reply: Sequence[Placed]
    repeated: JsonValue
    """The input messages, if the reply repeats them all and they are not read."""


def _join(exchange: Exchange, lost: Transcript) -> _Joined:
    """Combine input messages, reply, and the members beside the messages into one record."""
    rest, given = list_given(exchange.given, exchange.given_at)
    reply = list(list_reply(exchange.reply, exchange.reply_at, lost, exchange.sample))
    whole = _repeats(given, reply)
    inner = _enclose(reply if whole else [*given, *reply])
    record: dict[str, JsonValue] = {name: value for name, (value, _) in rest.items()}
    places = {f"/{escape_token(name)}": path for name, (_, path) in rest.items()}
    if exchange.tools is not None and "tools" not in record:
        record["tools"], places["/tools"] = exchange.tools, exchange.tools_at
    return _Joined(
        Inner(record | inner.record, {**places, **inner.places}),
        () if whole else reply,
        exchange.given if whole else None,
    )


def _enclose(messages: Sequence[Placed]) -> Inner:
    """Put messages into a record."""
    key = _name_messages(messages)
    places = {f"/{key}/{index}": one.path for index, one in enumerate(messages)}
    places |= {f"/{key}/{at}/content": one.content_at for at, one in enumerate(messages) if one.content_at is not None}
    return Inner({key: [one.value for one in messages]}, places)


def _repeats(given: Sequence[Placed], reply: Sequence[Placed]) -> bool:
    """Whether a reply repeats the whole conversation, as an agent's state does."""
    return 0 < len(given) < len(reply) and all(
        strip_message(one.value) == strip_message(other.value) for one, other in zip(given, reply, strict=False)
    )


def _name_messages(messages: Sequence[Placed]) -> str:
    """Return the name that these messages' format has for its list of messages."""
    objects = [one.value for one in messages if isinstance(one.value, dict)]
    if any("parts" in message and message.keys() <= {"parts", "role"} for message in objects):
        return "contents"
    return "input" if any(map(_is_item, objects)) else "messages"


def _is_item(message: Given) -> bool:
    """Whether a message is an item of the Responses API."""
    kind = str(message.get("type"))
    parts = (part for part in list_objects(message.get("content")) if part.get("type") in ("input_text", "output_text"))
    return kind == "reasoning" or kind.endswith(("_call", "_call_output")) or any(parts)


class _Reply(NamedTuple):
    """A reply read apart from its conversation."""

    inner: Inner
    trace: Trace
    path: str


def _read_replies(replies: Iterable[tuple[Sequence[Placed], str]], read_any: ReadAny) -> list[_Reply]:
    inners = [(_enclose(messages), path) for messages, path in replies if messages]
    return [_Reply(inner, _read(inner, read_any), path) for inner, path in inners]


def _account_failure(exchange: Exchange, own: Sequence[_Reply], lost: Transcript) -> None:
    """Report what the conversation's last reply lacks, if it failed or says that it has more than the log holds."""
    if exchange.failed_at and not exchange.reply:
        lose_reply(lost, exchange.failed_at, "the reply of a request that failed")
        return
    said = any(message.text for one in own for message in one.trace.messages)
    called = any(one.trace.steps or any(part.kind == "call" for part in one.trace.unread) for one in own)
    for ending in _list_endings(exchange.reply, exchange.reply_at, exchange.sample or 0):
        account_ending(lost, ending, said=said, called=called)


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
        told = find_object(value, name)
        reason = find_text(told, "reason", "finish_reason")
        if reason:
            yield Ending(reason, f"{path}/{name}")
    holder = next((key for key in HOLDERS[:3] if value.get(key)), None)
    if holder is not None:
        yield from _list_endings(value[holder], f"{path}/{holder}", sample)


def _account_calls(replies: Sequence[_Reply], known: KnownCalls, lost: Transcript) -> None:
    """Report calls that the conversation lacks. One without an id counts as often as all replies together have it."""
    told = [tell(step.call, one.path) for one in replies for step in one.trace.steps]
    for call in known.list_unknown(told):
        lost.lose("call", call.path, f"a call of {clip(call.name)!r} that the conversation does not have")


def _account_texts(replies: Sequence[_Reply], trace: Trace, lost: Transcript) -> None:
    """Report texts that the conversation lacks, and calls that nobody could read."""
    texts = {message.text for message in trace.messages}
    for one in replies:
        for message in one.trace.messages:
            if message.text not in texts:
                lost.lose("other", one.path, "a text that the conversation does not have")
        for unread in one.trace.unread:
            if unread.kind == "call":
                lost.lose("call", one.inner.locate(unread.path), "a call")


def _account_runs(runs: Sequence[ToolRun], trace: Trace, lost: Transcript) -> None:
    """Report tool runs whose call or result the conversation lacks."""
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
