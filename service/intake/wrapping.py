"""Read logs that wrap conversations: what a model was sent and replied, as observability tools record it.

The reader of a wrapper finds the exchanges with a model, and the runs of tools beside them. The exchange with the most
input messages (the last of several) is the conversation: its messages and reply are read in whatever format they have.
Everything else is compared with it: a call or text of another exchange that the conversation lacks, and a tool run
whose call or result it lacks, are unread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeGuard

from pydantic import JsonValue

from service.core.json.members import JsonObject, find_object, find_text, list_elements, read_type
from service.core.json.pointers import escape_token
from service.core.trace import Trace
from service.errors import InputError, Problem
from service.intake.build import Record, Request, Transcript, add_offers
from service.intake.cursor import Cursor, Located, pick_sample
from service.intake.format import NOTHING, Exchange, WrapperContents
from service.intake.messages import SPEAKERS
from service.intake.pairing import Answers
from service.intake.unread_parts.endings import Ending, find_ending
from service.intake.unread_parts.repeated_calls import KnownCalls, PossibleCall
from service.intake.unread_parts.suspects import clip, list_possible_calls

ReadAny = Callable[[JsonObject], Trace]
"""Reads a record that names no format."""


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

    Raises InputError: no exchange with a model, messages in no known format, and what the reader of their format raises.
    """
    notes = contents.notes
    chosen, conversation, trace = _choose(contents.exchanges, notes, read_any)
    if len(contents.exchanges) > 1:
        trace = _add_offers(trace, contents.exchanges, chosen, read_any)
    known = KnownCalls(step.call for step in trace.steps)
    others = [exchange for exchange in contents.exchanges if exchange is not chosen]
    own = _read_replies([(conversation.reply, "")], read_any, notes)
    listed = [(list(_list_reply(*one.reply, notes, one.sample)), one.reply[1]) for one in others]
    replies = _read_replies(listed, read_any, notes)
    _note_failure(chosen, own, notes)
    if not (trace.messages or trace.unread):
        notes.miss_reply(chosen.path, "an exchange of which the log holds nothing")
    # A call without an id counts as often as all replies together have it.
    mentions = [PossibleCall(step.call, one.path) for one in (*own, *replies) for step in one.trace.steps]
    for call, path in known.take_new(mentions):
        notes.note_unread("call", path, f"a call of {clip(call.name)!r} that the conversation does not have")
    _note_texts_missing(replies, trace, notes)
    values = [*contents.extra_values, *[one.input for one in others], (conversation.repeated, chosen.input[1])]
    held = [list_possible_calls(*value) for value in values]
    held += [list_possible_calls(*value, packed=True) for value in contents.packed_values]
    for mentioned in held:
        for call in known.take_new(mentioned):
            notes.note_unread("call", call.path, "a call that the conversation does not have")
    _note_runs_missing(contents.runs, trace, notes)
    answers: Answers = {step.index: step.result for step in trace.steps if step.result is not None}
    missing, ignored = notes.list_unread([step.call for step in trace.steps], trace.tools, answers)
    unread = (*[replace(item, path=conversation.inner.locate(item.path)) for item in trace.unread], *missing)
    return replace(
        trace, id=contents.id, format=record["format"], raw=record, unread=unread, ignored=(*trace.ignored, *ignored)
    )  # pyright: ignore[reportArgumentType] (a validated record is JSON)


def _choose(
    exchanges: Sequence[Exchange], notes: Transcript, read_any: ReadAny
) -> tuple[Exchange, _Conversation, Trace]:
    """Read the conversation: the exchange with the most input messages that can be read; one that cannot is unread.

    Raises InputError: none can be read.
    """
    fault: InputError | None = None
    counts = [len(_list_input(*one.input)[1]) for one in exchanges]
    for at in sorted(range(len(exchanges)), key=lambda at: (counts[at], at), reverse=True):
        conversation = _join_conversation(exchanges[at], notes)
        try:
            return exchanges[at], conversation, _read(conversation.inner, read_any)
        except InputError as error:
            fault = fault or error
            what = f"an exchange that is not readable ({error.problems[0].message})"
            notes.miss_reply(exchanges[at].path, what)
    raise fault or InputError.at("", "expected a model's input and its reply")


