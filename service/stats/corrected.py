"""The rate of many items from few labels and a judge's word on all of them.

Items of one group (a conversation, a payload) are not independent: where groups are named, variances are those of groups
drawn whole (Liang and Zeger 1986, "Longitudinal data analysis using generalized linear models", Biometrika 73:13-22), and
never less than those of items that are drawn one by one. An item whose group is None is one of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, fsum, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.stats.intervals import CONFIDENCE
from service.stats.tallies import Floats

Groups = Sequence[str | None]


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


class _Variance(NamedTuple):
    """Of an estimated rate. A label more takes its part from `own` and nothing from `fixed`."""

    own: float
    """Of one label."""
    fixed: float
    independent: int
    """Groups that it was found from: with labels or without, whichever are fewer."""


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
    others = elsewhere is None or len(elsewhere) == 1 or _count_groups(elsewhere) > 1
    return _count_groups(labelled) > 1 and others


def infer_from_labels(
    labels: Sequence[bool], groups: Groups | None = None, *, confidence: float = CONFIDENCE
) -> InferredRate:
    """The rate from labels alone, with Student's interval. ValueError where they are not enough for one."""
    values, groups = np.asarray(labels, dtype=np.float64), _check_groups(groups, len(labels))
    if not is_enough(groups):
        raise ValueError(f"{len(labels)} labels of {_count_groups(groups)} groups; an interval needs 2")
    variance = _compute_variance(values, np.empty(0), _code_groups(groups))
    return _build_rate(float(values.mean()), 0.0, variance, len(values), confidence)


def ppi(
    labels: Sequence[bool],
    said: Sequence[float],
    elsewhere: Sequence[float],
    groups: tuple[Groups, Groups] | None = None,
    *,
    confidence: float = CONFIDENCE,
) -> InferredRate:
    """The rate of the items that both samples are drawn from, by prediction-powered inference with tuned weight.

    PPI++: Angelopoulos, Duchi and Zrnic 2023, arXiv:2311.01453, example 6.1; with Student's quantile for the labelled part.
    `labels` and `said` (the judge's value in [0, 1]) are of the same items, `elsewhere` is the judge's value of the items
    without a label; `groups` are those of the former and of the latter, which may share some. Both sampling errors are in
    the interval. The labelled items, or whole groups of them, must be drawn at random from the same traffic as the others.
    ValueError for lists of unlike length, and where the items are not enough for an interval.
    """
    y, f, g = (np.asarray(part, dtype=np.float64) for part in (labels, said, elsewhere))
    if len(y) != len(f):
        raise ValueError(f"{len(y)} labels, {len(f)} scores")
    known, others = (
        _check_groups(each, size) for each, size in zip(groups or (None, None), (len(y), len(g)), strict=True)
    )
    if not is_enough(known, others):
        told = f"{len(y)} labels of {_count_groups(known)} groups, {len(g)} items without a label of {_count_groups(others)}"
        raise ValueError(f"{told}; an interval needs 2 of each")
    spread = float(np.concatenate([f, g]).var(ddof=1))
    shared = float(np.cov(y, f, ddof=1)[0, 1])
    trust = 0.0 if spread <= 0 else min(1.0, max(0.0, shared / ((1 + len(y) / len(g)) * spread)))
    value = float(y.mean() + trust * (g.mean() - f.mean()))
    variance = _compute_variance(
        y - trust * f, trust * g, _code_groups([*known, *others]), least=trust**2 * spread / len(g)
    )
    return _build_rate(value, trust, variance, len(y), confidence)


def _count_groups(groups: Groups) -> int:
    return len(set(groups) - {None}) + groups.count(None)


def _check_groups(groups: Groups | None, size: int) -> Groups:
    if groups is not None and len(groups) != size:
        raise ValueError(f"{size} items, {len(groups)} groups")
    return [None] * size if groups is None else groups


def _code_groups(groups: Groups) -> NDArray[np.int64] | None:
    """A number for each group, item by item; None where no group has two items."""
    known: dict[str | int, int] = {}
    codes = [known.setdefault(at if name is None else name, len(known)) for at, name in enumerate(groups)]
    return None if len(known) == len(codes) else np.asarray(codes, dtype=np.int64)


def _compute_variance(rest: Floats, told: Floats, codes: NDArray[np.int64] | None, *, least: float = 0.0) -> _Variance:
    """`rest` is what the labels must tell, item by item; `told` what the judge tells of the others.

    `least` is the variance of the latter's mean where they are independent; `codes` are the groups of both.
    """
    n, own = len(rest), float(rest.var(ddof=1))
    if codes is None:
        return _Variance(own, least, n)
    labelled, others = codes[:n], codes[n:]
    here, there = _compute_deviations(rest, labelled, codes), _compute_deviations(told, others, codes)
    own = max(own, n * _compute_group_variance(here, labelled))
    fixed = max(least, _compute_group_variance(there, others)) + max(0.0, 2 * fsum(here * there))
    counts = [len(np.unique(part)) for part in (labelled, others) if len(part) > 1]
    return _Variance(own, fixed, min(counts))


def _compute_deviations(values: Floats, codes: NDArray[np.int64], every: NDArray[np.int64]) -> Floats:
    """By how much each group moves the mean of some values."""
    shares = (values - values.mean()) / len(values) if len(values) else values
    return np.bincount(codes, weights=shares, minlength=int(every.max()) + 1).astype(np.float64)


def _compute_group_variance(deviations: Floats, codes: NDArray[np.int64]) -> float:
    """The variance of a mean where groups are drawn; 0 where there is one group."""
    count = len(np.unique(codes))
    return count / (count - 1) * fsum(deviations**2) if count > 1 else 0.0


def _build_rate(value: float, trust: float, of: _Variance, n: int, confidence: float) -> InferredRate:
    from scipy.special import stdtrit  # noqa: PLC0415 (few need it)  # pyright: ignore[reportMissingTypeStubs]

    variance = of.own / n + of.fixed
    half = float(stdtrit(of.independent - 1, (1 + confidence) / 2)) * sqrt(variance)
    left = variance / 4 - of.fixed
    more = None if left <= 0 else max(0, ceil(of.own / left) - n)
    return InferredRate(
        value=min(1.0, max(0.0, value)),
        low=min(1.0, max(0.0, value - half)),
        high=max(0.0, min(1.0, value + half)),
        trust=trust,
        more_labels=more,
    )
