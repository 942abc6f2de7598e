"""Read messages in any provider's dialect: one reader for all of them, also for a reply that came in chunks.

A message has a speaker, parts (a bare text is one), and perhaps calls beside its parts. An assistant's parts are pieces
of one text and are joined with nothing; a user's are separate texts, one per line. A user's message of nothing but
results is no turn. Thinking is not part of what was said.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import JsonValue

from service.core.json.members import JsonObject
from service.core.json.parsing import parse_or_none
from service.core.json.values import name_type
from service.core.trace import ToolCall, ToolResult
from service.errors import InputError, Problem
from service.intake.build import Transcript
from service.intake.cursor import Cursor, pick_sample
from service.intake.parts import (
    RESULTS,
    TEXTS,
    add_part,
    add_result,
    leave_part,
    open_part,
    read_ui_result,
    take_call,
    take_text,
)
from service.intake.unread_parts.repeated_calls import TraceCalls

Speaker = Literal["system", "user", "assistant", "tool"]
SPEAKERS: Final[Mapping[str, Speaker]] = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "model"), "assistant"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function"), "tool"),
}
"""Who speaks, by the role or type of a message, in lower case and without "Message" or "Chunk"."""
_ROLES = ("assistant", "developer", "function", "system", "tool", "user")
_CONTENT = ("parts", "content", "contents", "blocks")
_LISTED = ("tool_calls", "invalid_tool_calls", "toolInvocations")


def name_speaker(name: JsonValue) -> Speaker | None:
    """Return who a role or type stands for: LangChain's types end in "Message" or "MessageChunk"."""
    if isinstance(name, str) and name in SPEAKERS:
        return SPEAKERS[name]
    return SPEAKERS.get(str(name).removesuffix("Chunk").removesuffix("Message").lower())


def find_speaker(message: Cursor, *names: str) -> Speaker | None:
    """Return who speaks, by the first of these members that says so, `role` or else `type`; None if none does."""
    for name in names or ("role", "type"):
        value = message.members.get(name)
        if value is not None and (speaker := name_speaker(value)) is not None:
            message.take_all(name)
            return speaker
    return None


def read_messages(messages: Iterable[Cursor], *, error_prefix: str | None = None, strict: bool = False) -> None:
    """Add messages, and items that stand beside them, to the transcript.

    With `error_prefix`, a tool's message whose text starts with it is an error. A message of an unknown role is left;
    with `strict`, it is an error. Raises InputError: that, a message with neither role nor type, a call without a name.
    """
    problems = list[Problem]()
    for message in messages:
        try:
            speaker = find_speaker(message)
            if speaker is None and message.members and message.peek("role") is None:
                if "type" not in message:
                    raise InputError.at(
                        message.path, "a message needs a role, such as user; other items name their type"
                    )
                add_part(message)
            elif speaker is None and strict and message.members:
                raise InputError.at(f"{message.path}/role", f"expected one of {', '.join(_ROLES)}")
            elif speaker is None and strict:
                raise InputError.at(message.path, f"expected a message: an object, not {name_type(message.raw)}")
            else:
                read_message(message, speaker, error_prefix=error_prefix)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)


def read_message(message: Cursor, speaker: Speaker | None, *, error_prefix: str | None = None) -> None:
    """Add a message; leave that of an unknown speaker. Raises InputError: a call without a name."""
    if speaker is None:  # one that stands for a removal says nothing
        removal = message.peek("type") in ("remove", "RemoveMessage")
        message.leave("a removal" if removal else "a message of an unknown role", holds="other" if removal else "text")
    elif speaker == "assistant":
        read_reply_message(message)
    elif speaker == "tool":
        _read_tool_message(message, error_prefix)
    else:
        read_input(message, speaker)


def _read_tool_message(message: Cursor, error_prefix: str | None) -> None:
    """Read a tool's message: what it returned is its content, unless its parts are results of their own."""
    content = message.peek("content")
    parts = content if isinstance(content, list) else ()
    if any(isinstance(part, dict) and open_part(Cursor(part, message.out))[0] in RESULTS for part in parts):
        for part in message.parts("content"):
            kind, body = open_part(part)
            if kind in RESULTS:
                add_result(body)
            else:
                leave_part(part, kind, part)
    else:
        add_result(message, error_prefix=error_prefix)