def _read(inner: InnerRecord, read_any: ReadAny) -> Trace:
    try:
        return read_any(inner.record)
    except InputError as error:
        raise InputError([Problem(inner.locate(one.path), one.message) for one in error.problems]) from None


def _add_offers(trace: Trace, exchanges: Sequence[Exchange], last: Exchange, read_any: ReadAny) -> Trace:
    """Return the trace with the tools listed by the requests that the last one continues, unless all list the same."""
    said = [_strip(message) for message, *_ in _list_input(*last.input)[1]]
    earlier: list[tuple[int, Exchange, JsonValue]] = []
    for one in exchanges:
        rest, messages = _list_input(*one.input)
        if messages and [_strip(message) for message, *_ in messages] == said[: len(messages)]:
            earlier.append((len(messages), one, [{name: value for name, (value, _) in rest.items()}, one.tools[0]]))
    if all(listed == earlier[0][2] for _, _, listed in earlier):
        return trace
    requests: list[Request] = []
    for _, exchange, _ in sorted(earlier, key=lambda one: one[0]):
        try:
            sent = read_any(_join_conversation(replace(exchange, reply=NOTHING), Transcript()).inner.record)
        except InputError:
            requests.append(Request(0, 0, None))
        else:
            requests.append(Request(len(sent.steps), sent.turns, sent.tools))
    return add_offers(trace, requests, [step.call.name for step in trace.steps[: requests[0].calls]])


class _Conversation(NamedTuple):
    """A conversation as one record, and the messages of its reply unless that repeats the whole conversation."""

    inner: InnerRecord
    reply: Sequence[_Message]
    repeated: JsonValue
    """The input, if it is not read: the reply repeats it all, or it holds no messages."""


def _join_conversation(exchange: Exchange, notes: Transcript) -> _Conversation:
    rest, inputs = _list_input(*exchange.input)
    reply = list(_list_reply(*exchange.reply, notes, exchange.sample))
    whole = 0 < len(inputs) < len(reply) and all(  # as an agent's state does
        _strip(one.value) == _strip(other.value) for one, other in zip(inputs, reply, strict=False)
    )
    if exchange.tools[0] is not None:
        rest.setdefault("tools", exchange.tools)
    inner = _enclose(reply if whole else [*inputs, *reply])
    record: dict[str, JsonValue] = {name: value for name, (value, _) in rest.items()}
    places = {f"/{escape_token(name)}": path for name, (_, path) in rest.items()}
    return _Conversation(
        InnerRecord(record | inner.record, {**places, **inner.places}),
        () if whole else reply,
        exchange.input[0] if whole or not inputs else None,
    )


def _enclose(messages: Sequence[_Message]) -> InnerRecord:
    """Put messages into a record, in the member that their format has for them."""
    objects = [one.value for one in messages if isinstance(one.value, dict)]
    key = "input" if any(map(_is_item, objects)) else "messages"
    if any("parts" in message and message.keys() <= {"parts", "role"} for message in objects):
        key = "contents"
    places = {f"/{key}/{index}": one.path for index, one in enumerate(messages)}
    places |= {f"/{key}/{at}/content": one.content_path for at, one in enumerate(messages) if one.content_path}
    return InnerRecord({key: [one.value for one in messages]}, places)


def _is_item(message: JsonObject) -> bool:
    """Whether a message is an item of the Responses API."""
    kind, parts = read_type(message), map(read_type, list_elements(message.get("content")))
    return kind == "reasoning" or kind.endswith(("_call", "_call_output")) or not _ITEM_PARTS.isdisjoint(parts)


