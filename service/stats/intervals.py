"""Intervals of rates, means and paired differences. The same numbers always give the same interval.

All intervals are two-sided, at 95 %. numpy is imported only where resampling needs it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import comb, fsum, sqrt
from statistics import NormalDist

from service.stats.rates import Interval, PairedCase, RatePart

CONFIDENCE = 0.95
Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
RESAMPLES = 2000
SEED = 20_240_229
"""Arbitrary, and fixed so that a summary can be reproduced to the last digit."""
MAX_DRAWS_AT_ONCE = 2_000_000
"""How many draws are held in memory at a time."""


def wilson(hits: float, size: float) -> Interval:
    """Compute the 95 % Wilson score interval of a proportion; ValueError unless 0 <= hits <= size and size > 0.

    Wilson 1927, "Probable inference, the law of succession, and statistical inference", JASA 22:209-212.

    >>> [round(x, 4) for x in wilson(8, 10)], [round(x, 4) for x in wilson(10, 10)]
    ([0.4902, 0.9433], [0.7225, 1.0])
    """
    if not (0 <= hits <= size and size > 0):
        raise ValueError(f"{hits} of {size} is no proportion")
    z, p = Z, hits / size
    centre = p + z * z / (2 * size)
    spread = z * sqrt(p * (1 - p) / size + z * z / (4 * size * size))
    whole = 1 + z * z / size
    low = 0.0 if hits == 0 else max(0.0, (centre - spread) / whole)
    return low, 1.0 if hits == size else min(1.0, (centre + spread) / whole)


def choose_interval(parts: Sequence[RatePart]) -> Interval:
    """Compute the interval of sum(hits) / sum(size): Wilson's for plain yes-or-no cases, otherwise the cluster bootstrap's."""
    if all(part.group is None and part.size == 1 and part.hits in (0, 1) for part in parts):
        return wilson(fsum(part.hits for part in parts), len(parts))
    return bootstrap(parts)


def bootstrap(parts: Sequence[RatePart], *, seed: int = SEED) -> Interval:
    """Compute the percentile interval of sum(hits) / sum(size), drawing whole groups with replacement.

    A part without a group is a group of its own. Efron and Tibshirani 1993, "An Introduction to the Bootstrap", chapter 13,
    on clusters as in Field and Welsh 2007, "Bootstrapping clustered data", JRSS B 69:369-390. Where all groups have the same
    rate, resampling shows nothing, and the result is Wilson's interval with one observation per group. A resample whose sizes
    sum to 0 is dropped. ValueError for no parts or no size.
    """
    clusters = _sum_clusters(parts)
    whole = fsum(size for _, size in clusters)
    if not whole > 0:
        raise ValueError("nothing to resample")
    if len({hits / size for hits, size in clusters if size}) < 2:
        n = len(clusters)
        return wilson(min(n, n * (fsum(hits for hits, _ in clusters) / whole)), n)
    return _draw_percentiles(clusters, seed)


def choose_difference(pairs: Sequence[PairedCase]) -> Interval:
    """Compute the interval of mean(b - a): Newcombe's for plain yes-or-no cases, otherwise the cluster bootstrap's.

    Where all pairs differ by the same amount, the half-width is the upper end of Wilson's interval for 0 of as many groups.
    """
    if not pairs:
        raise ValueError("no pairs")
    if all(pair.group is None and pair.a in (0, 1) and pair.b in (0, 1) for pair in pairs):
        return newcombe(*(sum((p.a, p.b) == cell for p in pairs) for cell in ((1, 1), (1, 0), (0, 1), (0, 0))))
    clusters = _sum_clusters([RatePart(pair.group, pair.b - pair.a) for pair in pairs])
    differences = {hits / size for hits, size in clusters}
    if len(differences) > 1:
        return _draw_percentiles(clusters, SEED)
    same, half_width = differences.pop(), wilson(0, len(clusters))[1]
    return max(-1.0, same - half_width), min(1.0, same + half_width)


def newcombe(both: int, only_a: int, only_b: int, neither: int) -> Interval:
    """Compute the interval of P(b) - P(a) from a paired two-by-two table; ValueError where the table is empty.

    Method 10 of Newcombe 1998, "Improved confidence intervals for the difference between binomial proportions based on paired
    data", Statistics in Medicine 17:2635-2650.

    >>> [round(x, 4) for x in newcombe(36, 2, 12, 0)]
    [0.0569, 0.3404]
    """
    n = both + only_a + only_b + neither
    in_a, in_b = both + only_a, both + only_b
    (low_a, high_a), (low_b, high_b) = wilson(in_a, n), wilson(in_b, n)
    p_a, p_b = in_a / n, in_b / n
    phi = _compute_correlation(both, only_a, only_b, neither)
    below, above = _join_margins(p_b - low_b, high_a - p_a, phi), _join_margins(high_b - p_b, p_a - low_a, phi)
    return max(-1.0, p_b - p_a - below), min(1.0, p_b - p_a + above)


def mcnemar(only_a: int, only_b: int) -> float:
    """Compute the exact two-sided p-value of both changes being equally likely; 1 where nothing changed.

    McNemar 1947, Psychometrika 12:153-157, with the binomial tail instead of chi-square.

    >>> mcnemar(0, 0), mcnemar(1, 9)
    (1.0, 0.021484375)
    """
    n = only_a + only_b
    tail = sum(comb(n, k) for k in range(min(only_a, only_b) + 1)) / 2**n
    return min(1.0, 2 * tail)


def _join_margins(one: float, other: float, phi: float) -> float:
    return sqrt(max(0.0, one * one - 2 * phi * one * other + other * other))


def _compute_correlation(both: int, only_a: int, only_b: int, neither: int) -> float:
    """Compute Pearson's phi with Newcombe's continuity correction; 0 where a margin is empty."""
    margins = (both + only_a) * (only_b + neither) * (both + only_b) * (only_a + neither)
    if not margins:
        return 0.0
    product = both * neither - only_a * only_b
    if product > 0:
        product = max(product - (both + only_a + only_b + neither) / 2, 0)
    return product / sqrt(margins)


def _sum_clusters(parts: Sequence[RatePart]) -> list[tuple[float, float]]:
    """Sum hits and size by group, and sort: neither the order of cases nor the names of groups change anything."""
    groups: dict[str, list[RatePart]] = defaultdict(list)
    alone: list[tuple[float, float]] = []
    for part in parts:
        if part.group is None:
            alone.append((part.hits, part.size))
        else:
            groups[part.group].append(part)
    summed = [(fsum(p.hits for p in group), fsum(p.size for p in group)) for group in groups.values()]
    return sorted([*alone, *summed])


def _draw_percentiles(clusters: Sequence[tuple[float, float]], seed: int) -> Interval:
    import numpy as np  # noqa: PLC0415 (slow to import, and most commands do not need it)

    table = np.array(clusters, dtype=np.float64)
    rng, n = np.random.default_rng(seed), len(clusters)
    rows = max(1, MAX_DRAWS_AT_ONCE // n)
    found: list[float] = []
    for start in range(0, RESAMPLES, rows):
        drawn = rng.integers(0, n, size=(min(rows, RESAMPLES - start), n))
        hits, size = table[drawn, 0].sum(axis=1), table[drawn, 1].sum(axis=1)
        found += (hits[size > 0] / size[size > 0]).tolist()
    edge = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(found, [edge, 100 - edge])
    return float(low), float(high)
