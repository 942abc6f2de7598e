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
from dataclasses import dataclass
from math import ceil, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.stats.intervals import CONFIDENCE
from service.stats.tallies import Floats

Groups = Sequence[str | None]
Codes = NDArray[np.int64]

PSEUDO_WEIGHT = 0.5
"""The weight of each pseudo-item, in groups."""


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


class Grouping(NamedTuple):
    """Which items share a group: the labelled items first, then the unlabelled ones."""

    codes: Codes
    """Each item's group as a number from 0."""
    labelled: int
    """How many items are labelled."""
    labelled_groups: int
    """How many groups the labelled items have."""
    unlabelled_groups: int
    """How many groups the unlabelled items have."""

    @property
    def width(self) -> int:
        """How many groups there are in all."""
        return int(self.codes.max()) + 1

    @property
    def suffices(self) -> bool:
        """Whether these groups allow an interval, as `has_enough_groups` says."""
        others = len(self.codes) - self.labelled
        return self.labelled_groups > 1 and (others <= 1 or self.unlabelled_groups > 1)


def group_items(labelled: Groups, unlabelled: Groups = ()) -> Grouping:
    """Group labelled and unlabelled items, which may share groups."""
    codes = code_groups([*labelled, *unlabelled])
    n = len(labelled)
    return Grouping(codes, n, len(np.unique(codes[:n])), len(np.unique(codes[n:])))


class _Sample(NamedTuple):
    """Labels and judge's values of the labelled items, judge's values of the unlabelled ones, and all their groups."""

    labels: Floats
    judged: Floats
    unlabelled: Floats
    groups: Grouping


class _Rectifier(NamedTuple):
    """Weighted values in groups, and their mean."""

    values: Floats
    weights: Floats
    groups: Grouping
    """The groups of the values; the pseudo-items follow them, each a group of its own."""
    mean: float

    def compute_deviations(self) -> Floats:
        """Return how much each group moves the mean."""
        shares = self.weights * (self.values - self.mean) / self.weights.sum()
        codes = np.concatenate([self.groups.codes[: self.groups.labelled], self.groups.width + np.arange(4)])
        return np.bincount(codes, weights=shares).astype(np.float64)

    def compute_variance(self) -> float:
        """Return the variance of the mean with whole groups drawn, and no less than with single items drawn."""
        by_item = float(self.weights @ (self.values - self.mean) ** 2) / float(self.weights.sum()) ** 2
        if self.groups.labelled_groups == self.groups.labelled:
            return by_item
        return max(by_item, _compute_group_variance(self.compute_deviations(), self.groups.labelled_groups + 4))


def has_enough_groups(labelled: Groups, unlabelled: Groups | None = None) -> bool:
    """Whether items of these groups allow an interval: from labels alone, or from labels and `unlabelled` items.

    Several items that are all of one group do not, because nothing shows how groups differ.

    >>> (
    ...     has_enough_groups([None, None]),
    ...     has_enough_groups(["a", "a"]),
    ...     has_enough_groups(["a", None], ["b"]),
    ...     has_enough_groups(["a", None], ["b", "b"]),
    ... )
    (True, False, True, False)
    """
    return group_items(labelled, unlabelled or ()).suffices and (unlabelled is None or len(unlabelled) > 0)


def infer_from_labels(
    labels: Sequence[bool], groups: Groups | None = None, *, confidence: float = CONFIDENCE
) -> InferredRate:
    """Estimate the rate from labels alone, with its interval. ValueError where there are too few for an interval."""
    grouping = group_items(_check_groups(groups, len(labels)))
    if not grouping.suffices:
        raise ValueError(f"{len(labels)} labels of {grouping.labelled_groups} groups; an interval needs 2")
    return infer_grouped(np.asarray(labels, dtype=np.float64), grouping, confidence=confidence)


def infer_grouped(labels: Floats, groups: Grouping, *, confidence: float = CONFIDENCE) -> InferredRate:
    """Estimate as `infer_from_labels` does, for labels of 0 and 1 that are known to be enough."""
    sample = _Sample(labels, np.zeros(len(labels)), np.empty(0), groups)
    return _build_rate(sample, 0.0, float(labels.mean()), 0.0, confidence)


def ppi(
    labels: Sequence[bool],
    judged: Sequence[float],
    unlabelled: Sequence[float],
    groups: tuple[Groups, Groups] | None = None,
    *,
    confidence: float = CONFIDENCE,
) -> InferredRate:
    """Estimate the rate of the population that both samples come from, by prediction-powered inference with a tuned weight.

    PPI++: Angelopoulos, Duchi and Zrnic 2023, arXiv:2311.01453, example 6.1. `labels` and `judged` (the judge's values in [0,
    1]) are of the same items, `unlabelled` holds the judge's values of the items without a label; `groups` are those of the
    former and of the latter, which may share some. The interval covers the sampling error of both. The labelled items, or
    whole groups of them, must be drawn at random from the same traffic as the others. ValueError for lists of unequal length,
    and where there are too few items for an interval.
    """
    y, f, g = (np.asarray(part, dtype=np.float64) for part in (labels, judged, unlabelled))
    if len(y) != len(f):
        raise ValueError(f"{len(y)} labels, {len(f)} scores")
    labelled_groups, unlabelled_groups = (
        _check_groups(each, size) for each, size in zip(groups or (None, None), (len(y), len(g)), strict=True)
    )
    grouping = group_items(labelled_groups, unlabelled_groups)
    if not (grouping.suffices and len(g)):
        known = f"{len(y)} labels of {grouping.labelled_groups} groups"
        others = f"{len(g)} items without a label of {grouping.unlabelled_groups}"
        raise ValueError(f"{known}, {others}; an interval needs 2 of each")
    return ppi_grouped(y, f, g, grouping, confidence=confidence)


