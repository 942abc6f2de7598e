"""Confidence intervals of any statistic, by drawing whole groups with replacement (the cluster bootstrap)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import sqrt
from statistics import NormalDist

import numpy as np

from service.stats.intervals import CONFIDENCE, SEED
from service.stats.rates import Interval
from service.stats.student import find_t_quantile
from service.stats.tallies import Floats

DRAWS = 1000
MIN_DEFINED_SHARE = 0.5
"""The least share of draws in which a statistic must be defined to get an interval."""

StatisticsFunction = Callable[[Floats], Mapping[str, float | None]]
"""Computes named figures of items weighted by how often they were drawn; None where a figure is undefined."""


def draw_weights(groups: Sequence[str], *, count: int = DRAWS, seed: int = SEED) -> Iterator[Floats]:
    """Yield the weight of each item in each draw, an array as long as `groups`: how often the item's group was drawn.

    Each draw takes as many groups as there are, with replacement. Reordering items reorders their weights and changes nothing
    else.
    """
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
    found: dict[str, list[float]] = defaultdict(list)
    size = len(set(groups))
    if size > 1:
        for weights in draw_weights(groups, count=count, seed=seed):
            for name, value in statistics(weights).items():
                if value is not None:
                    found[name].append(value)
    figures = statistics(np.ones(len(groups)))
    edge = (1 + CONFIDENCE) / 2
    widening = (
        1.0 if size < 2 else sqrt(size / (size - 1)) * find_t_quantile(size - 1, edge) / NormalDist().inv_cdf(edge)
    )
    return {name: _compute_interval(value, found[name], count, widening) for name, value in figures.items()}


def _compute_interval(figure: float | None, draws: Sequence[float], count: int, widening: float) -> Interval | None:
    if figure is None or len(draws) <= MIN_DEFINED_SHARE * count:
        return None
    edge = 50 * (1 - CONFIDENCE)
    low, middle, high = np.percentile(np.asarray(draws), [edge, 50, 100 - edge]).tolist()
    floor = 0.0 if min(draws) >= 0 else -1.0
    return max(floor, figure - widening * (middle - low)), min(1.0, figure + widening * (high - middle))
