"""Read parts of messages, for formats whose messages are lists of parts of different kinds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pydantic import JsonValue

from service.core.json.members import list_items
from service.core.trace import ToolCall, ToolResult
from service.intake.build import Transcript
from service.intake.unread_parts.members import clip, note_unread_of_kind, note_unread_value
from service.intake.unread_parts.suspects import guess_kind


def list_content(transcript: Transcript, content: JsonValue, path: str) -> list[JsonValue]:
    """Return the parts of a message's content; a bare text is one part. Anything else is reported as unread."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if content is not None and not isinstance(content, list):
        note_unread_value(transcript, content, path, "a content that is no list", holds="text")
    return list_items(content)


class ReplyBuilder:
    """Builds an assistant message from its parts: the joined texts, then its calls, then their results.

    Text or calls after a result in the same message start a new message.
    """

    __slots__ = ("_calls", "_results", "_returned", "_said", "_texts", "_transcript")

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._texts: list[str] = []
        self._calls: list[tuple[ToolCall, ToolResult | None]] = []
        self._results: list[Callable[[], None]] = []
        self._returned = 0
        self._said = False

    def say(self, text: str) -> None:
        """Add a piece of text to the message, or to a new one if a call has returned."""
        if text and self._returned:
            self.cut()
        self._texts.append(text)

    def call(self, call: ToolCall, result: ToolResult | None = None) -> None:
        """Add a call, with its result if that stands beside it."""
        self._calls.append((call, result))
        self._returned += result is not None

    def add_result(
        self, call_id: str | None, result: ToolResult | None, *, path: str = "", tool: str | None = None
    ) -> None:
        """Add what a call returned, as `Transcript.add_result` takes it.

        The message ends once all its calls have returned.
        """
        self._results.append(partial(self._transcript.add_result, call_id, result, path=path, tool=tool))
        self._returned += 1
        if self._returned >= len(self._calls):
            self.cut()

    def cut(self) -> None:
        """End the current message; whatever follows starts a new one."""
        if self._texts or self._calls:
            self._transcript.say("assistant", "".join(self._texts))
            self._said = True
        for index, (call, result) in enumerate(self._calls):
            self._transcript.call(call, parallel=index > 0)
            if result is not None:
                self._transcript.answer(result)
        for add_result in self._results:
            add_result()
        self._texts, self._calls, self._results, self._returned = [], [], [], 0

    def end(self) -> None:
        """End the reply. One without any text or call becomes an empty message."""
        self.cut()
        if not self._said:
            self._transcript.say("assistant", "")


def note_unread_part(transcript: Transcript, part: JsonValue, name: str, path: str, *, of_user: bool = False) -> None:
    """Report a part of the type `name` as unread; what a user shows leaves nothing open."""
    note_unread_of_kind(transcript, part, f"a part of the type {clip(name)}", path, kind=guess_kind(name), idle=of_user)
