"""Assemble a streamed Chat Completions reply from its chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Required, cast

from pydantic import with_config
from typing_extensions import TypedDict

from service.core.json.parsing import parse_or_none
from service.intake.build import Transcript
from service.intake.chat import CallShape, ChatMessage
from service.intake.shapes import OPEN
from service.intake.unread_parts.members import JsonObject, define_members, note_unread_members


@with_config(OPEN)
class PieceOfFunction(TypedDict, total=False):
    """A piece of a function or custom tool call: the name comes whole, the rest bit by bit."""

    name: str | None
    arguments: str | None
    input: str | None


@with_config(OPEN)
class PieceOfCall(TypedDict, total=False):
    """A piece of a call; the first has its id and name."""

    index: int | None
    id: str | None
    function: PieceOfFunction | None
    custom: PieceOfFunction | None


@with_config(OPEN)
class DeltaShape(TypedDict, total=False):
    """What a chunk adds to a reply."""

    role: str | None
    content: str | None
    refusal: str | None
    tool_calls: list[PieceOfCall] | None
    function_call: PieceOfFunction | None


@with_config(OPEN)
class ChunkChoice(TypedDict, total=False):
    """A piece of one of the replies."""

    index: int
    delta: Required[DeltaShape]


@with_config(OPEN)
class ChunkShape(TypedDict, total=False):
    """A `chat.completion.chunk`."""

    choices: Required[list[ChunkChoice]]


def join_chunks(chunks: Sequence[ChunkShape]) -> dict[int, ChatMessage]:
    """Return the reply of each choice, by index."""
    replies: dict[int, _Reply] = {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            replies.setdefault(choice.get("index", 0), _Reply()).add(choice["delta"])
    return {index: reply.finish() for index, reply in sorted(replies.items())}


@dataclass(slots=True)
class _Call:
    """A call being assembled."""

    index: int | None
    id: str | None = None
    name: str = ""
    kind: Literal["function", "custom"] = "function"
    pieces: list[str] = field(default_factory=list[str])
    tries: int = 0
    """How often its arguments were tested for completeness."""

    def add(self, piece: PieceOfCall) -> None:
        """Add a piece."""
        self.id = self.id or piece.get("id")
        self.kind = "custom" if piece.get("custom") else self.kind
        function: PieceOfFunction = piece.get(self.kind) or {}
        self.name = self.name or function.get("name") or ""
        self.pieces.append(function.get("input" if self.kind == "custom" else "arguments") or "")

    def goes_on(self, piece: PieceOfCall) -> bool:
        """Whether a piece with the same index continues this call: some servers give all calls of a reply one index.

        A new call begins with another id or another name, or with the same name once this call's arguments are
        complete.
        """
        function: PieceOfFunction = piece.get("custom") or piece.get("function") or {}
        call_id, name = piece.get("id"), function.get("name")
        if call_id and self.id and call_id != self.id:
            return False
        if not name or not self.name:
            return True
        return name == self.name and (bool(call_id) or not function.get("arguments") or not self._is_whole())

    def _is_whole(self) -> bool:
        self.tries += 1
        return self.tries <= MAX_TRIES and parse_or_none("".join(self.pieces)) is not None

    def finish(self) -> CallShape:
        """Return the call as a message contains it."""
        text = "".join(self.pieces)
        if self.kind == "custom":
            return {"id": self.id, "custom": {"name": self.name, "input": text}}
        return {"id": self.id, "function": {"name": self.name, "arguments": text}}


MAX_TRIES = 10
"""Times that one call's arguments are tested for completeness, which bounds the work that a hostile stream can
cause.
"""


class _Reply:
    """A reply being assembled."""

    def __init__(self) -> None:
        self._texts: dict[Literal["content", "refusal"], list[str]] = {}
        self._calls: list[_Call] = []
        self._by_index: dict[int | None, _Call] = {}
        self._legacy: _Call | None = None

    def add(self, delta: DeltaShape) -> None:
        """Add a piece."""
        for name in _TEXTS:
            text = delta.get(name)
            if text is not None:
                self._texts.setdefault(name, []).append(text)
        for piece in delta.get("tool_calls") or ():
            self._find_call(piece).add(piece)
        legacy = delta.get("function_call")
        if legacy:
            self._legacy = self._legacy or _Call(None)
            self._legacy.add({"function": legacy})

    def _find_call(self, piece: PieceOfCall) -> _Call:
        """Return the call that a piece belongs to, by its index."""
        index = piece.get("index")
        call = self._by_index.get(index)
        if call is None or not call.goes_on(piece):
            call = self._by_index[index] = _Call(index)
            self._calls.append(call)
        return call

    def finish(self) -> ChatMessage:
        """Return the reply as a message."""
        message: ChatMessage = {"role": "assistant", "tool_calls": [call.finish() for call in self._calls]}
        for name, pieces in self._texts.items():
            message[name] = "".join(pieces)
        if self._legacy is not None:
            message["function_call"] = {"name": self._legacy.name, "arguments": "".join(self._legacy.pieces)}
        return message


_TEXTS: tuple[Literal["content"], Literal["refusal"]] = ("content", "refusal")


CHUNK = define_members("a chunk", "choices")
CHOICE = define_members("a choice", "index message delta", "reply")
DELTA = define_members(
    "a piece of a reply",
    "role content refusal tool_calls function_call audio",
    "reply",
)


def note_unread_chunk_members(transcript: Transcript, chunks: Sequence[ChunkShape], path: str) -> None:
    """Report what is not read of the chunks."""
    for index, chunk in enumerate(chunks):
        note_unread_members(transcript, chunk, CHUNK, f"{path}/{index}")
        for place, choice in enumerate(chunk["choices"]):
            note_unread_members(transcript, choice, CHOICE, f"{path}/{index}/choices/{place}")
            note_unread_members(transcript, choice["delta"], DELTA, f"{path}/{index}/choices/{place}/delta")
    spoken = [place for place, delta in _list_deltas(chunks, path) if delta.get("audio")]
    if spoken and not any(delta.get("content") for _, delta in _list_deltas(chunks, path)):
        transcript.note_unread("text", f"{spoken[0]}/audio", "what was said as audio")


def _list_deltas(chunks: Sequence[ChunkShape], path: str) -> Iterator[tuple[str, JsonObject]]:
    for index, chunk in enumerate(chunks):
        for place, choice in enumerate(chunk["choices"]):
            yield f"{path}/{index}/choices/{place}/delta", cast("JsonObject", choice["delta"])
