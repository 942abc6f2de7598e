"""Pairing calls of which there are too many to weigh each against each: in one pass, exact ones first."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

from service.core.expectations.expectation import CallPattern, ExpectedCall
from service.core.expectations.templates import has_matcher
from service.core.json.contents import Contents

if TYPE_CHECKING:
    from service.core.case import Case


def pair_in_order(case: Case, rows: Sequence[int], columns: Sequence[int], *, of_tool: bool) -> list[tuple[int, int]]:
    """As many pairs as there can be, required calls and those of one turn first.

    `of_tool`: a call is paired with one that has exactly its arguments where there is one, else with the next of its tool;
    if not, with the next of any tool.
    """
    left = _RemainingCalls(case, columns)
    found: list[tuple[int, int]] = []
    for group in _iter_groups(case, rows):
        exact = {
            i: j
            for i in group
            if of_tool and (j := left.take(_iter_exact_keys(left, case.expected_calls[i]))) is not None
        }
        rest = [
            (i, left.take(_iter_turn_keys(case, case.expected_calls[i], of_tool=of_tool)))
            for i in group
            if i not in exact
        ]
        found += [*exact.items(), *[(i, j) for i, j in rest if j is not None]]
    return found


def _iter_groups(case: Case, rows: Sequence[int]) -> Iterator[list[int]]:
    """Those that may be met by fewer calls are served first, so that as many as can be are met."""
    ranked: defaultdict[tuple[bool, bool], list[int]] = defaultdict(list)
    for i in rows:
        wanted = case.expected_calls[i]
        ranked[not wanted.required, None in _list_turns(wanted)].append(i)
    for rank in sorted(ranked):
        yield ranked[rank]


def _list_turns(wanted: ExpectedCall) -> set[int | None]:
    return {_find_turn(wanted, pattern) for _, pattern in wanted.options}


def _find_turn(wanted: ExpectedCall, pattern: CallPattern) -> int | None:
    """The turn in which it must be made: None for any, -1 where two are asked for."""
    due = {wanted.turn, pattern.turn} - {None}
    return next(iter(due), None) if len(due) < 2 else -1


class _RemainingCalls:
    """The calls that are left, by what they are asked for."""

    def __init__(self, case: Case, columns: Sequence[int]) -> None:
        self.contents = Contents()
        self._taken: set[int] = set()
        self._queues: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        for j in columns:
            step = case.trace.steps[j]
            number = self.contents.number(step.call.arguments)
            for turn in (None, step.turn):
                for key in ((turn,), (turn, case.make_name_key(step.call.name)), (turn, number)):
                    self._queues[key].append(j)

    def take(self, keys: Iterator[Hashable]) -> int | None:
        """The first call that is left under one of these keys."""
        for key in keys:
            queue = self._queues.get(key) or deque[int]()
            while queue:
                j = queue.popleft()
                if j not in self._taken:
                    self._taken.add(j)
                    return j
        return None


def _iter_exact_keys(left: _RemainingCalls, wanted: ExpectedCall) -> Iterator[Hashable]:
    for _, pattern in wanted.options:
        if pattern.args is not None and not has_matcher(pattern.args):
            yield _find_turn(wanted, pattern), left.contents.number(pattern.args)


def _iter_turn_keys(case: Case, wanted: ExpectedCall, *, of_tool: bool) -> Iterator[Hashable]:
    for _, pattern in wanted.options:
        turn = _find_turn(wanted, pattern)
        yield (turn, case.make_name_key(pattern.tool)) if of_tool else (turn,)
