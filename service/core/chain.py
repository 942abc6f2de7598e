"""Which calls stand for which expected ones where the order counts: the longest chain, and the fullest set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

Fits = Callable[[int, int], bool]
"""Whether an expected call (first) can be met by a call made (second)."""
Pairs = dict[int, int]
"""Expected call -> call made, one to one."""


class _Link(NamedTuple):
    """A chain that ends here: its length, the pairs of its last position, and the chain before."""

    length: int
    pairs: Pairs
    before: _Link | None


_START = _Link(0, {}, None)


def longest_chain(positions: Sequence[Sequence[int]], calls: Sequence[int], fits: Fits) -> Pairs:
    """The most expected calls that can be met in order: every position after the one before it.

    `positions` holds the expected calls of each place; those that share a place may come in any order. `calls` are the calls
    made, in order. With one call to a place and names alone this is the longest common subsequence.

    >>> longest_chain([[0], [1, 2]], [0, 1, 2], lambda expected, call: (expected, call) in {(0, 0), (1, 2), (2, 1)})
    {0: 0, 2: 1, 1: 2}
    """
    best = [_START] * (len(calls) + 1)  # best[n]: the longest chain within the first n calls
    for position in positions:
        longer = list(best)
        extend = _with_one if len(position) == 1 else _with_group
        extend(best, longer, position, calls, fits)
        for n in range(len(calls)):
            if longer[n].length > longer[n + 1].length:
                longer[n + 1] = longer[n]
        best = longer
    return _unlinked(best[-1])


def _with_one(
    best: list[_Link], longer: list[_Link], position: Sequence[int], calls: Sequence[int], fits: Fits
) -> None:
    for n, call in enumerate(calls):
        if best[n].length + 1 > longer[n + 1].length and fits(position[0], call):
            longer[n + 1] = _Link(best[n].length + 1, {position[0]: call}, best[n])


def _with_group(
    best: list[_Link], longer: list[_Link], position: Sequence[int], calls: Sequence[int], fits: Fits
) -> None:
    starts = [n for n in range(len(calls)) if n == 0 or best[n].length > best[n - 1].length]
    for start in starts:  # where the chain is as long further back, more calls are left for the group
        held: Pairs = {}
        for n in range(start, len(calls)):
            if not _placed(calls[n], position, held, fits):
                continue
            if best[start].length + len(held) > longer[n + 1].length:
                longer[n + 1] = _Link(best[start].length + len(held), dict(held), best[start])


def _unlinked(end: _Link) -> Pairs:
    links: list[_Link] = []
    link: _Link | None = end
    while link is not None:
        links.append(link)
        link = link.before
    return {expected: call for link in reversed(links) for expected, call in sorted(link.pairs.items(), key=_by_call)}


def _by_call(pair: tuple[int, int]) -> int:
    return pair[1]


def fullest(expected: Sequence[int], calls: Sequence[int], fits: Fits) -> Pairs:
    """The most expected calls that can be met in any order, each call meeting one.

    >>> fullest([0, 1], [0, 1], lambda expected, call: expected == 0 or call == 0)
    {0: 1, 1: 0}
    """
    held: Pairs = {}
    for call in calls:
        if len(held) == len(expected):
            break
        _placed(call, expected, held, fits)
    return held


def _placed(call: int, expected: Sequence[int], held: Pairs, fits: Fits) -> bool:
    """Finds the call a place, moving others where they fit elsewhere (an augmenting path)."""
    if len(held) == len(expected):
        return False
    holds = {other: place for place, other in held.items()}
    asked: Pairs = {}  # place -> the call that asks for it
    queue = [call]
    for asking in queue:
        for place in expected:
            if place in asked or not fits(place, asking):
                continue
            asked[place] = asking
            if place not in held:
                _move(place, asked, held, holds)
                return True
            queue.append(held[place])
    return False


def _move(place: int, asked: Pairs, held: Pairs, holds: Pairs) -> None:
    """Gives every place on the path to the call that asked for it."""
    at: int | None = place
    while at is not None:
        held[at] = asked[at]
        at = holds.get(asked[at])
