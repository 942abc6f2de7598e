"""Pair calls in one pass, exact matches first: for when there are too many to weigh each against each."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

from service.core.expectations.expectation import CallPattern, ExpectedCall
from service.core.expectations.templates import has_matcher
from service.core.json.contents import Contents

if TYPE_CHECKING:
    from service.core.case import Case


def pair_in_order(case: Case, rows: Sequence[int], columns: Sequence[int], *, same_tool: bool) -> list[tuple[int, int]]:
    """Return as many pairs (expected call, step) as there can be, required calls and those bound to a turn first.

    With `same_tool`, pair an expected call with a call that has exactly its arguments if there is one, else with the next
    call of its tool. Without it, pair it with the next call of any tool.
    """
    pool = _CallPool(case, columns)
    pairs: list[tuple[int, int]] = []
    for group in _iter_groups(case, rows):
        exact = {
            i: j
            for i in group
            if same_tool and (j := pool.take(_iter_exact_keys(pool, case.expected_calls[i]))) is not None
        }
        rest = [
            (i, pool.take(_iter_turn_keys(case, case.expected_calls[i], same_tool=same_tool)))
            for i in group
            if i not in exact
        ]
        pairs += [*exact.items(), *[(i, j) for i, j in rest if j is not None]]
    return pairs


def _iter_groups(case: Case, rows: Sequence[int]) -> Iterator[list[int]]:
    """Yield the expected calls in groups; those that fewer calls can meet come first, so that as many as possible are met."""
    ranked: defaultdict[tuple[bool, bool], list[int]] = defaultdict(list)
    for i in rows:
        expected_call = case.expected_calls[i]
        ranked[not expected_call.required, None in _list_turns(expected_call)].append(i)
    for rank in sorted(ranked):
        yield ranked[rank]


def _list_turns(expected_call: ExpectedCall) -> set[int | None]:
    return {_find_turn(expected_call, pattern) for _, pattern in expected_call.options}


def _find_turn(expected_call: ExpectedCall, pattern: CallPattern) -> int | None:
    """Return the turn in which the call must be made: None for any, -1 (no turn) where two different ones are asked for."""
    due = {expected_call.turn, pattern.turn} - {None}
    return next(iter(due), None) if len(due) < 2 else -1


class _CallPool:
    """The calls that are still unpaired, in queues by turn, by turn and tool, and by turn and arguments."""

    def __init__(self, case: Case, columns: Sequence[int]) -> None:
        self.contents = Contents()
        self._used: set[int] = set()
        self._queues: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        for j in columns:
            step = case.trace.steps[j]
            number = self.contents.number(step.call.arguments)
            for turn in (None, step.turn):
                for key in ((turn,), (turn, case.make_name_key(step.call.name)), (turn, number)):
                    self._queues[key].append(j)

    def take(self, keys: Iterator[Hashable]) -> int | None:
        """Remove and return the first unpaired call under one of these keys; None where there is none."""
        for key in keys:
            queue = self._queues.get(key) or deque[int]()
            while queue:
                j = queue.popleft()
                if j not in self._used:
                    self._used.add(j)
                    return j
        return None


def _iter_exact_keys(pool: _CallPool, expected_call: ExpectedCall) -> Iterator[Hashable]:
    for _, pattern in expected_call.options:
        if pattern.args is not None and not has_matcher(pattern.args):
            yield _find_turn(expected_call, pattern), pool.contents.number(pattern.args)


def _iter_turn_keys(case: Case, expected_call: ExpectedCall, *, same_tool: bool) -> Iterator[Hashable]:
    for _, pattern in expected_call.options:
        turn = _find_turn(expected_call, pattern)
        yield (turn, case.make_name_key(pattern.tool)) if same_tool else (turn,)
