"""The pass rate of many items from few labels and a judge's values for all items.

Items of one group (a conversation, a payload) are not independent: where groups are named, variances are cluster-robust
(Liang and Zeger 1986, "Longitudinal data analysis using generalized linear models", Biometrika 73:13-22), and never smaller
than those of independent items. An item whose group is None is a group of its own.

Normal theory fails where a class is rare: thirty labels that all pass have no variance. An interval, though not the rate
itself, therefore also counts four pseudo-items, each weighing half a group: one that passes and one that fails at the judge's
lowest value, and two more at its highest (for proportions and their differences: Agresti and Coull 1998, "Approximate is
better than 'exact' for interval estimation of binomial proportions", American Statistician 52:119-126; Agresti and Min 2005,
Biometrics 61:515-523). No interval has width 0, and each contains its rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.stats.intervals import CONFIDENCE, find_t_quantile
from service.stats.rates import InferredRate
from service.stats.tallies import Floats

Groups = Sequence[str | None]

PSEUDO_WEIGHT = 0.5
"""The weight of each pseudo-item, in groups."""


def code_groups(groups: Groups) -> NDArray[np.int64]:
    """Number the groups from 0, item by item; None is a group of its own."""
    codes: dict[str | int, int] = {}
    numbers = [codes.setdefault(at if name is None else name, len(codes)) for at, name in enumerate(groups)]
    return np.asarray(numbers, dtype=np.int64)


class _Grouping(NamedTuple):
    """The groups of the labelled items, and of the unlabelled ones, which may share some."""

    labelled: NDArray[np.int64]
    unlabelled: NDArray[np.int64]
    labelled_count: int
    """How many groups the labelled items have."""
    unlabelled_count: int

    @classmethod
    def of(cls, labelled: Groups, unlabelled: Groups = ()) -> _Grouping:
        codes = code_groups([*labelled, *unlabelled])
        parts = codes[: len(labelled)], codes[len(labelled) :]
        return cls(*parts, *[len(np.unique(part)) for part in parts])

    @property
    def suffices(self) -> bool:
        """Whether there are groups to differ: several items that are all of one group show nothing."""
        return self.labelled_count > 1 and (len(self.unlabelled) <= 1 or self.unlabelled_count > 1)


def infer_from_labels(labels: Sequence[bool], groups: Groups) -> InferredRate | None:
    """Estimate the rate from labels alone, with its 95 % interval; None for fewer than two groups, which have no interval."""
    grouping = _Grouping.of(groups)
    y = np.asarray(labels, dtype=np.float64)
    return _build_rate(y, np.zeros(len(y)), np.empty(0), grouping) if grouping.suffices else None


def ppi(
    labels: Sequence[bool], judged: Sequence[float], unlabelled: Sequence[float], groups: tuple[Groups, Groups]
) -> InferredRate | None:
    """Estimate the rate of the population that both samples come from, by prediction-powered inference with a tuned weight.

    PPI++: Angelopoulos, Duchi and Zrnic 2023, arXiv:2311.01453, example 6.1. `labels` and `judged` (the judge's values in [0,
    1]) are of the same items, `unlabelled` holds the judge's values of the items without a label; `groups` are those of the
    former and of the latter, which may share some. The 95 % interval covers the sampling error of both. The labelled items, or
    whole groups of them, must be drawn at random from the same traffic as the others. None where either side has too few items
    or groups for an interval.
    """
    y, f, g = (np.asarray(part, dtype=np.float64) for part in (labels, judged, unlabelled))
    grouping = _Grouping.of(*groups)
    return _build_rate(y, f, g, grouping) if grouping.suffices and len(g) else None


def _build_rate(y: Floats, f: Floats, g: Floats, groups: _Grouping) -> InferredRate:
    """Build the rate and its interval from labels `y`, the judge's values `f` of the same items, and `g` of the others.

    The rate is the mean of the rectified labels, `y` less the trusted part of `f`, plus that part of the mean of `g`.
    """
    n, judged = len(y), np.concatenate([f, g])
    variance = float(judged.var(ddof=1)) if len(g) else 0.0
    trust = 0.0
    if variance > 0:
        trust = min(1.0, max(0.0, float(np.cov(y, f, ddof=1)[0, 1]) / ((1 + n / len(g)) * variance)))
    said = trust * float(g.mean()) if trust else 0.0
    value = float(y.mean()) + said - trust * float(f.mean())

    ends = np.repeat([judged.min(), judged.max()], 2)
    rectified = np.concatenate([y - trust * f, np.tile([0.0, 1.0], 2) - trust * ends])
    weights = np.concatenate([np.ones(n), np.full(4, PSEUDO_WEIGHT * n / groups.labelled_count)])
    mean = float(np.average(rectified, weights=weights))
    width = int(np.concatenate([groups.labelled, groups.unlabelled]).max()) + 1
    codes = np.concatenate([groups.labelled, width + np.arange(4)])
    moved = np.bincount(codes, weights * (rectified - mean) / weights.sum()).astype(np.float64)
    own_variance = float(weights @ (rectified - mean) ** 2) / float(weights.sum()) ** 2
    if groups.labelled_count < n:
        own_variance = max(own_variance, _compute_group_variance(moved, groups.labelled_count + 4))

    # What no label reduces: the variance of the judge's mean on the other items, and what groups on both sides share.
    moved_said, independent = np.zeros(width), 0.0
    if len(g):
        moved_said = np.bincount(groups.unlabelled, trust * (g - g.mean()) / len(g), width).astype(np.float64)
        independent = trust**2 * variance / len(g)
    fixed_variance = max(independent, _compute_group_variance(moved_said, groups.unlabelled_count))
    fixed_variance += max(0.0, 2 * float(moved[:width] @ moved_said))

    smaller = min(groups.labelled_count, groups.unlabelled_count) if len(g) > 1 else groups.labelled_count
    half = find_t_quantile(smaller - 1, (1 + CONFIDENCE) / 2) * sqrt(own_variance + fixed_variance)
    reducible = (own_variance + fixed_variance) / 4 - fixed_variance
    return InferredRate(
        value=min(1.0, max(0.0, value)),
        low=min(1.0, max(0.0, min(value, mean + said - half))),
        high=max(0.0, min(1.0, max(value, mean + said + half))),
        trust=trust,
        more_labels=None if reducible <= 0 else max(0, ceil(n * own_variance / reducible) - n),
    )


def _compute_group_variance(moved: Floats, count: int) -> float:
    """Compute the variance of a mean over `count` drawn groups, by how much each moves it; 0 where there is only one."""
    return count / (count - 1) * float(moved @ moved) if count > 1 else 0.0
