"""Read logs that wrap conversations: what a model was sent and replied, as observability tools record it.

The reader of a wrapper finds the exchanges with a model, and the runs of tools beside them. The exchange with the most
input messages (the last of several) is the conversation: its messages and reply are read in whatever format they have.
Everything else is compared with it: a call or text of another exchange that the conversation lacks, and a tool run
whose call or result it lacks, are unread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeGuard, cast

from pydantic import JsonValue

from service.core.json.members import JsonObject, find_object, find_text, list_elements, read_type
from service.core.json.pointers import escape_token
from service.core.trace import Trace
from service.errors import InputError, Problem
from service.intake.build import Record, Request, Transcript, add_offers
from service.intake.cursor import Cursor, Located, pick_sample
from service.intake.format import NOTHING, Exchange, WrapperContents
from service.intake.messages import SPEAKERS, name_speaker
from service.intake.pairing import Answers
from service.intake.unread_parts.endings import Ending, find_ending
from service.intake.unread_parts.repeated_calls import KnownCalls, PossibleCall
from service.intake.unread_parts.suspects import clip, list_possible_calls

ReadAny = Callable[[JsonObject], Trace]
"""Reads a record that names no format."""


def read_wrapper(record: Record, contents: WrapperContents, notes: Transcript, read_any: ReadAny) -> Trace:
    """Build the trace of the conversation in a log. `notes`: what its reader has not read.

    Raises InputError: no exchange with a model, messages in no known format, and what the reader of their format raises.
    """
    chosen, conversation, trace = _choose(contents.exchanges, notes, read_any)
    if len(contents.exchanges) > 1:
        trace = _add_offers(trace, contents.exchanges, chosen, read_any)
    others = [exchange for exchange in contents.exchanges if exchange is not chosen]
    own = _read_reply(conversation.reply, "", notes, read_any)
    listed = [(list(_list_reply(_open(one.reply, notes), one.sample)), one.reply[1]) for one in others]
    read = [(_read_reply(messages, path, notes, read_any), path) for messages, path in listed]
    last = trace.steps[-1] if trace.steps else None
    returned = last is not None and last.message == len(trace.messages) - 1 and last.result is not None
    _note_failure(chosen, own, notes, returned=returned)
    if not (trace.messages or trace.unread):
        notes.miss_reply(chosen.path, "an exchange of which the log holds nothing")
    known = KnownCalls(step.call for step in trace.steps)
    _note_replies([(own, ""), *read], trace, known, notes)
    values = [*contents.extra_values, *[one.input for one in others], (conversation.repeated, chosen.input[1])]
    held = [list_possible_calls(*value) for value in values]
    held += [list_possible_calls(*value, packed=True) for value in contents.packed_values]
    for mentioned in held:
        for call in known.take_new(mentioned):
            notes.note_unread("call", call.path, "a call that the conversation does not have")
    _note_runs_missing(contents.runs, trace, notes)
    answers: Answers = {step.index: step.result for step in trace.steps if step.result is not None}
    missing, ignored = notes.list_unread([step.call for step in trace.steps], trace.tools, answers)
    return replace(
        trace,
        id=notes.id,
        format=record["format"],
        raw=record,
        unread=(*trace.unread, *missing),
        ignored=(*trace.ignored, *ignored),
    )  # pyright: ignore[reportArgumentType] (a validated record is JSON)


class _Conversation(NamedTuple):
    """The messages of an exchange, and those of its reply alone unless that repeats the whole conversation."""

    messages: Sequence[_Message]
    beside: Mapping[str, Located]
    """What stands beside the messages in the request."""
    reply: Sequence[_Message]
    repeated: JsonValue
    """The input, if it is not read: the reply repeats it all, or it holds no messages."""


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
            return exchanges[at], conversation, _read(conversation.messages, conversation.beside, read_any)
        except InputError as error:
            fault = fault or error
            what = f"an exchange that is not readable ({error.problems[0].message})"
            notes.miss_reply(exchanges[at].path, what)
    raise fault or InputError.at("", "expected a model's input and its reply")


def _join_conversation(exchange: Exchange, notes: Transcript) -> _Conversation:
    beside, inputs = _list_input(*exchange.input)
    reply = list(_list_reply(_open(exchange.reply, notes), exchange.sample))
    whole = 0 < len(inputs) < len(reply) and all(  # as an agent's state does
        _strip(one.value) == _strip(other.value) for one, other in zip(inputs, reply, strict=False)
    )
    if exchange.tools[0] is not None:
        beside.setdefault("tools", exchange.tools)
    repeated = exchange.input[0] if whole or not inputs else None
    return _Conversation(reply if whole else [*inputs, *reply], beside, () if whole else reply, repeated)


def _read(messages: Sequence[_Message], beside: Mapping[str, Located], read_any: ReadAny) -> Trace:
    """Read messages in whatever format they have. All pointers are those of the source, also of an InputError."""
    objects = [one.value for one in messages if isinstance(one.value, dict)]
    key = "input" if any(map(_is_item, objects)) else "messages"
    if any("parts" in message and message.keys() <= {"parts", "role"} for message in objects):
        key = "contents"
    places = {f"/{escape_token(name)}": path for name, (_, path) in beside.items()}
    places |= {f"/{key}/{at}": one.path for at, one in enumerate(messages)}
    places |= {f"/{key}/{at}/content": one.content_path for at, one in enumerate(messages) if one.content_path}

    def locate(path: str) -> str:
        head = path
        while head and head not in places:
            head = head.rpartition("/")[0]
        return places.get(head, "") + path[len(head) :]

    try:
        trace = read_any({**{name: value for name, (value, _) in beside.items()}, key: [one.value for one in messages]})
    except InputError as error:
        raise InputError([Problem(locate(one.path), one.message) for one in error.problems]) from None
    unread, ignored = (
        [replace(part, path=locate(part.path)) for part in left] for left in (trace.unread, trace.ignored)
    )
    return replace(trace, unread=tuple(unread), ignored=tuple(ignored))


def _is_item(message: JsonObject) -> bool:
    """Whether a message is an item of the Responses API."""
    kind, parts = read_type(message), map(read_type, list_elements(message.get("content")))
    return kind == "reasoning" or kind.endswith(("_call", "_call_output")) or not _ITEM_PARTS.isdisjoint(parts)


_ITEM_PARTS = frozenset({"input_text", "output_text"})


def _read_reply(messages: Sequence[_Message], path: str, notes: Transcript, read_any: ReadAny) -> Trace | None:
    """Read a reply apart from its conversation; one that is not readable is unread. None: nothing is read."""
    try:
        return _read(messages, {}, read_any) if messages else None
    except InputError as error:
        notes.miss_reply(path, f"a reply that is not readable ({error.problems[0].message})")
        return None


def _add_offers(trace: Trace, exchanges: Sequence[Exchange], last: Exchange, read_any: ReadAny) -> Trace:
    """Return the trace with the tools listed by the requests that the last one continues, unless all list the same."""
    said = [_strip(message) for message, *_ in _list_input(*last.input)[1]]
    earlier: list[tuple[int, Exchange, JsonValue]] = []
    for one in exchanges:
        beside, messages = _list_input(*one.input)
        if messages and [_strip(message) for message, *_ in messages] == said[: len(messages)]:
            earlier.append((len(messages), one, [{name: value for name, (value, _) in beside.items()}, one.tools[0]]))
    if all(listed == earlier[0][2] for _, _, listed in earlier):
        return trace
    requests: list[Request] = []
    for _, exchange, _ in sorted(earlier, key=lambda one: one[0]):
        sent = _join_conversation(replace(exchange, reply=NOTHING), Transcript())
        try:
            read = _read(sent.messages, sent.beside, read_any)
        except InputError:
            requests.append(Request(0, 0, None))
        else:
            requests.append(Request(len(read.steps), read.turns, read.tools))
    return add_offers(trace, requests, [step.call.name for step in trace.steps[: requests[0].calls]])


def _note_failure(exchange: Exchange, own: Trace | None, notes: Transcript, *, returned: bool) -> None:
    """Report what the conversation's last reply lacks, if it failed, is not there, or says that it has more than the log holds.

    `returned`: whether the conversation ends with what a call returned.
    """
    if not exchange.reply[0] and (exchange.error_path or returned):
        what = (
            "the reply of a request that failed" if exchange.error_path else "the reply, which the log does not have,"
        )
        notes.miss_reply(exchange.error_path or exchange.reply[1], what)
        return
    called = own is not None and bool(own.steps or any(part.kind == "call" for part in own.unread))
    for ending in _list_endings(*exchange.reply, exchange.sample or 0):
        notes.end_with(*ending, called=called)


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


def _note_replies(read: Sequence[tuple[Trace | None, str]], trace: Trace, known: KnownCalls, notes: Transcript) -> None:
    """Report what replies have that the conversation lacks, the first of which is its own."""
    replies = [(reply, path) for reply, path in read if reply is not None]
    # A call without an id counts as often as all replies together have it.
    mentions = [PossibleCall(step.call, path) for reply, path in replies for step in reply.steps]
    for call, path in known.take_new(mentions):
        notes.note_unread("call", path, f"a call of {clip(call.name)!r} that the conversation does not have")
    texts = {message.text for message in trace.messages}
    for reply, path in replies:
        if reply is read[0][0]:
            continue
        for message in reply.messages:
            if message.text not in texts:
                notes.note_unread("other", path, "a text that the conversation does not have")
        for unread in reply.unread:
            if unread.kind == "call":
                notes.note_unread("call", unread.path, "a call")


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


def holds_messages(value: JsonValue) -> bool:
    """Whether an input is what models are sent: messages that name their roles."""
    sent = [one.value for one in _list_input(value, "")[1] if one.content_path is None]
    return any(isinstance(message, dict) and name_speaker(message.get("role")) for message in sent)


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


def _open(value: Located, notes: Transcript) -> Cursor:
    node = Cursor(value[0], notes, value[1], "a reply")
    node.tells_of("reply", silent=False)
    return node


def _list_reply(reply: Cursor, sample: int | None = None) -> Iterator[_Message]:
    """Iterate over the messages of a reply. Further samples are left, unless `sample` chooses one."""
    value, path = cast("JsonValue", reply.raw), reply.path
    if isinstance(value, str):
        yield _Message({"role": "assistant", "content": value}, path, path)
    elif _is_pair(value):
        yield _place(value, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _list_reply(_open((item, f"{path}/{index}"), reply.out))
    elif isinstance(value, dict):
        yield from _list_wrapped(reply, value, sample)


def _list_wrapped(reply: Cursor, value: JsonObject, sample: int | None) -> Iterator[_Message]:
    """Iterate over the messages of a reply that is an object: a message, or one or several in what wraps them."""
    holder = None if "role" in value or "lc" in value else next((key for key in _HOLDERS if value.get(key)), None)
    if holder == "output" and read_type(value) not in ("message", "?"):
        holder = None  # an item of the Responses API: its output belongs to the item
    if holder is None and "parts" in find_object(value, "content"):  # one of Gemini's candidates
        holder = "content"
    completed = "text" if isinstance(value.get("text"), str) and "content" not in value else ""  # without roles
    if holder is not None or (completed and not value.keys() & {"role", "lc", "kind"}):
        held = _open((value[holder or completed], f"{reply.path}/{holder or completed}"), reply.out)
        reply.take_all(holder or completed)
        reply.close()
        if holder == "content":
            yield _Message(value[holder], held.path)
        else:
            yield from _list_samples(held, sample) if holder in _HOLDERS[:3] else _list_reply(held)
    elif value.keys() & {"role", "lc", "kind", "type"}:
        yield _Message(dict(value), reply.path)
    elif "content" in value:
        yield _Message({"role": "assistant", **value}, reply.path)
    elif value:
        reply.leave("a reply of no known form", holds="text")


def _list_samples(held: Cursor, sample: int | None) -> Iterator[_Message]:
    """Iterate over the messages of the sample that is chosen, else of the first."""
    if not isinstance(held.raw, list):
        yield from _list_reply(held)
        return
    chosen = 0 if sample is None or not held.raw else pick_sample(sample, len(held.raw), held.path)
    for index, item in enumerate(held.raw):
        one = _open((item, f"{held.path}/{index}"), held.out)
        if index == chosen:
            yield from _list_samples(one, None)
        elif sample is None:
            one.leave("another sample of a reply")


def _strip(message: JsonValue) -> JsonValue:
    """Return what a message says without its wrapping, for comparing messages."""
    if not isinstance(message, dict):
        return message
    inner = next((message[key] for key in ("kwargs", "data") if isinstance(message.get(key), dict)), message)
    return [inner.get("content"), inner.get("tool_calls") or None] if isinstance(inner, dict) else inner
