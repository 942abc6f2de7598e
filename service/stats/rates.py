"""Numbers over many cases: the parts of a rate, a rate with its interval, pass^k, percentiles. Pure formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, comb, floor, fsum
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure with its 95 % interval; null where undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class InferredRate:
    """A rate in [0, 1] with its interval. `trust` in [0, 1] is the judge's weight (the lambda of PPI++); 0 means labels alone."""

    value: float
    low: float
    high: float
    trust: float
    more_labels: int | None
    """How many more labels would halve the interval; None where no number would."""

    @property
    def width(self) -> float:
        """The width of the interval."""
        return self.high - self.low


class RatePart(NamedTuple):
    """What one case adds to a rate: `hits` out of `size`. Cases of one `group` are not independent of each other."""

    group: str | None
    hits: float
    size: float = 1.0


class PairedCase(NamedTuple):
    """One case measured twice, each value in [0, 1]."""

    group: str | None
    a: float
    b: float


Interval = tuple[float, float]
IntervalMethod = Callable[[Sequence[RatePart]], Interval]
"""Computes the interval of sum(hits) / sum(size) over one or more parts, each of a size above 0."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A rate or mean in [0, 1] over the `n` measured cases, with its 95 % interval; all None where no case counts.

    `worst` and `best` cover the measured cases and the `open` ones together, with the open ones counted against it and for
    it.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    worst: float | None = None
    best: float | None = None
    open: int = 0


NO_ESTIMATE = Estimate(None, None, None, 0)


def estimate(parts: Iterable[RatePart], interval: IntervalMethod) -> Estimate:
    """Estimate the rate of the parts that have a size, with its interval. Their order does not matter."""
    kept = [part for part in parts if part.size > 0]
    if not kept:
        return NO_ESTIMATE
    value = compute_ratio(kept)
    low, high = interval(kept)
    return Estimate(value, min(low, value), max(high, value), len(kept), value, value)


class CaseBounds(NamedTuple):
    """What one case adds to a rate that counts each case once: its bounds in [0, 1], equal where it was measured."""

    group: str | None
    worst: float
    best: float
    measured: float | None
    """What it adds to the rate over measured cases; None where nothing of it was measured."""


def estimate_with_bounds(cases: Iterable[CaseBounds], interval: IntervalMethod) -> Estimate:
    """Estimate the rate over measured cases, and the bounds that it has once open cases are counted against it and for it."""
    kept = list(cases)
    if not kept:
        return NO_ESTIMATE
    found = estimate([RatePart(one.group, one.measured) for one in kept if one.measured is not None], interval)
    worst, best = (fsum(bounds) / len(kept) for bounds in ([one.worst for one in kept], [one.best for one in kept]))
    return replace(found, worst=worst, best=best, open=sum(one.worst != one.best for one in kept))


def compute_ratio(parts: Sequence[RatePart]) -> float:
    """Return sum(hits) / sum(size), at most 1."""
    return min(1.0, fsum([p.hits for p in parts]) / fsum([p.size for p in parts]))


def pass_hat_k(trials: int, successes: int, k: int) -> float:
    """Compute pass^k of one task: the chance that k trials, drawn without replacement from those made, all succeed.

    C(c, k) / C(n, k), the unbiased estimator of tau-bench (Yao et al. 2024, arXiv:2406.12045, section 3). ValueError where
    fewer than k trials were made.

    >>> [round(pass_hat_k(n, c, 2), 6) for n, c in ((4, 2), (8, 4), (4, 1), (4, 4))]
    [0.166667, 0.214286, 0.0, 1.0]
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials")
    if not 1 <= k <= trials:
        raise ValueError(f"pass^{k} needs at least {max(k, 1)} trials, not {trials}; and k is 1 at least")
    return comb(successes, k) / comb(trials, k)


def compute_percentile(values: Iterable[float], q: float) -> float:
    """Compute the q-th percentile (0 to 100) by linear interpolation between closest ranks; ValueError for no values.

    Definition 7 of Hyndman and Fan 1996, "Sample Quantiles in Statistical Packages".

    >>> compute_percentile([4, 1, 3, 2], 50), compute_percentile([1, 2], 100), compute_percentile([5], 90)
    (2.5, 2, 5)
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    place = (len(ordered) - 1) * q / 100
    below, above = ordered[floor(place)], ordered[ceil(place)]
    return below if below == above else below + (above - below) * (place - floor(place))
