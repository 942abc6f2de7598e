"""Intervals of rates, means and paired differences. The same numbers always give the same interval.

All intervals are two-sided, at 95 %. numpy is imported only where resampling needs it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import cos, exp, fsum, lgamma, log1p, pi, sin, sqrt, tan
from statistics import NormalDist
from typing import TYPE_CHECKING

from service.stats.rates import Interval, PairedCase, RatePart

if TYPE_CHECKING:
    from service.stats.tallies import Floats

CONFIDENCE = 0.95
Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
NOISE = 1e-9
"""The difference of rates that rounding may explain."""
SEED = 20_240_229
"""Arbitrary, and fixed so that a report can be reproduced to the last digit."""
DRAWS = 1000
MIN_DEFINED_SHARE = 0.5
"""The least share of draws in which a statistic must be defined to get an interval."""

StatisticsFunction = Callable[["Floats"], Mapping[str, float | None]]
"""Computes named figures of items weighted by how often they were drawn; None where a figure is undefined."""


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
    """Compute the interval of sum(hits) / sum(size): Wilson's for plain yes-or-no cases, otherwise `bound_ratio`."""
    if all(part.group is None and part.size == 1 and part.hits in (0, 1) for part in parts):
        return wilson(fsum(part.hits for part in parts), len(parts))
    return bound_ratio(parts)


def bound_ratio(parts: Sequence[RatePart]) -> Interval:
    """Compute the interval of sum(hits) / sum(size), a number in [0, 1], from how far whole groups lie from it.

    A part without a group is a group of its own. Groups that all have the same rate show no variance: the result is then
    Wilson's interval with one observation per group. ValueError for no parts or no size.
    """
    clusters = _sum_clusters(parts)
    ratios = [hits / size for hits, size in clusters]
    if ratios and max(ratios) - min(ratios) < NOISE:
        return wilson(len(ratios) * min(1.0, ratios[0]), len(ratios))
    return _bound_by_t(clusters, (0.0, 0.0, 1.0, 1.0))


def choose_difference(pairs: Sequence[PairedCase]) -> Interval:
    """Compute the interval of mean(b - a): Newcombe's for plain yes-or-no cases, otherwise by Student's t over groups."""
    if pairs and all(pair.group is None and pair.a in (0, 1) and pair.b in (0, 1) for pair in pairs):
        return newcombe(*(sum((p.a, p.b) == cell for p in pairs) for cell in ((1, 1), (1, 0), (0, 1), (0, 0))))
    return _bound_by_t(_sum_clusters([RatePart(pair.group, pair.b - pair.a) for pair in pairs]), (-1.0, 0.0, 0.0, 1.0))


def _bound_by_t(clusters: Sequence[tuple[float, float]], unseen: Sequence[float]) -> Interval:
    """Bound a ratio of sums over clusters by Student's t with the linearized variance (Cochran 1977, "Sampling Techniques", 6.4).

    Few clusters may be more alike than those that were not seen. Therefore four more count, each with half a cluster's size and
    one of the `unseen` ratios: Agresti and Coull 1998, American Statistician 52:119-126; for differences Agresti and Min 2005,
    Biometrics 61:515-523.
    """
    if not clusters:
        raise ValueError("nothing to measure")
    half_size = fsum(size for _, size in clusters) / len(clusters) / 2
    every = [*clusters, *[(half_size * ratio, half_size) for ratio in unseen]]
    n, whole = len(every), fsum(size for _, size in every)
    ratio = fsum(hits for hits, _ in every) / whole
    variance = n / (n - 1) * fsum((hits - ratio * size) ** 2 for hits, size in every) / whole**2
    reach = find_t_quantile(max(1, len(clusters) - 1), (1 + CONFIDENCE) / 2) * sqrt(variance)
    return max(min(unseen), ratio - reach), min(max(unseen), ratio + reach)


def newcombe(both: int, only_a: int, only_b: int, neither: int) -> Interval:
    """Compute the interval of P(b) - P(a) from a paired two-by-two table; ValueError where the table is empty.

    Method 10 of Newcombe 1998, "Improved confidence intervals for the difference between binomial proportions based on paired
    data", Statistics in Medicine 17:2635-2650.

    >>> [round(x, 4) for x in newcombe(36, 2, 12, 0)]
    [0.0569, 0.3404]
    """
    n, in_a, in_b = both + only_a + only_b + neither, both + only_a, both + only_b
    (low_a, high_a), (low_b, high_b) = wilson(in_a, n), wilson(in_b, n)
    p_a, p_b = in_a / n, in_b / n
    product, margins = both * neither - only_a * only_b, in_a * (n - in_a) * in_b * (n - in_b)
    # Pearson's phi with Newcombe's continuity correction.
    phi = (max(product - n / 2, 0) if product > 0 else product) / sqrt(margins) if margins else 0.0

    def join(one: float, other: float) -> float:
        return sqrt(max(0.0, one * one - 2 * phi * one * other + other * other))

    below, above = join(p_b - low_b, high_a - p_a), join(high_b - p_b, p_a - low_a)
    return max(-1.0, p_b - p_a - below), min(1.0, p_b - p_a + above)


def mcnemar(only_a: int, only_b: int) -> float:
    """Compute the exact two-sided p-value of both changes being equally likely; 1 where nothing changed.

    McNemar 1947, Psychometrika 12:153-157, with the binomial tail instead of chi-square.

    >>> mcnemar(0, 0), mcnemar(1, 9)
    (1.0, 0.021484375)
    """
    n = only_a + only_b
    tail = term = 1  # C(n, 0), and from each coefficient the next: computing each anew takes seconds for 10,000 changes
    for k in range(min(only_a, only_b)):
        term = term * (n - k) // (k + 1)
        tail += term
    return min(1.0, 2 * tail / 2**n)