def ppi_grouped(y: Floats, f: Floats, g: Floats, groups: Grouping, *, confidence: float = CONFIDENCE) -> InferredRate:
    """Estimate as `ppi` does, for items that are known to be enough."""
    variance = float(np.concatenate([f, g]).var(ddof=1))
    covariance = float(np.cov(y, f, ddof=1)[0, 1])
    trust = 0.0 if variance <= 0 else min(1.0, max(0.0, covariance / ((1 + len(y) / len(g)) * variance)))
    value = float(y.mean() + trust * (g.mean() - f.mean()))
    sample = _Sample(y, f, g, groups)
    return _build_rate(sample, trust, value, trust**2 * variance / len(g), confidence)


def _check_groups(groups: Groups | None, size: int) -> Groups:
    if groups is not None and len(groups) != size:
        raise ValueError(f"{size} items, {len(groups)} groups")
    return [None] * size if groups is None else groups


def code_groups(groups: Groups) -> Codes:
    """Number the groups from 0, item by item; None is a group of its own."""
    codes: dict[str | int, int] = {}
    numbers = [codes.setdefault(at if name is None else name, len(codes)) for at, name in enumerate(groups)]
    return np.asarray(numbers, dtype=np.int64)


def _build_rate(sample: _Sample, trust: float, value: float, least: float, confidence: float) -> InferredRate:
    """Build the rate `value` and its interval from the sample and its pseudo-items.

    `least` is passed on to `_compute_unlabelled_variance`.
    """
    from scipy.special import stdtrit  # noqa: PLC0415 (few need it)  # pyright: ignore[reportMissingTypeStubs]

    n, rectifier = len(sample.labels), _build_rectifier(sample, trust)
    deviations = _compute_deviations(trust * sample.unlabelled, sample.groups.codes[n:], sample.groups.width)
    own_variance, fixed_variance = (
        rectifier.compute_variance(),
        _compute_unlabelled_variance(sample, rectifier, deviations, least),
    )
    half_width = float(stdtrit(_count_independent(sample.groups) - 1, (1 + confidence) / 2)) * sqrt(
        own_variance + fixed_variance
    )
    centre = rectifier.mean + (trust * float(sample.unlabelled.mean()) if trust else 0.0)
    reducible = (own_variance + fixed_variance) / 4 - fixed_variance
    return InferredRate(
        value=min(1.0, max(0.0, value)),
        low=min(1.0, max(0.0, min(value, centre - half_width))),
        high=max(0.0, min(1.0, max(value, centre + half_width))),
        trust=trust,
        more_labels=None if reducible <= 0 else max(0, ceil(n * own_variance / reducible) - n),
    )


def _build_rectifier(sample: _Sample, trust: float) -> _Rectifier:
    """Build the rectifier, label minus weighted judge's value for each item, followed by the pseudo-items."""
    n, judged = len(sample.labels), np.concatenate([sample.judged, sample.unlabelled])
    ends = np.repeat([judged.min(), judged.max()], 2)
    values = np.concatenate([sample.labels - trust * sample.judged, np.tile([0.0, 1.0], 2) - trust * ends])
    weights = np.concatenate([np.ones(n), np.full(4, PSEUDO_WEIGHT * n / sample.groups.labelled_groups)])
    return _Rectifier(values, weights, sample.groups, float(np.average(values, weights=weights)))


def _compute_unlabelled_variance(sample: _Sample, rectifier: _Rectifier, deviations: Floats, least: float) -> float:
    """Compute the variance that no label reduces: that of the judge's mean on unlabelled items, and what both samples share.

    `least` is the former if items were independent; `deviations` says how much each group moves that mean.
    """
    labelled_deviations = rectifier.compute_deviations()[: sample.groups.width]
    return max(least, _compute_group_variance(deviations, sample.groups.unlabelled_groups)) + max(
        0.0, 2 * float(labelled_deviations @ deviations)
    )


def _count_independent(groups: Grouping) -> int:
    """Count the groups behind an interval: labelled or unlabelled, whichever are fewer."""
    has_unlabelled = len(groups.codes) - groups.labelled > 1
    return min(groups.labelled_groups, groups.unlabelled_groups) if has_unlabelled else groups.labelled_groups


def _compute_deviations(values: Floats, codes: Codes, width: int) -> Floats:
    """Return how much each of `width` groups moves the mean of some values."""
    shares = (values - values.mean()) / len(values) if len(values) else values
    return np.bincount(codes, weights=shares, minlength=width).astype(np.float64)


def _compute_group_variance(deviations: Floats, count: int) -> float:
    """Compute the variance of a mean over `count` drawn groups; 0 where there is only one."""
    return count / (count - 1) * float(deviations @ deviations) if count > 1 else 0.0
