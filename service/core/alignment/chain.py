"""Which calls stand for which expected ones where the order counts: the longest chain, and the fullest set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from service.core.budget import Meter
from service.core.expectation import ExpectedCall

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


class _Link(NamedTuple):
    """A chain that ends here: its length, the pairs of its last position, and the chain before."""

    length: int
    pairs: Pairs
    before: _Link | None


_START = _Link(0, {}, None)


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
    best = [_START] * (len(calls) + 1)  # best[n]: the longest chain within the first n calls
    for position in positions:
        longer = list(best)
        if len(position) == 1:
            meter.spend("comparisons", len(calls))
            _extend_by_one(best, longer, position, calls, fits)
        else:
            _extend_by_group(best, longer, position, calls, fits, meter)
        for n in range(len(calls)):
            if longer[n].length > longer[n + 1].length:
                longer[n + 1] = longer[n]
        best = longer
    return _collect_pairs(best[-1])


def _extend_by_one(
    best: list[_Link], longer: list[_Link], position: Sequence[int], calls: Sequence[int], fits: Fits
) -> None:
    for n, call in enumerate(calls):
        if best[n].length + 1 > longer[n + 1].length and fits(position[0], call):
            longer[n + 1] = _Link(best[n].length + 1, {position[0]: call}, best[n])


def _extend_by_group(
    best: list[_Link],
    longer: list[_Link],
    position: Sequence[int],
    calls: Sequence[int],
    fits: Fits,
    meter: Meter,
) -> None:
    starts = [n for n in range(len(calls)) if n == 0 or best[n].length > best[n - 1].length]
    for start in starts:  # where the chain is as long further back, more calls are left for the group
        placing = _Placer(position, fits, meter)
        held = placing.held
        for n in range(start, len(calls)):
            if not placing.place(calls[n]):
                continue
            if best[start].length + len(held) > longer[n + 1].length:
                meter.spend("comparisons", 4 * len(held))
                longer[n + 1] = _Link(best[start].length + len(held), dict(held), best[start])


def _collect_pairs(end: _Link) -> Pairs:
    links: list[_Link] = []
    link: _Link | None = end
    while link is not None:
        links.append(link)
        link = link.before
    return {expected: call for link in reversed(links) for expected, call in sorted(link.pairs.items(), key=_get_call)}


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
