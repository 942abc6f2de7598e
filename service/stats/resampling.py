"""Intervals of any statistic by drawing whole groups with replacement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from service.stats.intervals import CONFIDENCE, SEED
from service.stats.rates import Interval
from service.stats.tallies import Floats

DRAWS = 1000
FEWEST = 0.5
"""The least share of draws in which a statistic must be defined to have an interval."""

Statistics = Callable[[Floats], Mapping[str, float | None]]
"""Named figures of items that count as often as their weights say; None where one is undefined."""


def draw_weights(groups: Sequence[str], *, count: int = DRAWS, seed: int = SEED) -> Iterator[Floats]:
    """For each draw, how often each item counts, of the shape of `groups`: as often as its group was drawn.

    As many groups as there are, with replacement. The order of items changes nothing but their places.
    """
    names = sorted(set(groups))
    place = {name: at for at, name in enumerate(names)}
    of = np.array([place[group] for group in groups], dtype=np.int64)
    rng = np.random.default_rng(seed)
    for _ in range(count):
        drawn = rng.integers(0, len(names), size=len(names))
        yield np.bincount(drawn, minlength=len(names)).astype(np.float64)[of]


def compute_intervals(
    statistics: Statistics,
    groups: Sequence[str],
    *,
    count: int = DRAWS,
    seed: int = SEED,
    confidence: float = CONFIDENCE,
) -> dict[str, Interval | None]:
    """The percentile interval of each figure, by the cluster bootstrap.

    Efron and Tibshirani 1993, "An Introduction to the Bootstrap", chapter 13; groups as in Field and Welsh 2007,
    "Bootstrapping clustered data", JRSS B 69:369-390. None for a figure that is undefined in half of the draws, and for
    fewer than two groups, from which nothing can be learned.
    """
    found: dict[str, list[float]] = defaultdict(list)
    if len(set(groups)) > 1:
        for weights in draw_weights(groups, count=count, seed=seed):
            for name, value in statistics(weights).items():
                if value is not None:
                    found[name].append(value)
    names = statistics(np.ones(len(groups)))
    return {name: _compute_percentiles(found[name], count, confidence) for name in names}


def _compute_percentiles(values: Sequence[float], count: int, confidence: float) -> Interval | None:
    if len(values) <= FEWEST * count:
        return None
    edge = 50 * (1 - confidence)
    low, high = np.percentile(np.asarray(values), [edge, 100 - edge])
    return float(low), float(high)