def _sum_clusters(parts: Sequence[RatePart]) -> list[tuple[float, float]]:
    """Sum hits and size by group, and sort: neither the order of cases nor the names of groups change anything."""
    groups: dict[str | int, list[RatePart]] = defaultdict(list)
    for at, part in enumerate(parts):
        if part.size > 0:
            groups[at if part.group is None else part.group].append(part)
    return sorted((fsum(p.hits for p in group), fsum(p.size for p in group)) for group in groups.values())


def draw_weights(groups: Sequence[str], *, count: int = DRAWS, seed: int = SEED) -> Iterator[Floats]:
    """Yield the weight of each item in each draw, an array as long as `groups`: how often the item's group was drawn.

    Each draw takes as many groups as there are, with replacement. Reordering items reorders their weights and changes nothing
    else.
    """
    import numpy as np  # noqa: PLC0415 (likewise)

    names = sorted(set(groups))
    place = {name: at for at, name in enumerate(names)}
    of = np.array([place[group] for group in groups], dtype=np.int64)
    rng = np.random.default_rng(seed)
    for _ in range(count):
        drawn = rng.integers(0, len(names), size=len(names))
        yield np.bincount(drawn, minlength=len(names)).astype(np.float64)[of]


def compute_intervals(
    statistics: StatisticsFunction, groups: Sequence[str], *, count: int = DRAWS, seed: int = SEED
) -> dict[str, Interval | None]:
    """Compute the 95 % interval of each figure by the cluster bootstrap.

    Efron and Tibshirani 1993, "An Introduction to the Bootstrap", chapter 13; groups as in Field and Welsh 2007,
    "Bootstrapping clustered data", JRSS B 69:369-390. The percentiles are shifted so that the median of the draws lies on the
    figure: draws of a calibration error are all too high, so bare percentiles may exclude the figure itself. With few groups
    the interval is widened as Student's t is. None for a figure that is undefined in half of the draws, and for fewer than
    two groups, from which nothing can be learned.
    """
    import numpy as np  # noqa: PLC0415 (likewise)

    found: dict[str, list[float]] = defaultdict(list)
    size = len(set(groups))
    if size > 1:
        for weights in draw_weights(groups, count=count, seed=seed):
            for name, value in statistics(weights).items():
                if value is not None:
                    found[name].append(value)
    edge, z_edge = 50 * (1 - CONFIDENCE), (1 + CONFIDENCE) / 2
    widening = 1.0 if size < 2 else sqrt(size / (size - 1)) * find_t_quantile(size - 1, z_edge) / Z
    intervals: dict[str, Interval | None] = {}
    for name, figure in statistics(np.ones(len(groups))).items():
        intervals[name], draws = None, found[name]
        if figure is not None and len(draws) > MIN_DEFINED_SHARE * count:
            low, middle, high = np.percentile(draws, [edge, 50, 100 - edge]).tolist()
            floor = 0.0 if min(draws) >= 0 else -1.0
            reach = widening * (middle - low), widening * (high - middle)
            intervals[name] = max(floor, figure - reach[0]), min(1.0, figure + reach[1])
    return intervals


SIMPSON_PANELS = 400
MAX_NEWTON_STEPS = 100
NORMAL_FROM = 1e7
"""Degrees of freedom from which t equals the normal distribution to seven digits."""


@cache
def find_t_quantile(df: float, p: float) -> float:
    """Find the `p` quantile, `p` in (0, 1), of Student's t with `df` degrees of freedom, which need not be whole.

    Accurate to some seven digits. ValueError for fewer than one degree of freedom, and for `p` out of range.

    >>> round(find_t_quantile(10, 0.975), 6), round(find_t_quantile(1.5, 0.975), 6), find_t_quantile(3, 0.5)
    (2.228139, 6.016663, 0.0)

    With t = sqrt(df) * tan(a), the probability between 0 and t is the integral of cos(x) ** (df - 1) from 0 to a, but for a
    factor. scipy knows it too, but takes too long to import while a page waits for its intervals.
    """
    if not (df >= 1 and 0 < p < 1):
        raise ValueError("expected one degree of freedom or more, and a probability between 0 and 1")
    if p < 1 / 2:
        return -find_t_quantile(df, 1 - p)
    if df >= NORMAL_FROM:
        return NormalDist().inv_cdf(p)
    wanted = (p - 1 / 2) * sqrt(pi) * exp(lgamma(df / 2) - lgamma((df + 1) / 2))
    angle = 0.0  # the integral is concave, so Newton's steps from 0 never go too far
    for _ in range(MAX_NEWTON_STEPS):
        step = (wanted - _integrate(df, angle)) / cos(angle) ** (df - 1)
        angle = min(angle + step, pi / 2)
        if abs(step) <= 1e-12 * angle:
            break
    return sqrt(df) * tan(angle)


def _integrate(df: float, angle: float) -> float:
    """Integrate cos(x) ** (df - 1) from 0 to `angle` by Simpson's rule."""
    heights = [exp((df - 1) / 2 * log1p(-(sin(angle * at / SIMPSON_PANELS) ** 2))) for at in range(SIMPSON_PANELS + 1)]
    return angle / SIMPSON_PANELS / 3 * (heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2]))
