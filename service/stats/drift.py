"""Whether a judge agrees less than on the day it was recorded: the same items then and now, by a test for every night.

The recorded verdicts are one draw of a judge that varies by chance. That draw's luck is the same every night, so it never
averages out, however many nights are compared with it: it is a part of the standard error here. How much a judge varies is
seen in items whose verdict changes between nights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import NamedTuple

MARGIN = 0.03
"""The fall of agreement that is no drift."""
NIGHTS = 5
"""How many of the latest nights are compared."""
ERRORS, ERRORS_TONIGHT = 2.4, 3.5
"""Standard errors beyond the margin that are drift, on these nights and on the last one alone, which shows a sudden change. By
the first, 4 % of judges whose agreement fell by exactly the margin alarm within 100 nights (`tests/benchmarks/drift.py`)."""


class PairedItem(NamedTuple):
    """Whether a judge agreed with an item's label when it was recorded, and on each of the latest nights that it answered."""

    then: bool
    nights: Sequence[bool]


@dataclass(frozen=True, slots=True)
class Fall:
    """How much lower agreement is on the latest nights than it was."""

    value: float
    limit: float
    """The fall from which on the judge has drifted: what is allowed, and what chance explains."""
    nights: int

    @property
    def drifted(self) -> bool:
        """Whether the judge has drifted."""
        return self.value > self.limit


def measure_fall(items: Sequence[PairedItem]) -> Fall:
    """Measure the fall on one or more items, each with one or more nights; on the last night alone if only that shows drift.

    >>> fall = measure_fall([PairedItem(True, [True, False])] * 20 + [PairedItem(True, [True, True])] * 60)
    >>> fall.nights, fall.value, round(fall.limit, 3), fall.drifted
    (1, 0.25, 0.226, True)
    """
    tonight = _measure([PairedItem(item.then, item.nights[-1:]) for item in items], ERRORS_TONIGHT)
    return tonight if tonight.drifted else _measure(items, ERRORS)


def _measure(items: Sequence[PairedItem], errors: float) -> Fall:
    """Measure the fall. Its error is never below that of one changed item: a judge that never varied may vary tomorrow."""
    falls = [item.then - sum(item.nights) / len(item.nights) for item in items]
    error = sqrt(max(1.0, fsum(map(_compute_variance, items)))) / len(items)
    return Fall(fsum(falls) / len(items), MARGIN + errors * error, max(len(item.nights) for item in items))


def _compute_variance(item: PairedItem) -> float:
    """Compute the variance of an item's fall if its judge has not changed: over the nights, or over then and the only night."""
    n, right = len(item.nights), sum(item.nights)
    if n == 1:
        return float(item.then != item.nights[0])
    return right * (n - right) / (n * (n - 1)) * (1 + 1 / n)
