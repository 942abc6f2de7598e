"""Where a reader puts what the assistant said, called and got back: one message at a time, or item by item."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from service.core.trace import ToolCall, ToolResult
from service.intake.build import Transcript


class Speech:
    """Builds a reply from its parts: the joined texts, then its calls, then their results.

    Text or calls after a result in the same reply start a new message.
    """

    __slots__ = ("_calls", "_out", "_results", "_returned", "_texts", "calls", "said")

    def __init__(self, out: Transcript) -> None:
        self._out = out
        self._texts: list[str] = []
        self._calls: list[tuple[ToolCall, ToolResult | None]] = []
        self._results: list[Callable[[], None]] = []
        self._returned = 0
        self.said = ""
        """What was said so far."""
        self.calls: list[ToolCall] = []
        """What was called so far."""

    def add_text(self, text: str) -> None:
        """Add a piece of text to the message, or to a new one if a call has returned."""
        if text and self._returned:
            self.cut()
        self._texts.append(text)
        self.said += text

    def call(self, call: ToolCall, result: ToolResult | None = None) -> None:
        """Add a call, with its result if that stands beside it."""
        self._calls.append((call, result))
        self._returned += result is not None
        self.calls.append(call)

    def add_result(
        self, call_id: str | None, result: ToolResult | None, *, path: str = "", tool: str | None = None
    ) -> None:
        """Add what a call returned, as `Transcript.add_result` takes it.

        The message ends once all its calls have returned.
        """
        self._results.append(partial(self._out.add_result, call_id, result, path=path, tool=tool))
        self._returned += 1
        if self._returned >= len(self._calls):
            self.cut()

    def cut(self) -> None:
        """End the current message; whatever follows starts a new one."""
        if any(self._texts) or self._calls:
            self._out.say("assistant", "".join(self._texts))
        for index, (call, result) in enumerate(self._calls):
            self._out.call(call, result, parallel=index > 0)
        for add_result in self._results:
            add_result()
        self._texts, self._calls, self._results, self._returned = [], [], [], 0

    def end(self) -> None:
        """End the reply. One without any text or call becomes an empty message."""
        self.cut()
        if not (self.said or self.calls):
            self._out.say("assistant", "")


Sink = Speech | Transcript
"""A message of the assistant, or what stands beside messages: there each call is one of the assistant's message before it."""
