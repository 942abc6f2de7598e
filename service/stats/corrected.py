"""The rate of many items from few labels and a judge's word on all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from service.stats.intervals import CONFIDENCE
from service.stats.tallies import Floats


@dataclass(frozen=True, slots=True)
class Corrected:
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


def by_labels(labels: Sequence[bool], *, confidence: float = CONFIDENCE) -> Corrected:
    """The rate from labels alone, with Student's interval. ValueError for fewer than two."""
    values = _values(labels)
    return _around(float(values.mean()), values, 0.0, 0.0, confidence)


def ppi(
    labels: Sequence[bool], said: Sequence[float], elsewhere: Sequence[float], *, confidence: float = CONFIDENCE
) -> Corrected:
    """The rate of the items that both samples are drawn from, by prediction-powered inference with tuned weight.

    PPI++: Angelopoulos, Duchi and Zrnic 2023, arXiv:2311.01453, example 6.1; with Student's quantile for the labelled part.
    `labels` and `said` (the judge's value in [0, 1]) are of the same items, `elsewhere` is the judge's value of the items
    without a label. Both sampling errors are in the interval. The labelled items must be drawn at random from the same
    traffic as the others. ValueError for fewer than two labels, lists of unlike length, or nothing elsewhere.
    """
    y, f, g = _values(labels), np.asarray(said, dtype=np.float64), np.asarray(elsewhere, dtype=np.float64)
    if len(y) != len(f):
        raise ValueError(f"{len(y)} labels, {len(f)} scores")
    if not len(g):
        raise ValueError("no items without a label")
    spread = float(np.concatenate([f, g]).var(ddof=1))
    shared = float(np.cov(y, f, ddof=1)[0, 1])
    trust = 0.0 if spread <= 0 else min(1.0, max(0.0, shared / ((1 + len(y) / len(g)) * spread)))
    value = float(y.mean() + trust * (g.mean() - f.mean()))
    return _around(value, y - trust * f, trust, trust**2 * spread / len(g), confidence)


def _values(labels: Sequence[bool]) -> Floats:
    if len(labels) < 2:
        raise ValueError(f"an interval needs 2 labels, not {len(labels)}")
    return np.asarray(labels, dtype=np.float64)


def _around(value: float, rest: Floats, trust: float, fixed: float, confidence: float) -> Corrected:
    """`rest` is what the labels must tell, item by item; `fixed` the variance that no label takes away."""
    from scipy.special import stdtrit  # noqa: PLC0415 (few need it)  # pyright: ignore[reportMissingTypeStubs]

    n, own = len(rest), float(rest.var(ddof=1))
    variance = own / n + fixed
    half = float(stdtrit(n - 1, (1 + confidence) / 2)) * sqrt(variance)
    left = variance / 4 - fixed
    more = None if left <= 0 else max(0, ceil(own / left) - n)
    return Corrected(
        value=min(1.0, max(0.0, value)),
        low=min(1.0, max(0.0, value - half)),
        high=max(0.0, min(1.0, value + half)),
        trust=trust,
        more_labels=more,
    )