_ITEM_PARTS = frozenset({"input_text", "output_text"})


class _Reply(NamedTuple):
    inner: InnerRecord
    trace: Trace
    path: str


def _read_replies(
    replies: Iterable[tuple[Sequence[_Message], str]], read_any: ReadAny, notes: Transcript
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
    if exchange.error_path and not exchange.reply[0]:
        notes.miss_reply(exchange.error_path, "the reply of a request that failed")
        return
    called = any(one.trace.steps or any(part.kind == "call" for part in one.trace.unread) for one in own)
    for ending in _list_endings(*exchange.reply, exchange.sample or 0):
        notes.end_with(ending, called=called)


def _list_endings(value: JsonValue, path: str, sample: int) -> Iterator[Ending]:
    """Iterate over how a reply ended according to what wraps its message, whose own ending is for its reader."""
    if isinstance(value, list):
        if sample < len(value):
            yield from _list_endings(value[sample], f"{path}/{sample}", 0)
        return
    if not isinstance(value, dict) or value.keys() & {"role", "lc"}:
        return
    if value.get("status") in ("failed", "cancelled"):
        yield Ending("failed", f"{path}/status")
        return
    if (ending := find_ending(value, path)) is not None:
        yield ending
    for name in ("incomplete_details", "generation_info"):
        if reason := find_text(find_object(value, name), "reason", "finish_reason"):
            yield Ending(reason, f"{path}/{name}")
    holder = next((key for key in _HOLDERS[:3] if value.get(key)), None)
    if holder is not None:
        yield from _list_endings(value[holder], f"{path}/{holder}", sample)


def _note_texts_missing(replies: Sequence[_Reply], trace: Trace, notes: Transcript) -> None:
    texts = {message.text for message in trace.messages}
    for one in replies:
        for message in one.trace.messages:
            if message.text not in texts:
                notes.note_unread("other", one.path, "a text that the conversation does not have")
        for unread in one.trace.unread:
            if unread.kind == "call":
                notes.note_unread("call", one.inner.locate(unread.path), "a call")


def _note_runs_missing(runs: Sequence[tuple[str, str]], trace: Trace, notes: Transcript) -> None:
    made = Counter(step.call.name for step in trace.steps)
    answered = Counter(step.call.name for step in trace.steps if step.result is not None)
    for name, path in runs:
        what = f"a run of {name[:60]!r}"
        if answered[name] > 0:
            answered[name] -= 1
        elif made[name] > 0:
            notes.note_unread("result", path, f"{what} whose result the conversation does not have")
        else:
            notes.note_unread("call", path, f"{what} that the conversation does not have")
        made[name] -= 1


class _Message(NamedTuple):
    """A message with its pointer, and the pointer of its content if that is not a member of the message."""

    value: JsonValue
    path: str
    content_path: str | None = None


_INPUTS = ("messages", "contents", "input", "prompts")
"""Members that hold the messages of a request."""


def _list_input(value: JsonValue, path: str) -> tuple[dict[str, Located], list[_Message]]:
    """Return the members beside a model's input messages, by name, and the messages themselves."""
    if isinstance(value, str) or _is_pair(value):
        return {}, [_place(value, path)]
    if isinstance(value, list):
        if len(value) == 1 and isinstance(value[0], list) and not _is_pair(value[0]):  # a batch of one
            return _list_input(value[0], f"{path}/0")
        return {}, [_place(item, f"{path}/{index}") for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return {}, []
    key = next((key for key in _INPUTS if isinstance(value.get(key), (list, str))), None)
    if key is None:
        return {}, [_Message(value, path)] if "role" in value or "lc" in value else []
    beside = value.keys() - {key, "format", "id", "state"}
    rest = {name: (item, f"{path}/{escape_token(name)}") for name, item in value.items() if name in beside}
    return rest, _list_input(value[key], f"{path}/{key}")[1]


def _place(item: JsonValue, path: str) -> _Message:
    if _is_pair(item):
        return _Message({"role": SPEAKERS[str(item[0])], "content": item[1]}, path, f"{path}/1")
    message: JsonValue = item if isinstance(item, dict) else {"role": "user", "content": item}
    return _Message(message, path, None if isinstance(item, dict) else path)


def _is_pair(value: JsonValue) -> TypeGuard[list[JsonValue]]:
    """Whether a value is a message in LangChain's short form: a list of a role and a content."""
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and value[0] in SPEAKERS


_HOLDERS = ("choices", "generations", "candidates", "messages", "message", "output")
"""Members that hold one or several replies, outer ones first."""


def _list_reply(value: JsonValue, path: str, notes: Transcript, sample: int | None = None) -> Iterator[_Message]:
    """Iterate over the messages of a reply. Further samples are reported to `notes`, unless `sample` chooses one."""
    if isinstance(value, str):
        yield _Message({"role": "assistant", "content": value}, path, path)
    elif _is_pair(value):
        yield _place(value, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _list_reply(item, f"{path}/{index}", notes)
    elif isinstance(value, dict):
        holder = None if "role" in value or "lc" in value else next((key for key in _HOLDERS if value.get(key)), None)
        if holder == "output" and isinstance(value.get("type"), str) and value["type"] != "message":
            holder = None  # an item of the Responses API: its output belongs to the item
        if holder is None and "parts" in find_object(value, "content"):  # one of Gemini's candidates
            _leave_beside(notes, value, path, "content")
            yield _Message(find_object(value, "content"), f"{path}/content")
        elif holder is None:
            yield from _list_message(value, path, notes)
        else:
            _leave_beside(notes, value, path, holder)
            yield from _list_samples(value[holder], f"{path}/{holder}", notes, sample, sampled=holder in _HOLDERS[:3])


def _leave_beside(notes: Transcript, reply: JsonObject, path: str, holder: str) -> None:
    """Leave what stands beside what a reply's member `holder` holds."""
    beside = Cursor(reply, notes, path, "a reply")
    beside.take_all(holder)
    beside.tells_of("reply", silent=False)
    beside.close()


def _list_message(value: dict[str, JsonValue], path: str, notes: Transcript) -> Iterator[_Message]:
    if value.keys() & {"role", "lc", "kind"}:
        yield _Message(value, path)
    elif isinstance(value.get("text"), str) and "content" not in value:  # of a completion model, without roles
        _leave_beside(notes, value, path, "")
        yield _Message({"role": "assistant", "content": value["text"]}, path, f"{path}/text")
    elif value.keys() & {"type", "content"}:
        yield _Message(value if "type" in value else {"role": "assistant", **value}, path)
    elif value:
        Cursor(value, notes, path, "a reply of no known form").leave(holds="text")


def _list_samples(
    value: JsonValue, path: str, notes: Transcript, sample: int | None, *, sampled: bool
) -> Iterator[_Message]:
    if not sampled or not isinstance(value, list):
        yield from _list_reply(value, path, notes)
        return
    chosen = 0 if sample is None or not value else pick_sample(sample, len(value), path)
    for index, item in enumerate(value):
        if index != chosen and sample is None:
            Cursor(item, notes, f"{path}/{index}", "another sample of a reply").leave()
        elif index == chosen and isinstance(item, list):
            yield from _list_samples(item, f"{path}/{index}", notes, None, sampled=True)
        elif index == chosen:
            yield from _list_reply(item, f"{path}/{index}", notes)


def _strip(message: JsonValue) -> JsonValue:
    """Return what a message says without its wrapping, for comparing messages."""
    if not isinstance(message, dict):
        return message
    inner = next((message[key] for key in ("kwargs", "data") if isinstance(message.get(key), dict)), message)
    return [inner.get("content"), inner.get("tool_calls") or None] if isinstance(inner, dict) else inner