def read_input(message: Cursor, speaker: Literal["system", "user"], *names: str) -> None:
    """Read a message of the user or the system: results, and what was said. `names`: what may hold its parts."""
    if not names and isinstance(message.peek("content"), str) and "parts" not in message:
        message.out.say(speaker, message.text("content"))
        return
    texts: list[str] = []
    answered = False
    for part in message.parts(*(names or _CONTENT)):
        kind, body = open_part(part)
        if kind in TEXTS:
            texts.append(take_text(body))
        elif kind in RESULTS or kind.endswith("tool_result"):
            add_result(body)
            answered = True
        else:
            leave_part(part, kind, body, of_user=True)
        if body is not part and isinstance(part.peek("text"), str):
            texts.append(part.text("text"))
    if texts or not answered:
        message.out.say(speaker, "\n".join(texts))


_PLAIN = frozenset({"role", "content", "tool_calls", "id", "type", "parts", "name"})
"""The members of a plain reply: for one that has no others, nothing else is looked for."""


def read_reply_message(message: Cursor, *names: str) -> None:
    """Add a reply: its parts, and the calls beside them. `names`: what may hold its parts.

    Raises InputError: a call without a name.
    """
    out, listed = message.out, list(_list_calls(message))
    plain = _PLAIN.issuperset(message.members)
    name = next((name for name in names or _CONTENT if message.members.get(name) not in (None, "")), "")
    spoken = name != "" and isinstance(message.members[name], str)
    beside = TraceCalls([call for call, _ in listed]) if listed and not (plain and (spoken or not name)) else None
    with out.reply():
        if spoken:
            out.add_text(message.text(name))
        else:
            for part in message.parts(name) if name else ():
                add_part(part, beside)
        if not plain:
            _read_refusal(message)
        for call, result in listed:
            if name != "parts" or result is None or not out.list_reply_calls():
                out.call(call, result)
        if not plain:
            _read_older_calls(message, beside)
            _note_beside(message, name)
            message.tells_of("reply", silent=not (name or out.list_reply_calls() or message.peek("audio")))
    if not plain:
        for holder in (message, message.child("response_metadata")):
            out.end_reply(holder.members, holder.path)


def _read_refusal(message: Cursor) -> None:
    """Read a refusal from where providers, LiteLLM and LangChain put it."""
    refusal = message.text("refusal") or message.child("provider_specific_fields").text("refusal")
    said = message.out.said
    if not (refusal or said):
        refusal = message.child("additional_kwargs").text("refusal")
    if refusal and refusal != said:
        message.out.add_text(f"\n{refusal}" if said else refusal)


def _list_calls(message: Cursor) -> Iterator[tuple[ToolCall, ToolResult | None]]:
    """Iterate over the calls that stand beside the parts of a reply, with the result that stands in a call."""
    for name in _LISTED:
        if name not in message.members:
            continue
        for call in message.items(name, of="a tool call"):
            if isinstance(call.raw, dict):
                yield take_call(call), read_ui_result(call) if name == "toolInvocations" else None
            else:
                call.leave(holds="call")


def _read_older_calls(message: Cursor, listed: TraceCalls | None) -> None:
    """Read the calls in older members, some of which repeat those `listed` in newer ones, or those among the parts."""
    made = message.out.list_reply_calls()
    listed = listed or (TraceCalls(made) if made else None)
    extra = message.child("additional_kwargs")
    oldest = [holder.child("function_call", of="a function call") for holder in (message, extra)]
    older = [(take_call(one), one) for one in oldest[:1] if one]
    older += [(take_call(one), one) for one in extra.items("tool_calls", of="a tool call")]
    older += [(take_call(one), one) for one in oldest[1:] if one]
    for call, node in older:
        if listed is None or (node is oldest[0] and not listed.has(call)):
            message.out.call(call)
        elif not listed.has(call):
            message.out.note_unread("call", node.path, "a call beside the tool_calls of a message")


def _note_beside(message: Cursor, chosen: str) -> None:
    """Leave what stands beside the parts of a reply and may say something else."""
    said, audio = message.out.said, message.child("audio", of="the audio of a message")
    if audio and audio.text("transcript") not in ("" if said else None, said):
        message.out.note_unread("text", audio.path, "what was said as audio")
    content = message.peek("content")
    if chosen == "parts" and isinstance(content, str) and content:
        message.take("content")
        if content != said:
            message.out.note_unread("text", f"{message.path}/content", "the content beside the parts of a message")


MAX_TRIES = 10
"""Times that one call's arguments are tested for completeness, which bounds the work that a hostile stream can cause."""


