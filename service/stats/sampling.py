"""A rate from labels that were drawn stratum by stratum, and which stratum to label next.

Strata are of the judge's value, and made without labels. The rate weighs each by its share of all items, so that labels may
be drawn more often where they tell more (Neyman 1934, "On the two different aspects of the representative method", Journal
of the Royal Statistical Society 97:558-625). Within a stratum they must be drawn at random.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import fsum, sqrt

from service.stats.intervals import CONFIDENCE
from service.stats.student import find_t_quantile

STRATA = 4


@dataclass(frozen=True, slots=True)
class Stratum:
    """Items whose value lies from `low` to `high`, and the labels of some of them."""

    low: float
    high: float
    items: int
    labels: int
    passing: int

    @property
    def share(self) -> float:
        """The share of passing items, drawn in a little: one passing and one failing label more."""
        return (self.passing + 1) / (self.labels + 2)

    @property
    def spread(self) -> float:
        """The standard deviation of a label."""
        return sqrt(self.share * (1 - self.share))


@dataclass(frozen=True, slots=True)
class StratifiedRate:
    """A rate in [0, 1] with its interval."""

    value: float
    low: float
    high: float


def cut_strata(values: Sequence[float], *, most: int = STRATA) -> list[tuple[float, float]]:
    """At most so many ranges of about equal size; equal values share one. Values are those of all items."""
    return cut_counted(Counter(values), most=most)


def cut_counted(counts: Mapping[float, int], *, most: int = STRATA) -> list[tuple[float, float]]:
    """The same ranges, of values with how many items have each."""
    ranked = sorted(counts)
    ends = list(accumulate([counts[one] for one in ranked]))
    cuts = sorted({bisect_right(ends, ends[-1] * at // most) for at in range(most)})
    return [(ranked[cut], ranked[end - 1]) for cut, end in pairwise([*cuts, len(ranked)])]


def estimate_rate(
    strata: Sequence[Stratum], *, worth: float = 1.0, confidence: float = CONFIDENCE
) -> StratifiedRate | None:
    """The rate of all items; None where a stratum has no label.

    `worth`: how many labels one is worth, at most 1, where labels of a group are alike.
    """
    if any(not one.labels for one in strata):
        return None
    whole = fsum([one.items for one in strata])
    value = fsum([one.items / whole * one.passing / one.labels for one in strata])
    centre = fsum([one.items / whole * one.share for one in strata])
    half = compute_half(strata, [0] * len(strata), worth=worth, confidence=confidence)
    return StratifiedRate(value, max(0.0, min(value, centre - half)), min(1.0, max(value, centre + half)))


def compute_half(
    strata: Sequence[Stratum], more: Sequence[int], *, worth: float = 1.0, confidence: float = CONFIDENCE
) -> float:
    """Half the width of the interval, were there so many labels more in each stratum."""
    whole = fsum([one.items for one in strata])
    parts = [
        (one.items / whole * one.spread) ** 2 / max(1.0, worth * (one.labels + extra))
        for one, extra in zip(strata, more, strict=True)
    ]
    freedom = max(
        1.0, worth * fsum([one.labels + extra for one, extra in zip(strata, more, strict=True)]) - len(strata)
    )
    return find_t_quantile(freedom, (1 + confidence) / 2) * sqrt(fsum(parts))


def plan_labels(strata: Sequence[Stratum], count: int) -> list[int]:
    """How many of so many further labels to draw in each stratum for the narrowest interval, one by one where it helps most.

    A stratum without a label comes first, and none gets more than it has items without one.
    """
    whole = fsum([one.items for one in strata])
    more = [0] * len(strata)
    for _ in range(count):
        open_ones = [at for at, one in enumerate(strata) if one.labels + more[at] < one.items]
        if not open_ones:
            break
        more[max(open_ones, key=lambda at: (_measure_gain(strata[at], more[at], whole), -at))] += 1
    return more


def _measure_gain(stratum: Stratum, more: int, whole: float) -> float:
    labels = stratum.labels + more
    part = (stratum.items / whole * stratum.spread) ** 2
    return float("inf") if not labels else part / labels - part / (labels + 1)
