"""Decide which result answers which call, for all message formats: by id, then by tool name, then by order.

A result with the id of an earlier call belongs to that call; if several share the id, to the first unanswered call of the latest
message that has one. Otherwise a result that names its tool belongs to the first unanswered call of that tool in the preceding
calling message. Otherwise it belongs to that message's first unanswered call, unless both have ids, which then differ.

A result that answers no call makes no step: its call is missing and is reported as one that nobody could read. A second result
for an answered call is reported unless it repeats the first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
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
    unnamed: list[ResultEntry] = []
    unread: list[UnreadablePart] = []
    by_id = _ById(calls, answers)
    for result in results:
        index = by_id.take(result)
        if index is None:
            unnamed.append(result)
        elif index not in answers or answers[index] is None:
            answers[index] = result.result
        elif (
            (one := answers[index])
            and (other := result.result)
            and not (one.is_error == other.is_error and equals(one.content, other.content))
        ):
            unread.append(UnreadablePart("result", result.path, "a second result of one call is not read", result.turn))
    orphans = _match_rest(calls, unnamed, answers)
    reason = "a result answers no call of the trace: its call is missing"
    unread += [UnreadablePart("call", orphan.path, reason, orphan.turn) for orphan in orphans]
    return answers, [part for part in unread if part.path]


class _ById:
    def __init__(self, calls: Sequence[Step], answers: Answers) -> None:
        self._calls = calls
        self._answers = answers
        self._read = 0
        # For each id, a queue of unanswered calls for each message that used it, the latest message last.
        self._open: dict[str, list[tuple[int, deque[int]]]] = {}
        self._latest: dict[str, int] = {}

    def take(self, result: ResultEntry) -> int | None:
        """Return the call that a result belongs to: an unanswered one, else the latest. None: no call has its id."""
        for index in range(self._read, result.calls_before):
            self._add(index)
        self._read = max(self._read, result.calls_before)
        call_id = result.call_id
        if call_id is None or call_id not in self._latest:
            return None
        queues = self._open[call_id]
        if queues:
            self._latest[call_id] = queues[-1][1].popleft()
            if not queues[-1][1]:
                queues.pop()
        return self._latest[call_id]

    def _add(self, index: int) -> None:
        call, message = self._calls[index].call, self._calls[index].message
        if call.id is None:
            return
        queues = self._open.setdefault(call.id, [])
        self._latest[call.id] = index
        if index in self._answers:
            return
        if not queues or queues[-1][0] != message:
            queues.append((message, deque()))
        queues[-1][1].append(index)


def _match_rest(calls: Sequence[Step], results: Sequence[ResultEntry], answers: Answers) -> Iterator[ResultEntry]:
    """Answer calls of the message before each result, by tool, then by order; yield the results left over."""
    waiting = _WaitingCalls(calls, answers)
    left = [
        result
        for result in results
        if result.tool is None or not waiting.take(result, answers, (_find_message(calls, result), result.tool))
    ]
    for result in left:
        nameless = result.call_id is None
        key = (_find_message(calls, result), nameless)
        if result.tool is not None or not waiting.take(result, answers, key):
            yield result


def _find_message(calls: Sequence[Step], result: ResultEntry) -> int | None:
    return calls[result.calls_before - 1].message if result.calls_before else None


class _WaitingCalls:
    """The unanswered calls of each message: by tool name, all of them (True), and those without an id (False)."""

    def __init__(self, calls: Sequence[Step], answers: Answers) -> None:
        self._queues: dict[Hashable, deque[int]] = {}
        for index, one in enumerate(calls):
            call, message = one.call, one.message
            keys = (call.name, True) if call.id is not None else (call.name, True, False)
            for key in () if index in answers else keys:
                self._queues.setdefault((message, key), deque()).append(index)

    def take(self, result: ResultEntry, answers: Answers, key: Hashable) -> bool:
        """Answer the first call under this key with the result; return whether there was one."""
        queue = self._queues.get(key)
        while queue and queue[0] < result.calls_before:
            index = queue.popleft()
            if index not in answers:
                answers[index] = result.result
                return True
        return False
