"""Stratified sampling of labels: which stratum to label next for the narrowest interval of their rate.

Strata are ranges of the judge's value, cut without looking at labels. The rate weights each stratum by its share of all
items, so labels can be drawn more often where they tell more (Neyman 1934, "On the two different aspects of the
representative method", Journal of the Royal Statistical Society 97:558-625). Within a stratum they must be drawn at random.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import fsum, sqrt

from service.stats.intervals import CONFIDENCE
from service.stats.student import find_t_quantile

MAX_STRATA = 4


@dataclass(frozen=True, slots=True)
class Stratum:
    """Items whose value lies from `low` to `high`, and how many of them are labelled and pass."""

    low: float
    high: float
    items: int
    labels: int
    passing: int

    @property
    def smoothed_rate(self) -> float:
        """The pass rate of its labels, smoothed by one extra passing and one extra failing label."""
        return (self.passing + 1) / (self.labels + 2)

    @property
    def std(self) -> float:
        """The standard deviation of a single label."""
        return sqrt(self.smoothed_rate * (1 - self.smoothed_rate))


def cut_strata_of_counts(counts: Mapping[float, int], *, max_strata: int = MAX_STRATA) -> list[tuple[float, float]]:
    """Cut items into at most `max_strata` ranges of about equal size, by how many have each value; equal ones share a range."""
    ranked = sorted(counts)
    ends = list(accumulate([counts[one] for one in ranked]))
    cuts = sorted({bisect_right(ends, ends[-1] * at // max_strata) for at in range(max_strata)})
    return [(ranked[cut], ranked[end - 1]) for cut, end in pairwise([*cuts, len(ranked)])]


def compute_half_width(strata: Sequence[Stratum], extra: Sequence[int]) -> float:
    """Compute half the width of the interval of the rate, assuming `extra[i]` more labels in stratum i."""
    total = fsum([one.items for one in strata])
    parts = [
        (one.items / total * one.std) ** 2 / max(1.0, one.labels + more)
        for one, more in zip(strata, extra, strict=True)
    ]
    df = max(1.0, fsum([one.labels + more for one, more in zip(strata, extra, strict=True)]) - len(strata))
    return find_t_quantile(df, (1 + CONFIDENCE) / 2) * sqrt(fsum(parts))


def allocate_labels(strata: Sequence[Stratum], count: int) -> list[int]:
    """Distribute `count` further labels over the strata for the narrowest interval, one by one where each helps most.

    A stratum without a label comes first, and none gets more than it has unlabelled items.
    """
    total = fsum([one.items for one in strata])
    extra = [0] * len(strata)
    for _ in range(count):
        unfilled = [at for at, one in enumerate(strata) if one.labels + extra[at] < one.items]
        if not unfilled:
            break
        extra[max(unfilled, key=lambda at: (_measure_gain(strata[at], extra[at], total), -at))] += 1
    return extra


def _measure_gain(stratum: Stratum, extra: int, total: float) -> float:
    labels = stratum.labels + extra
    term = (stratum.items / total * stratum.std) ** 2
    return float("inf") if not labels else term / labels - term / (labels + 1)
