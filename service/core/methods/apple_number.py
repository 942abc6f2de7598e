"""Apple's two metrics of a trajectory, as their code has them.

Source: Apple's Evaluations framework (its documentation, and results of its closed code that others published). Ordered
expectations are found by scanning forward, each after the one before; unordered ones anywhere; unexpected calls, where they
are not allowed, join the denominator. Nobody has published the rest, which is taken so: a failed ordered step leaves the scan
where it was, the calls of an any-order group count one by one, an unordered expectation may share a call with an ordered one,
what is disallowed is no part of the percentage, and nothing out of nothing is 1.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.core.alignment.chain import Fits


@dataclass(frozen=True, slots=True)
class Metrics:
    """Both metrics, and what they were made from."""

    all_pass: bool
    met: int
    total: int

    @property
    def percentage(self) -> float:
        """What was met over what there was to meet, in [0, 1]."""
        return self.met / self.total if self.total else 1.0


def compute_metrics(
    positions: Sequence[Sequence[int]],
    unordered: Sequence[int],
    calls: Sequence[int],
    fits: Fits,
    *,
    broken: bool = False,
    unlisted: Sequence[int] = (),
) -> Metrics:
    """The two metrics of one transcript.

    `positions` holds the ordered expectations of each place, `calls` the calls made; `broken` says that a disallowed call was
    made, `unlisted` which calls would be unexpected if no expectation took them.

    >>> compute_metrics([[0]], [], [0, 1], lambda expected, call: call == 0, unlisted=[0, 1])
    Metrics(all_pass=False, met=1, total=2)
    """
    taken = _scan_forward(positions, calls, fits)
    for expected in unordered:
        found = next((call for call in calls if fits(expected, call)), None)
        if found is not None:
            taken[expected] = found
    positives = sum(map(len, positions)) + len(unordered)
    extra = len(set(unlisted) - set(taken.values()))
    return Metrics(len(taken) == positives and not broken and not extra, len(taken), positives + extra)


def _scan_forward(positions: Sequence[Sequence[int]], calls: Sequence[int], fits: Fits) -> dict[int, int]:
    """Ordered expectation -> call: each takes the first call after the last position that fits."""
    taken: dict[int, int] = {}
    left = list(calls)
    for position in positions:
        placed: dict[int, int] = {}
        for expected in position:
            first = next((call for call in left if call not in placed.values() and fits(expected, call)), None)
            if first is not None:
                placed[expected] = first
        taken |= placed
        left = [call for call in left if not placed or call > max(placed.values())]
    return taken
