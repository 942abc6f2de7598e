"""Parts of messages, for the formats whose messages are lists of parts that differ in kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from pydantic import JsonValue

from service.core.trace import ToolCall, ToolResult
from service.intake.accounting import account_unknown, clip, kind_of, lose_value
from service.intake.build import Transcript

Given = Mapping[str, JsonValue]


def list_items(value: JsonValue) -> list[JsonValue]:
    """The items of a list; none where it is no list."""
    return value if isinstance(value, list) else []


def list_objects(value: JsonValue) -> Iterator[Given]:
    """The objects in a list."""
    return (item for item in list_items(value) if isinstance(item, dict))


def find_text(given: Given, *names: str) -> str | None:
    """The first of these members that is a text with anything in it."""
    return next((value for name in names if isinstance(value := given.get(name), str) and value), None)


def find_object(given: Given, *names: str) -> dict[str, JsonValue]:
    """The first of these members that is an object; {} where none is."""
    for name in names:
        value = given.get(name)
        if isinstance(value, dict):
            return value
    return {}


def list_content(transcript: Transcript, content: JsonValue, path: str) -> list[JsonValue]:
    """The parts of a message's content; a bare text is one part. What is neither is told as unread."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if content is not None and not isinstance(content, list):
        lose_value(transcript, content, path, "a content that is no list", holds="text")
    return list_items(content)


class Speech:
    """A message of the assistant while its parts are read: its texts are joined, then come its calls, then their results.

    What is said or called after a result that stands in the same message is a message of its own.
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
        """A piece of the message's text; behind a call that has returned, of the next message's."""
        if text and self._returned:
            self.cut()
        self._texts.append(text)

    def call(self, call: ToolCall, result: ToolResult | None = None) -> None:
        """A call, with what it returned where that stands beside it."""
        self._calls.append((call, result))
        self._returned += result is not None

    def result(
        self, call_id: str | None, result: ToolResult | None, *, path: str = "", tool: str | None = None
    ) -> None:
        """What a call returned, as `Transcript.result` takes it. The message ends once all its calls have returned."""
        self._results.append(partial(self._transcript.result, call_id, result, path=path, tool=tool))
        self._returned += 1
        if self._returned >= len(self._calls):
            self.cut()

    def cut(self) -> None:
        """What follows is a message of its own, if anything does."""
        if self._texts or self._calls:
            self._transcript.say("assistant", "".join(self._texts))
            self._said = True
        for index, (call, result) in enumerate(self._calls):
            self._transcript.call(call, parallel=index > 0)
            if result is not None:
                self._transcript.answer(result)
        for tell in self._results:
            tell()
        self._texts, self._calls, self._results, self._returned = [], [], [], 0

    def end(self) -> None:
        """The end of the message. One without any text or call is an empty one."""
        self.cut()
        if not self._said:
            self._transcript.say("assistant", "")


def lose_part(transcript: Transcript, part: JsonValue, name: str, path: str, *, of_user: bool = False) -> None:
    """Tells the transcript of a part of the type `name` that is not read; what a user shows leaves nothing open."""
    account_unknown(transcript, part, f"a part of the type {clip(name)}", path, kind=kind_of(name), idle=of_user)