def read_chunks(record: Cursor, sample: JsonValue) -> None:
    """Add the reply in the `chunks` of a record; `sample` chooses one of several.

    Raises InputError: several replies and none chosen.
    """
    replies: dict[int, _Reply] = {}
    for chunk in record.items("chunks", of="a chunk"):
        for choice in chunk.items("choices", of="a choice"):
            index = choice.take("index")
            reply = replies.setdefault(index if isinstance(index, int) else 0, _Reply())
            reply.add(choice.child("delta", of="a piece of a reply"))
            reply.ends.append((choice.members, choice.path))
        if chunk.peek("error"):
            for reply in replies.values() or (replies.setdefault(0, _Reply()),):
                reply.ends.append(({"error": chunk.peek("error")}, chunk.path))
    if replies:
        chosen = sorted(replies)[pick_sample(sample, len(replies), "choices")]
        replies[chosen].finish(record.out)


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    kind: Literal["function", "custom"] = "function"
    pieces: list[str] = field(default_factory=list[str])
    tries: int = 0
    """How often its arguments were tested for completeness."""

    def goes_on(self, call_id: str, name: str, arguments: str) -> bool:
        """Whether a piece with the same index continues this call: some servers give all calls of a reply one index.

        A new call begins with another id or another name, or with the same name once this call's arguments are complete.
        """
        if call_id and self.id and call_id != self.id:
            return False
        if not name or not self.name:
            return True
        if name != self.name or call_id or not arguments:
            return name == self.name
        self.tries += 1
        return self.tries > MAX_TRIES or parse_or_none("".join(self.pieces)) is None

    def build(self) -> dict[str, JsonValue]:
        """Return the call as a reply that is not streamed has it. Raises InputError: it has no name."""
        if not self.name:
            raise InputError.at("/chunks", "a streamed call needs a name")
        given = "input" if self.kind == "custom" else "arguments"
        return {"id": self.id, "type": self.kind, self.kind: {"name": self.name, given: "".join(self.pieces)}}


@dataclass(slots=True)
class _Reply:
    ends: list[tuple[JsonObject, str]] = field(default_factory=list[tuple[JsonObject, str]])
    """What may say how it ended, with pointers."""
    texts: list[str] = field(default_factory=list[str])
    refusals: list[str] = field(default_factory=list[str])
    calls: list[_Call] = field(default_factory=list[_Call])
    latest: dict[JsonValue, _Call] = field(default_factory=dict[JsonValue, _Call])
    """The latest call of each index."""
    audio: str = ""

    def add(self, delta: Cursor) -> None:
        """Add a piece."""
        delta.take("role")
        self.texts.append(delta.text("content"))
        self.refusals.append(delta.text("refusal"))
        for piece in delta.items("tool_calls", of="a piece of a call"):
            self._add_call(piece, piece.child("custom", "function"))
        if older := delta.child("function_call", of="a piece of a call"):
            self._add_call(older, older)
        if delta.take("audio"):
            self.audio = self.audio or f"{delta.path}/audio"
        delta.tells_of("reply", silent=False)

    def _add_call(self, piece: Cursor, function: Cursor) -> None:
        piece.take("type")
        index, call_id, name = piece.take("index"), piece.text("id"), function.text("name")
        index, given = index if isinstance(index, int) else None, function.take("arguments", "input")
        text = given if isinstance(given, str) else "" if given is None else json.dumps(given)
        call = self.latest.get(index)
        if call is None or not call.goes_on(call_id, name, text):
            call = self.latest[index] = _Call()
            self.calls.append(call)
        call.id, call.name = call.id or call_id, call.name or name
        call.kind = "custom" if "custom" in piece else call.kind
        call.pieces.append(text)

    def finish(self, out: Transcript) -> None:
        """Add the reply to the transcript. The last chunks say how it ended; one that does not end is cut."""
        text, refusal = "".join(self.texts), "".join(self.refusals)
        calls: list[JsonValue] = [call.build() for call in self.calls]
        read_reply_message(Cursor({"content": text, "refusal": refusal, "tool_calls": calls}, out, "/chunks"))
        if self.audio and not (text or refusal):
            out.note_unread("text", self.audio, "what was said as audio")
        for raw, path in self.ends:
            out.end_reply(raw, path)
        if not any(raw.get("finish_reason") or raw.get("error") for raw, _ in self.ends):
            out.end_with("unfinished", "/chunks")
