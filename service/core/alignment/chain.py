"""Which calls stand for which expected ones where the order counts: the longest chain, and the fullest set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from service.core.expectations.expectation import ExpectedCall
from service.core.work_limits import Meter

Fits = Callable[[int, int], bool]
"""Whether an expected call (first) can be met by a call made (second)."""
Pairs = dict[int, int]
"""Expected call -> call made, one to one."""


def list_positions(wanted: Sequence[ExpectedCall], indices: Iterable[int]) -> list[list[int]]:
    """These expected calls by place, as `find_longest_chain` takes them.

    Those of one `any_order` group share a place; one that no order names stands where it was written; later turns come
    after all of an earlier one.
    """
    places: dict[tuple[int, int], list[int]] = {}
    for n in indices:
        one = wanted[n]
        places.setdefault((one.turn or 0, n if one.position is None else one.position), []).append(n)
    return [places[place] for place in sorted(places)]


_KEPT, _TAKEN, _LEFT = 0, 1, 2
"""How the longest chain within the first n calls came about: as it was before this place, by this place, or with fewer calls."""

_Taking = tuple[int, tuple[tuple[int, int], ...]]
"""How many calls the chain before may use, and the pairs of this place."""


class _Row(NamedTuple):
    """One place: the length of the longest chain within the first n calls, for every n, and how it came about.

    Bytes and numbers alone, for there may be a million of them: only the chain that wins is put together.
    """

    lengths: list[int]
    ways: bytearray
    takings: Mapping[int, _Taking]
    """By n, where several expected calls share the place."""


def find_longest_chain(
    positions: Sequence[Sequence[int]], calls: Sequence[int], fits: Fits, *, meter: Meter | None = None
) -> Pairs:
    """The most expected calls that can be met in order: every position after the one before it.

    `positions` holds the expected calls of each place; those that share a place may come in any order. `calls` are the calls
    made, in order. With one call to a place and names alone this is the longest common subsequence.

    >>> find_longest_chain(
    ...     [[0], [1, 2]], [0, 1, 2], lambda expected, call: (expected, call) in {(0, 0), (1, 2), (2, 1)}
    ... )
    {0: 0, 2: 1, 1: 2}
    """
    meter = meter or Meter()
    lengths, rows = [0] * (len(calls) + 1), list[_Row]()
    for position in positions:
        if len(position) == 1:
            meter.spend("comparisons", len(calls))
            rows.append(_extend_by_one(lengths, position[0], calls, fits))
        else:
            rows.append(_extend_by_group(lengths, position, calls, fits, meter))
        lengths = rows[-1].lengths
    return _collect_pairs(positions, rows, calls)


def _extend_by_one(before: list[int], wanted: int, calls: Sequence[int], fits: Fits) -> _Row:
    longer, ways, most = [0], bytearray(len(before)), 0
    for n, call in enumerate(calls):
        length = before[n + 1]
        if before[n] == length and fits(wanted, call):
            length, ways[n + 1] = length + 1, _TAKEN
        if length < most:
            length, ways[n + 1] = most, _LEFT
        most = length
        longer.append(length)
    return _Row(longer, ways, {})


def _extend_by_group(
    before: list[int], position: Sequence[int], calls: Sequence[int], fits: Fits, meter: Meter
) -> _Row:
    longer, ways, takings = list(before), bytearray(len(before)), dict[int, _Taking]()
    starts = [n for n in range(len(calls)) if n == 0 or before[n] > before[n - 1]]
    for start in starts:  # where the chain is as long further back, more calls are left for the group
        placing = _Placer(position, fits, meter)
        held = placing.held
        for n in range(start, len(calls)):
            if placing.place(calls[n]) and before[start] + len(held) > longer[n + 1]:
                meter.spend("comparisons", 4 * len(held))
                longer[n + 1], ways[n + 1] = before[start] + len(held), _TAKEN
                takings[n + 1] = start, tuple(held.items())
    for n in range(len(calls)):
        if longer[n] > longer[n + 1]:
            longer[n + 1], ways[n + 1] = longer[n], _LEFT
    return _Row(longer, ways, takings)


def _collect_pairs(positions: Sequence[Sequence[int]], rows: Sequence[_Row], calls: Sequence[int]) -> Pairs:
    found: list[tuple[tuple[int, int], ...]] = []
    n = len(calls)
    for position, row in zip(reversed(positions), reversed(rows), strict=True):
        while row.ways[n] == _LEFT:
            n -= 1
        if row.ways[n] == _TAKEN:
            n, pairs = row.takings.get(n) or (n - 1, ((position[0], calls[n - 1]),))
            found.append(pairs)
    return {expected: call for pairs in reversed(found) for expected, call in sorted(pairs, key=_get_call)}


def _get_call(pair: tuple[int, int]) -> int:
    return pair[1]


def find_fullest(expected: Sequence[int], calls: Sequence[int], fits: Fits, *, meter: Meter | None = None) -> Pairs:
    """The most expected calls that can be met in any order, each call meeting one.

    >>> find_fullest([0, 1], [0, 1], lambda expected, call: expected == 0 or call == 0)
    {0: 1, 1: 0}
    """
    placing = _Placer(expected, fits, meter or Meter())
    for call in calls:
        if len(placing.held) == len(expected):
            break
        placing.place(call)
    return placing.held


class _Placer:
    """Gives calls places, one to one."""

    def __init__(self, expected: Sequence[int], fits: Fits, meter: Meter) -> None:
        self.held: Pairs = {}
        self._holds: Pairs = {}
        self._places = len(expected)
        self._open = list(expected)
        """The places that may still change hands."""
        self._fits = fits
        self._meter = meter

    def place(self, call: int) -> bool:
        """Finds the call a place, moving others where they fit elsewhere (an augmenting path)."""
        if len(self.held) == self._places:
            return False
        asked: Pairs = {}  # place -> the call that asks for it
        queue = [call]
        for asking in queue:
            free = self._ask(asking, asked, queue)
            if free is not None:
                self._move(free, asked)
                return True
        # What was asked for in vain leads to no free place, now or later, so nobody need ask there again.
        self._open = [place for place in self._open if place not in asked]
        return False

    def _ask(self, asking: int, asked: Pairs, queue: list[int]) -> int | None:
        """The first free place that fits a call; those who hold the places before it are to ask in turn."""
        for n, place in enumerate(self._open):
            if place in asked or not self._fits(place, asking):
                continue
            asked[place] = asking
            if place not in self.held:
                self._meter.spend("comparisons", n + 1)
                return place
            queue.append(self.held[place])
        self._meter.spend("comparisons", len(self._open))
        return None

    def _move(self, place: int, asked: Pairs) -> None:
        """Gives every place on the path to the call that asked for it."""
        at: int | None = place
        while at is not None:
            mover = asked[at]
            before = self._holds.get(mover)
            self.held[at], self._holds[mover] = mover, at
            at = before
