"""Decide which result answers which call, for all message formats: by id, then by tool name, then by order.

A result with the id of an earlier call belongs to that call; if several share the id, to the first unanswered call of the latest
message that has one. Otherwise a result that names its tool belongs to the first unanswered call of that tool in the preceding
calling message. Otherwise it belongs to that message's first unanswered call, unless both have ids, which then differ.

A result that answers no call makes no step: its call is missing and is reported as one that nobody could read. A second result
for an answered call is reported unless it repeats the first.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from service.core.json.values import equals
from service.core.trace import Step, ToolResult, UnreadablePart

Answers = dict[int, ToolResult | None]


class ResultEntry(NamedTuple):
    """A result (None: not captured) with what it says about its call, and where it stands."""

    call_id: str | None
    tool: str | None
    result: ToolResult | None
    calls_before: int
    """Number of calls before it."""
    turn: int = 0
    path: str = ""
    """Its pointer, reported if no call is left for it; "" if that is no fault."""


def pair(
    calls: Sequence[Step], results: Sequence[ResultEntry], answered: Mapping[int, ToolResult | None]
) -> tuple[Answers, Sequence[UnreadablePart]]:
    """Pair results with calls, some of which are `answered` already.

    Returns results by the index of the call that each answers, and the results that answer none.
    Linear time, whatever ids a hostile log repeats.
    """
    answers: Answers = dict(answered)
    unread: list[UnreadablePart] = []
    by_id = _WaitingCalls(calls, answers, lambda step: () if step.call.id is None else (step.call.id,))
    unnamed: list[ResultEntry] = []
    for result in results:
        index = by_id.take(result, result.call_id)
        if index is None:
            unnamed.append(result)
        elif (one := answers.get(index)) is None:
            answers[index] = result.result
        elif (other := result.result) and not (one.is_error == other.is_error and equals(one.content, other.content)):
            unread.append(UnreadablePart("result", result.path, "a second result of one call is not read", result.turn))

    def find_message(result: ResultEntry) -> int | None:
        return calls[result.calls_before - 1].message if result.calls_before else None

    by_tool = _WaitingCalls(calls, answers, lambda step: ((step.message, step.call.name),))
    left = [one for one in unnamed if one.tool is None or not by_tool.answer(one, (find_message(one), one.tool))]
    # A result without an id may answer any call, one with an id only a call without.
    in_order = _WaitingCalls(calls, answers, lambda step: [(step.message, step.call.id is None), (step.message, "any")])
    reason = "a result answers no call of the trace: its call is missing"
    for result in left:
        key = (find_message(result), "any" if result.call_id is None else True)
        if result.tool is not None or not in_order.answer(result, key):
            unread.append(UnreadablePart("call", result.path, reason, result.turn))
    return answers, [part for part in unread if part.path]


class _WaitingCalls:
    """The unanswered calls under each key, by message; those that a result follows are added as it comes."""

    def __init__(
        self, calls: Sequence[Step], answers: Answers, list_keys: Callable[[Step], Sequence[Hashable]]
    ) -> None:
        self._calls, self._answers, self._list_keys = calls, answers, list_keys
        self._added = 0
        self._waiting: defaultdict[Hashable, list[tuple[int, deque[int]]]] = defaultdict(list)
        self._latest: dict[Hashable, int] = {}

    def take(self, result: ResultEntry, key: Hashable) -> int | None:
        """Return the first unanswered call of the latest message that has one; else the latest call; None: there is none."""
        for index in range(self._added, result.calls_before):
            self._add(index)
        self._added = max(self._added, result.calls_before)
        waiting = self._waiting[key]
        while waiting:
            queue = waiting[-1][1]
            while queue:
                index = queue.popleft()
                if index not in self._answers:
                    self._latest[key] = index
                    return index
            waiting.pop()
        return self._latest.get(key)

    def answer(self, result: ResultEntry, key: Hashable) -> bool:
        """Answer the first unanswered call under a key with a result; return whether there was one."""
        index = self.take(result, key)
        if index is None or index in self._answers:
            return False
        self._answers[index] = result.result
        return True

    def _add(self, index: int) -> None:
        message = self._calls[index].message
        for key in self._list_keys(self._calls[index]):
            waiting, self._latest[key] = self._waiting[key], index
            if index not in self._answers:
                if not waiting or waiting[-1][0] != message:
                    waiting.append((message, deque()))
                waiting[-1][1].append(index)
