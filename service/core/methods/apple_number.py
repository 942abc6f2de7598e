"""Compute Apple's two metrics of a trajectory as their code does.

Source: Apple's Evaluations framework (its documentation, and published results of its closed code). A forward scan finds the
ordered expectations, each after the one before; unordered ones may be met anywhere; unexpected calls, where they are not
allowed, count in the denominator. Nobody has published the rest; we assume that a failed ordered step leaves the scan where it
was, that the calls of an any-order group count one by one, that an unordered expectation may share a call with an ordered one,
that disallowed entries do not count in the percentage, and that 0 of 0 is 1.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.core.alignment.chain import Fits


@dataclass(frozen=True, slots=True)
class Metrics:
    """Both metrics, and the counts behind them."""

    all_pass: bool
    met: int
    total: int

    @property
    def percentage(self) -> float:
        """The expectations met over all there were, in [0, 1]."""
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
    """Compute the two metrics of one transcript.

    `positions` holds the ordered expectations of each position, `calls` the actual calls. `broken` says that a disallowed call
    was made, `unlisted` which calls are unexpected unless they meet an expectation.

    >>> compute_metrics([[0]], [], [0, 1], lambda expected, call: call == 0, unlisted=[0, 1])
    Metrics(all_pass=False, met=1, total=2)
    """
    pairs = _scan_forward(positions, calls, fits)
    for expected in unordered:
        first = next((call for call in calls if fits(expected, call)), None)
        if first is not None:
            pairs[expected] = first
    positives = sum(map(len, positions)) + len(unordered)
    extra = len(set(unlisted) - set(pairs.values()))
    return Metrics(len(pairs) == positives and not broken and not extra, len(pairs), positives + extra)


def _scan_forward(positions: Sequence[Sequence[int]], calls: Sequence[int], fits: Fits) -> dict[int, int]:
    """Return ordered expectation -> call: each takes the first call that fits, after the calls of the position before."""
    pairs: dict[int, int] = {}
    rest = list(calls)
    for position in positions:
        here: dict[int, int] = {}
        for expected in position:
            first = next((call for call in rest if call not in here.values() and fits(expected, call)), None)
            if first is not None:
                here[expected] = first
        pairs |= here
        rest = [call for call in rest if not here or call > max(here.values())]
    return pairs
