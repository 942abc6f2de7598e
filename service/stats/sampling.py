"""Stratified sampling of labels: the rate that they give, and which stratum to label next.

Strata are ranges of the judge's value, cut without looking at labels. The rate weights each stratum by its share of all
items, so labels can be drawn more often where they tell more (Neyman 1934, "On the two different aspects of the
representative method", Journal of the Royal Statistical Society 97:558-625). Within a stratum they must be drawn at random.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import fsum, inf, sqrt

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
    def variance(self) -> float:
        """The variance of a single label."""
        return self.smoothed_rate * (1 - self.smoothed_rate)


@dataclass(frozen=True, slots=True)
class StratifiedRate:
    """A rate in [0, 1] with its interval."""

    value: float
    low: float
    high: float


def cut_strata(counts: Mapping[float, int]) -> list[tuple[float, float]]:
    """Cut the values of all items into at most `MAX_STRATA` ranges of about equal size. `counts`: the items of each value."""
    ranked = sorted(counts)
    ends = list(accumulate([counts[one] for one in ranked]))
    cuts = sorted({bisect_right(ends, ends[-1] * at // MAX_STRATA) for at in range(MAX_STRATA)})
    return [(ranked[cut], ranked[end - 1]) for cut, end in pairwise([*cuts, len(ranked)])]


def estimate_stratified_rate(strata: Sequence[Stratum], *, ess_ratio: float = 1.0) -> StratifiedRate | None:
    """Estimate the pass rate of all items; None where a stratum has no label.

    `ess_ratio`: the effective sample size per label, at most 1; below 1 where labels within a group are alike.
    """
    if any(not one.labels for one in strata):
        return None
    total = fsum([one.items for one in strata])
    value = fsum([one.items / total * one.passing / one.labels for one in strata])
    centre = fsum([one.items / total * one.smoothed_rate for one in strata])
    half = compute_half_width(strata, [0] * len(strata), ess_ratio=ess_ratio)
    return StratifiedRate(value, max(0.0, min(value, centre - half)), min(1.0, max(value, centre + half)))


def compute_half_width(strata: Sequence[Stratum], extra: Sequence[int], *, ess_ratio: float = 1.0) -> float:
    """Compute half the width of the 95 % interval, assuming `extra[i]` more labels in stratum i."""
    total = fsum([one.items for one in strata])
    sizes = [ess_ratio * (one.labels + more) for one, more in zip(strata, extra, strict=True)]
    parts = [(one.items / total) ** 2 * one.variance / max(1.0, size) for one, size in zip(strata, sizes, strict=True)]
    df = max(1.0, fsum(sizes) - len(strata))
    return find_t_quantile(df, (1 + CONFIDENCE) / 2) * sqrt(fsum(parts))


def allocate_labels(strata: Sequence[Stratum], count: int) -> list[int]:
    """Distribute `count` further labels over the strata for the narrowest interval, one by one where each helps most.

    A stratum without a label comes first, and none gets more than it has unlabelled items.
    """
    extra = [0] * len(strata)

    def measure_gain(at: int) -> float:
        labels, variance = strata[at].labels + extra[at], strata[at].items ** 2 * strata[at].variance
        return variance / labels - variance / (labels + 1) if labels else inf

    for _ in range(count):
        unfilled = [at for at, one in enumerate(strata) if one.labels + extra[at] < one.items]
        if not unfilled:
            break
        extra[max(unfilled, key=lambda at: (measure_gain(at), -at))] += 1
    return extra
