"""Which result answers which call: the one mechanism of all message formats, by id, then by the tool's name, then by order.

A result with the id of a call made before it is that call's: of several with that id, that of the first unanswered one of
the latest message that has one. Else one that names its tool belongs to the first unanswered call of that tool in the
preceding calling message. Else it belongs to that message's first unanswered call, unless both have ids, which differ.

What answers no call makes no step. Its call is missing then, and is told as one that nobody could read; of a call that was
answered already it is a second result, which is told unless it says the same again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from service.core.json.values import equals
from service.core.models.light import light
from service.core.trace import Step, ToolResult, UnreadablePart

Answers = dict[int, ToolResult | None]


class Returned(NamedTuple):
    """A result (None: it is not captured) with what it says of its call, and where it stands."""

    call_id: str | None
    tool: str | None
    result: ToolResult | None
    made: int
    """How many calls stand before it."""
    turn: int = 0
    path: str = ""
    """Its pointer, to be told where no call is left for it; "" where that may well be."""


@light
class Pairing:
    """Results by the index of the call that each answers, and what is told of those that answer none."""

    answers: Answers
    unread: Sequence[UnreadablePart] = ()


def pair(calls: Sequence[Step], results: Sequence[Returned], answered: Mapping[int, ToolResult | None]) -> Pairing:
    """Pairs results with calls, some of which are `answered` already. In linear time, whatever ids a hostile log repeats."""
    answers: Answers = dict(answered)
    unnamed: list[Returned] = []
    unread: list[UnreadablePart] = []
    by_id = _ById(calls, answers)
    for result in results:
        index = by_id.take(result)
        if index is None:
            unnamed.append(result)
        elif index not in answers or answers[index] is None:
            answers[index] = result.result
        elif _contradicts(answers[index], result.result):
            unread.append(UnreadablePart("result", result.path, "a second result of one call is not read", result.turn))
    orphans = _match_rest(calls, unnamed, answers)
    reason = "a result answers no call of the trace: its call is missing"
    unread += [UnreadablePart("call", orphan.path, reason, orphan.turn) for orphan in orphans]
    return Pairing(answers, [part for part in unread if part.path])


def _contradicts(first: ToolResult | None, second: ToolResult | None) -> bool:
    """Whether a second result says something else."""
    if first is None or second is None:
        return False
    return first.is_error != second.is_error or not equals(first.content, second.content)


class _ById:
    """The calls made so far by their ids."""

    def __init__(self, calls: Sequence[Step], answers: Answers) -> None:
        self._calls = calls
        self._answers = answers
        self._read = 0
        # For each id, a queue of unanswered calls for each message that used it, the latest message last.
        self._open: dict[str, list[tuple[int, deque[int]]]] = {}
        self._latest: dict[str, int] = {}

    def take(self, result: Returned) -> int | None:
        """The call that a result belongs to: an unanswered one or, where there is none, the latest. None: its id is no call's."""
        for index in range(self._read, result.made):
            self._add(index)
        self._read = max(self._read, result.made)
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


def _match_rest(calls: Sequence[Step], results: Sequence[Returned], answers: Answers) -> Iterator[Returned]:
    """Answers calls of the message before each result, by tool, then by order; gives the results that are left."""
    waiting = _Waiting(calls, answers)
    left = [
        result
        for result in results
        if result.tool is None or not waiting.take(result, answers, (_message(calls, result), result.tool))
    ]
    for result in left:
        nameless = result.call_id is None
        key = (_message(calls, result), nameless)
        if result.tool is not None or not waiting.take(result, answers, key):
            yield result


def _message(calls: Sequence[Step], result: Returned) -> int | None:
    """The calling message before a result."""
    return calls[result.made - 1].message if result.made else None


class _Waiting:
    """The unanswered calls of each message: by their tools, all of them (True), and those without an id (False)."""

    def __init__(self, calls: Sequence[Step], answers: Answers) -> None:
        self._queues: dict[Hashable, deque[int]] = {}
        for index, one in enumerate(calls):
            call, message = one.call, one.message
            keys = (call.name, True) if call.id is not None else (call.name, True, False)
            for key in () if index in answers else keys:
                self._queues.setdefault((message, key), deque()).append(index)

    def take(self, result: Returned, answers: Answers, key: Hashable) -> bool:
        """Answers the first call under this key by a result; whether there is one."""
        queue = self._queues.get(key)
        while queue and queue[0] < result.made:
            index = queue.popleft()
            if index not in answers:
                answers[index] = result.result
                return True
        return False
