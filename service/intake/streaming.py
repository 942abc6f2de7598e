"""Assemble a streamed Chat Completions reply from its chunks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from service.core.json.parsing import parse_or_none
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.cursor import Cursor, pick_sample
from service.intake.messages import read_reply_message
from service.intake.unread_parts.endings import Ending

MAX_TRIES = 10
"""Times that one call's arguments are tested for completeness, which bounds the work that a hostile stream can
cause.
"""


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
            reply.ends.append((choice.raw if isinstance(choice.raw, dict) else {}, choice.path))
        if chunk.peek("error"):
            for reply in replies.values() or (replies.setdefault(0, _Reply()),):
                reply.ends.append(({"error": chunk.peek("error")}, chunk.path))
    if replies:
        chosen = sorted(replies)[pick_sample(sample, len(replies), "choices")]
        replies[chosen].finish(record.out)


@dataclass(slots=True)
class _Call:
    """A call being assembled."""

    id: str = ""
    name: str = ""
    kind: Literal["function", "custom"] = "function"
    pieces: list[str] = field(default_factory=list[str])
    tries: int = 0
    """How often its arguments were tested for completeness."""

    def goes_on(self, call_id: str, name: str, arguments: str) -> bool:
        """Whether a piece with the same index continues this call: some servers give all calls of a reply one index.

        A new call begins with another id or another name, or with the same name once this call's arguments are
        complete.
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


class _Reply:
    """A reply being assembled."""

    def __init__(self) -> None:
        self.ends: list[tuple[dict[str, JsonValue], str]] = []
        """What may say how it ended, with pointers."""
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._calls: list[_Call] = []
        self._by_index: dict[JsonValue, _Call] = {}
        self._legacy: _Call | None = None
        self._audio = ""

    def add(self, delta: Cursor) -> None:
        """Add a piece."""
        delta.take("role")
        self._texts.append(delta.text("content"))
        self._refusals.append(delta.text("refusal"))
        for piece in delta.items("tool_calls", of="a piece of a call"):
            self._add_call(piece)
        legacy = delta.child("function_call", of="a piece of a call")
        if legacy:
            self._legacy = self._legacy or _Call()
            self._legacy.name = self._legacy.name or legacy.text("name")
            self._legacy.pieces.append(legacy.text("arguments"))
        if delta.take("audio"):
            self._audio = self._audio or f"{delta.path}/audio"
        delta.speaks(silent=False)

    def _add_call(self, piece: Cursor) -> None:
        """Add a piece to the call that it belongs to, by its index."""
        custom = piece.child("custom")
        function = custom or piece.child("function")
        piece.take("type")
        index, call_id, name = piece.take("index"), piece.text("id"), function.text("name")
        text = function.text("input" if custom else "arguments")
        call = self._by_index.get(index if isinstance(index, int) else None)
        if call is None or not call.goes_on(call_id, name, text):
            call = self._by_index[index if isinstance(index, int) else None] = _Call()
            self._calls.append(call)
        call.id, call.name = call.id or call_id, call.name or name
        call.kind = "custom" if custom else call.kind
        call.pieces.append(text)

    def finish(self, out: Transcript) -> None:
        """Add the reply to the transcript. The last chunks say how it ended; one that does not end is cut."""
        text = "".join(self._texts)
        message: dict[str, JsonValue] = {"content": text, "tool_calls": [call.build() for call in self._calls]}
        if refusal := "".join(self._refusals):
            message["refusal"] = refusal
        if self._legacy is not None:
            message["function_call"] = self._legacy.build()["function"]
        read_reply_message(Cursor(message, out, "/chunks"))
        if self._audio and not (text or refusal):
            out.note_unread("text", self._audio, "what was said as audio")
        for raw, path in self.ends:
            out.end_reply(raw, path)
        if not any(raw.get("finish_reason") or raw.get("error") for raw, _ in self.ends):
            out.end_with(Ending("unfinished", "/chunks"))
