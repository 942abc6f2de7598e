"""Several judges as one: a weight for each, fitted to labels, and whether that beats the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize  # pyright: ignore[reportMissingTypeStubs]

from service.calibration.figures import FigureRow, Measure, Resampling
from service.calibration.paired import compute_differences
from service.stats.tallies import Floats, LabelTally, auroc, brier

RIDGE = 1.0
"""The strength of the penalty on weights: a weight of about 1.4 costs as much as one item that is completely wrong."""


@dataclass(frozen=True, slots=True)
class Advantage:
    """How much better the jury is than the best single judge on the held-out items; above 0 is better."""

    auroc: Measure
    brier: Measure
    """How much lower its Brier score is."""

    @property
    def kept(self) -> bool | None:
        """Whether the jury is worth its price: the whole interval of its Brier gain is above 0. None: there is no interval."""
        return None if self.brier.low is None else self.brier.low > 0


def fit_jury_weights(raw: Sequence[Sequence[float]], labels: Sequence[bool]) -> tuple[float, ...]:
    """Fit a weight of at least 0 for each judge, summing to 1, by ridge-penalized logistic regression.

    `raw` is of shape (items, judges), in [0, 1]. Equal weights where no judge helps.
    """
    x, y = np.asarray(raw, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    judges = x.shape[1]
    bounds = [(0.0, None)] * judges + [(None, None)]
    start = np.append(np.ones(judges), 0.0)
    result = optimize.minimize(_compute_loss, start, args=(x, y), jac=True, method="L-BFGS-B", bounds=bounds)  # pyright: ignore
    weights = np.maximum(np.asarray(result.x[:-1], dtype=np.float64), 0.0)  # pyright: ignore
    total = float(weights.sum())
    if total <= 0:
        return tuple([1 / judges] * judges)
    return tuple([float(weight) / total for weight in weights])


def _compute_loss(at: Floats, x: Floats, y: Floats) -> tuple[float, Floats]:
    z = x @ at[:-1] + at[-1]
    p = 1 / (1 + np.exp(-z))
    loss = float((np.logaddexp(0, z) - y * z).sum()) + RIDGE / 2 * float((at[:-1] ** 2).sum())
    slope = x.T @ (p - y) + RIDGE * at[:-1]
    return loss, np.append(slope, float((p - y).sum()))


def average_jury(weights: Sequence[float], raw: Sequence[float]) -> float:
    """Return the weighted mean of the judges' values, in [0, 1]."""
    return min(1.0, max(0.0, sum(weight * value for weight, value in zip(weights, raw, strict=True))))


def measure_advantage(jury: Sequence[FigureRow], single: Sequence[FigureRow], resampling: Resampling) -> Advantage:
    """Compare the jury with a single judge on the same items in the same order, with intervals of the paired difference."""
    figures = {"auroc": auroc, "brier": _compute_negative_brier}
    differences = compute_differences(
        single, jury, {name: (figure, figure) for name, figure in figures.items()}, resampling
    )
    return Advantage(differences["auroc"], differences["brier"])


def _compute_negative_brier(tally: LabelTally) -> float | None:
    score = brier(tally)
    return None if score is None else -score
