"""The rate of many items from few labels and a judge's word on all of them.

Items of one group (a conversation, a payload) are not independent: where groups are named, variances are those of groups
drawn whole (Liang and Zeger 1986, "Longitudinal data analysis using generalized linear models", Biometrika 73:13-22), and
never less than those of items that are drawn one by one. An item whose group is None is one of its own.

Normal theory fails where a class is rare: thirty labels that all pass have no variance. So an interval, though not the rate
itself, also counts four pseudo-items of half a group's weight each: one that passes and one that fails at the judge's lowest
value, and at its highest (for proportions and their differences: Agresti and Coull 1998, "Approximate is better than
'exact' for interval estimation of binomial proportions", American Statistician 52:119-126; Agresti and Min 2005, Biometrics
61:515-523). No interval has width 0, and each holds its rate.
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
"""Of each pseudo-item, in groups."""


@dataclass(frozen=True, slots=True)
class InferredRate:
    """A rate in [0, 1] with its interval. `trust` in [0, 1] is the weight that the judge got; 0: labels alone."""

    value: float
    low: float
    high: float
    trust: float
    more_labels: int | None
    """How many more labels would halve the interval; None where no number of them would."""

    @property
    def width(self) -> float:
        """How wide the interval is."""
        return self.high - self.low


class Grouping(NamedTuple):
    """Which items are of one group: those that are labelled, and behind them the others."""

    codes: Codes
    """A number for the group of each item, from 0."""
    labelled: int
    """How many items are labelled."""
    here: int
    """Groups of these."""
    there: int
    """Groups of the others."""

    @property
    def width(self) -> int:
        """How many groups there are."""
        return int(self.codes.max()) + 1

    @property
    def enough(self) -> bool:
        """Whether they make an interval, as `is_enough` says."""
        others = len(self.codes) - self.labelled
        return self.here > 1 and (others <= 1 or self.there > 1)


def group_items(labelled: Groups, elsewhere: Groups = ()) -> Grouping:
    """The grouping of labelled items and of others, which may share groups."""
    codes = code_groups([*labelled, *elsewhere])
    n = len(labelled)
    return Grouping(codes, n, len(np.unique(codes[:n])), len(np.unique(codes[n:])))


class _Sample(NamedTuple):
    """Labels and the judge's values of the same items, the judge's values elsewhere, and the groups of all these."""

    labels: Floats
    said: Floats
    elsewhere: Floats
    groups: Grouping


class _Rest(NamedTuple):
    """Weighted values in groups, and their mean."""

    values: Floats
    weights: Floats
    groups: Grouping
    """Of the values; behind them stand the pseudo-items, each a group of its own."""
    mean: float

    def compute_deviations(self) -> Floats:
        """By how much each group moves the mean."""
        shares = self.weights * (self.values - self.mean) / self.weights.sum()
        codes = np.concatenate([self.groups.codes[: self.groups.labelled], self.groups.width + np.arange(4)])
        return np.bincount(codes, weights=shares).astype(np.float64)

    def compute_variance(self) -> float:
        """Of the mean: where groups are drawn, and no less than where items are."""
        by_item = float(self.weights @ (self.values - self.mean) ** 2) / float(self.weights.sum()) ** 2
        if self.groups.here == self.groups.labelled:
            return by_item
        return max(by_item, _compute_group_variance(self.compute_deviations(), self.groups.here + 4))


def is_enough(labelled: Groups, elsewhere: Groups | None = None) -> bool:
    """Whether items of these groups make an interval: from labels alone, or from both with others `elsewhere`.

    Several items that are all of one group do not, for nothing says how groups differ.

    >>> (
    ...     is_enough([None, None]),
    ...     is_enough(["a", "a"]),
    ...     is_enough(["a", None], ["b"]),
    ...     is_enough(["a", None], ["b", "b"]),
    ... )
    (True, False, True, False)
    """
    return group_items(labelled, elsewhere or ()).enough and (elsewhere is None or len(elsewhere) > 0)


def infer_from_labels(
    labels: Sequence[bool], groups: Groups | None = None, *, confidence: float = CONFIDENCE
) -> InferredRate:
    """The rate from labels alone, with its interval. ValueError where they are not enough for one."""
    found = group_items(_check_groups(groups, len(labels)))
    if not found.enough:
        raise ValueError(f"{len(labels)} labels of {found.here} groups; an interval needs 2")
    return infer_grouped(np.asarray(labels, dtype=np.float64), found, confidence=confidence)


def infer_grouped(labels: Floats, groups: Grouping, *, confidence: float = CONFIDENCE) -> InferredRate:
    """As `infer_from_labels`, for labels of 0 and 1 that are enough."""
    sample = _Sample(labels, np.zeros(len(labels)), np.empty(0), groups)
    return _build_rate(sample, 0.0, float(labels.mean()), 0.0, confidence)


def ppi(
    labels: Sequence[bool],
    said: Sequence[float],
    elsewhere: Sequence[float],
    groups: tuple[Groups, Groups] | None = None,
    *,
    confidence: float = CONFIDENCE,
) -> InferredRate:
    """The rate of the items that both samples are drawn from, by prediction-powered inference with tuned weight.

    PPI++: Angelopoulos, Duchi and Zrnic 2023, arXiv:2311.01453, example 6.1. `labels` and `said` (the judge's value in
    [0, 1]) are of the same items, `elsewhere` is the judge's value of the items without a label; `groups` are those of the
    former and of the latter, which may share some. Both sampling errors are in the interval. The labelled items, or whole
    groups of them, must be drawn at random from the same traffic as the others. ValueError for lists of unlike length, and
    where the items are not enough for an interval.
    """
    y, f, g = (np.asarray(part, dtype=np.float64) for part in (labels, said, elsewhere))
    if len(y) != len(f):
        raise ValueError(f"{len(y)} labels, {len(f)} scores")
    known, others = (
        _check_groups(each, size) for each, size in zip(groups or (None, None), (len(y), len(g)), strict=True)
    )
    found = group_items(known, others)
    if not (found.enough and len(g)):
        told = f"{len(y)} labels of {found.here} groups, {len(g)} items without a label of {found.there}"
        raise ValueError(f"{told}; an interval needs 2 of each")
    return ppi_grouped(y, f, g, found, confidence=confidence)


def ppi_grouped(y: Floats, f: Floats, g: Floats, groups: Grouping, *, confidence: float = CONFIDENCE) -> InferredRate:
    """As `ppi`, for items that are enough."""
    spread = float(np.concatenate([f, g]).var(ddof=1))
    shared = float(np.cov(y, f, ddof=1)[0, 1])
    trust = 0.0 if spread <= 0 else min(1.0, max(0.0, shared / ((1 + len(y) / len(g)) * spread)))
    value = float(y.mean() + trust * (g.mean() - f.mean()))
    sample = _Sample(y, f, g, groups)
    return _build_rate(sample, trust, value, trust**2 * spread / len(g), confidence)


def _check_groups(groups: Groups | None, size: int) -> Groups:
    if groups is not None and len(groups) != size:
        raise ValueError(f"{size} items, {len(groups)} groups")
    return [None] * size if groups is None else groups


def code_groups(groups: Groups) -> Codes:
    """A number for each group, from 0, item by item; None is a group of its own."""
    known: dict[str | int, int] = {}
    numbers = [known.setdefault(at if name is None else name, len(known)) for at, name in enumerate(groups)]
    return np.asarray(numbers, dtype=np.int64)


def _build_rate(sample: _Sample, trust: float, value: float, least: float, confidence: float) -> InferredRate:
    """The rate `value`, with the interval that the sample and its pseudo-items give; `least` as in `_compute_fixed`."""
    from scipy.special import stdtrit  # noqa: PLC0415 (few need it)  # pyright: ignore[reportMissingTypeStubs]

    n, rest = len(sample.labels), _build_rest(sample, trust)
    there = _compute_deviations(trust * sample.elsewhere, sample.groups.codes[n:], sample.groups.width)
    own, fixed = rest.compute_variance(), _compute_fixed(sample, rest, there, least)
    half = float(stdtrit(_count_independent(sample.groups) - 1, (1 + confidence) / 2)) * sqrt(own + fixed)
    centre = rest.mean + (trust * float(sample.elsewhere.mean()) if trust else 0.0)
    left = (own + fixed) / 4 - fixed
    return InferredRate(
        value=min(1.0, max(0.0, value)),
        low=min(1.0, max(0.0, min(value, centre - half))),
        high=max(0.0, min(1.0, max(value, centre + half))),
        trust=trust,
        more_labels=None if left <= 0 else max(0, ceil(n * own / left) - n),
    )


def _build_rest(sample: _Sample, trust: float) -> _Rest:
    """What the labels add to what the judge says, item by item, and the pseudo-items behind them."""
    n, every = len(sample.labels), np.concatenate([sample.said, sample.elsewhere])
    ends = np.repeat([every.min(), every.max()], 2)
    values = np.concatenate([sample.labels - trust * sample.said, np.tile([0.0, 1.0], 2) - trust * ends])
    weights = np.concatenate([np.ones(n), np.full(4, PSEUDO_WEIGHT * n / sample.groups.here)])
    return _Rest(values, weights, sample.groups, float(np.average(values, weights=weights)))


def _compute_fixed(sample: _Sample, rest: _Rest, there: Floats, least: float) -> float:
    """The variance that no label lowers: of the judge's mean elsewhere, and of what both samples share.

    `least` is the former where items are independent; `there` is by how much each group moves that mean.
    """
    here = rest.compute_deviations()[: sample.groups.width]
    return max(least, _compute_group_variance(there, sample.groups.there)) + max(0.0, 2 * float(here @ there))


def _count_independent(groups: Grouping) -> int:
    """Groups that an interval is found from: with labels or without, whichever are fewer."""
    several = len(groups.codes) - groups.labelled > 1
    return min(groups.here, groups.there) if several else groups.here


def _compute_deviations(values: Floats, codes: Codes, width: int) -> Floats:
    """By how much each of `width` groups moves the mean of some values."""
    shares = (values - values.mean()) / len(values) if len(values) else values
    return np.bincount(codes, weights=shares, minlength=width).astype(np.float64)


def _compute_group_variance(deviations: Floats, count: int) -> float:
    """The variance of a mean where so many groups are drawn; 0 where there is one."""
    return count / (count - 1) * float(deviations @ deviations) if count > 1 else 0.0
