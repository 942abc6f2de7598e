"""Pair expected and actual calls by fit alone: the longest chain where order counts, the fullest set where it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from service.core.expectations.expectation import ExpectedCall
from service.core.work_limits import Meter

Fits = Callable[[int, int], bool]
"""Whether an expected call (first argument) can be met by an actual call (second)."""
Pairs = dict[int, int]
"""Expected call -> actual call, one to one."""


def list_positions(expected_calls: Sequence[ExpectedCall], indices: Iterable[int]) -> list[list[int]]:
    """Group these expected calls by position, as `find_longest_chain` takes them.

    Calls of one `any_order` group share a position. A call that no order names stands where it was written. The section
    of a later turn comes after all of an earlier one.
    """
    places: dict[tuple[int, int], list[int]] = {}
    for n in indices:
        one = expected_calls[n]
        places.setdefault((one.section, n if one.position is None else one.position), []).append(n)
    return [places[place] for place in sorted(places)]


_UNCHANGED, _EXTENDED, _FROM_LEFT = 0, 1, 2
"""Where the longest chain within the first n calls comes from: the row before, a pair of this row, or the first n - 1 calls."""

_GroupStep = tuple[int, tuple[tuple[int, int], ...]]
"""How many calls the chain before this position may use, and the pairs of this position."""


class _ChainRow(NamedTuple):
    """A row of the dynamic programme, for one position.

    It holds bytes and numbers alone, because a table may have a million cells: only the chain that wins is put together.
    """

    lengths: list[int]
    """For every n, the length of the longest chain within the first n calls."""
    origins: bytearray
    """For every n, where that chain comes from."""
    group_steps: Mapping[int, _GroupStep]
    """By n, the step taken where several expected calls share the position."""


def find_longest_chain(
    positions: Sequence[Sequence[int]], calls: Sequence[int], fits: Fits, *, meter: Meter | None = None
) -> Pairs:
    """Return the most expected calls that can be met in order, every position after the one before it.

    `positions` holds the expected calls of each position; those that share one may come in any order. `calls` are the actual
    calls, in order. With one call at each position and names alone, this is the longest common subsequence.

    >>> find_longest_chain(
    ...     [[0], [1, 2]], [0, 1, 2], lambda expected, call: (expected, call) in {(0, 0), (1, 2), (2, 1)}
    ... )
    {0: 0, 2: 1, 1: 2}
    """
    meter = meter or Meter()
    meter.spend("comparisons", len(calls))
    if (whole := _find_whole_chain(positions, calls, fits)) is not None:
        return whole
    lengths, rows = [0] * (len(calls) + 1), list[_ChainRow]()
    for position in positions:
        if len(position) == 1:
            meter.spend("comparisons", len(calls))
            rows.append(_extend_by_one(lengths, position[0], calls, fits))
        else:
            rows.append(_extend_by_group(lengths, position, calls, fits, meter))
        lengths = rows[-1].lengths
    return _collect_pairs(positions, rows, calls)


def _find_whole_chain(positions: Sequence[Sequence[int]], calls: Sequence[int], fits: Fits) -> Pairs | None:
    """Return the chain that has every position, each as late as it can be, as the table would; None if there is none."""
    pairs: Pairs = {}
    n = len(calls)
    for position in reversed(positions):
        n = next((k for k in range(n - 1, -1, -1) if fits(position[0], calls[k])), -1) if len(position) == 1 else -1
        if n < 0:
            return None
        pairs[position[0]] = calls[n]
    return dict(reversed(pairs.items()))


def _extend_by_one(before: list[int], expected: int, calls: Sequence[int], fits: Fits) -> _ChainRow:
    longer, origins, most = [0], bytearray(len(before)), 0
    for n, call in enumerate(calls):
        length = before[n + 1]
        if before[n] == length and fits(expected, call):
            length, origins[n + 1] = length + 1, _EXTENDED
        if length < most:
            length, origins[n + 1] = most, _FROM_LEFT
        most = length
        longer.append(length)
    return _ChainRow(longer, origins, {})


def _extend_by_group(
    before: list[int], position: Sequence[int], calls: Sequence[int], fits: Fits, meter: Meter
) -> _ChainRow:
    longer, origins, group_steps = list(before), bytearray(len(before)), dict[int, _GroupStep]()
    # Start only where the chain before has just grown: an earlier start with a chain as long leaves the group more calls.
    starts = [n for n in range(len(calls)) if n == 0 or before[n] > before[n - 1]]
    for start in starts:
        matcher = _BipartiteMatcher(position, fits, meter)
        pairs = matcher.pairs
        for n in range(start, len(calls)):
            if matcher.add(calls[n]) and before[start] + len(pairs) > longer[n + 1]:
                meter.spend("comparisons", 4 * len(pairs))
                longer[n + 1], origins[n + 1] = before[start] + len(pairs), _EXTENDED
                group_steps[n + 1] = start, tuple(pairs.items())
    for n in range(len(calls)):
        if longer[n] > longer[n + 1]:
            longer[n + 1], origins[n + 1] = longer[n], _FROM_LEFT
    return _ChainRow(longer, origins, group_steps)


def _collect_pairs(positions: Sequence[Sequence[int]], rows: Sequence[_ChainRow], calls: Sequence[int]) -> Pairs:
    found: list[tuple[tuple[int, int], ...]] = []
    n = len(calls)
    for position, row in zip(reversed(positions), reversed(rows), strict=True):
        while row.origins[n] == _FROM_LEFT:
            n -= 1
        if row.origins[n] == _EXTENDED:
            n, pairs = row.group_steps.get(n) or (n - 1, ((position[0], calls[n - 1]),))
            found.append(pairs)
    return {expected: call for pairs in reversed(found) for expected, call in sorted(pairs, key=lambda pair: pair[1])}


def find_fullest(expected: Sequence[int], calls: Sequence[int], fits: Fits, *, meter: Meter | None = None) -> Pairs:
    """Return the most expected calls that can be met in any order, each by a call of its own.

    >>> find_fullest([0, 1], [0, 1], lambda expected, call: expected == 0 or call == 0)
    {0: 1, 1: 0}
    """
    matcher = _BipartiteMatcher(expected, fits, meter or Meter())
    for call in calls:
        if len(matcher.pairs) == len(expected):
            break
        matcher.add(call)
    return matcher.pairs


class _BipartiteMatcher:
    """A maximum one-to-one matching of expected calls and actual calls, grown one actual call at a time."""

    def __init__(self, expected: Sequence[int], fits: Fits, meter: Meter) -> None:
        self.pairs: Pairs = {}
        self._expected_by_call: Pairs = {}
        self._size = len(expected)
        self._open = list(expected)
        """The expected calls that may still be paired, or paired with another call."""
        self._fits = fits
        self._meter = meter

    def add(self, call: int) -> bool:
        """Pair the call, re-pairing others where they fit elsewhere (an augmenting path). False: no pair can be added."""
        if len(self.pairs) == self._size:
            return False
        claims: Pairs = {}  # expected call -> the actual call that reached it first
        queue = [call]
        for claimant in queue:
            free = self._find_free(claimant, claims, queue)
            if free is not None:
                self._flip_path(free, claims)
                return True
        # What this search reached leads to no free place, now or later, so no later search need look there.
        self._open = [expected for expected in self._open if expected not in claims]
        return False

    def _find_free(self, claimant: int, claims: Pairs, queue: list[int]) -> int | None:
        """Find the first unpaired expected call that fits; queue the calls paired with those that come before it."""
        for n, expected in enumerate(self._open):
            if expected in claims or not self._fits(expected, claimant):
                continue
            claims[expected] = claimant
            if expected not in self.pairs:
                self._meter.spend("comparisons", n + 1)
                return expected
            queue.append(self.pairs[expected])
        self._meter.spend("comparisons", len(self._open))
        return None

    def _flip_path(self, free: int, claims: Pairs) -> None:
        """Pair every expected call on the path with the call that claimed it, from the free one back."""
        expected: int | None = free
        while expected is not None:
            call = claims[expected]
            before = self._expected_by_call.get(call)
            self.pairs[expected], self._expected_by_call[call] = call, expected
            expected = before
