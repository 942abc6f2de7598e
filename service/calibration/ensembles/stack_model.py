"""Many recorded judges as one: a logistic regression on their values, with separate weights for each judge in each tool family.

Unlike a jury's, its weights may be negative, and a judge's value may be missing. It shows what a set of judges knows
together; it is not served.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.stats.tallies import Floats, build_confusion_at, build_tally

RIDGES = (3.0, 10.0, 20.0, 40.0, 80.0, 160.0)
"""The strengths of the penalty on weights to choose from, by likelihood on items that were not fitted."""
INNER_FOLDS = 5
THRESHOLDS = tuple([at / 100 for at in range(30, 71)])
MAX_STEPS = 50
TINY = 1e-9


class StackedItem(NamedTuple):
    """Each judge's value for an item (None: missing), and its family."""

    values: tuple[float | None, ...]
    family: str


class Stack(NamedTuple):
    """A fitted regression."""

    means: Floats
    scales: Floats
    families: tuple[str, ...]
    weights: Floats
    threshold: float
    """The least probability that passes: where kappa is best on the fitted items, each predicted from the other folds."""

    def apply(self, items: Sequence[StackedItem]) -> Floats:
        """Return the probability that each item passes."""
        return _compute_probability(_build_columns(items, self.means, self.scales, self.families) @ self.weights)


def fit_stack(items: Sequence[StackedItem], labels: Sequence[bool], folds: Sequence[int]) -> Stack:
    """Fit by maximum likelihood with the ridge penalty that predicts best across `folds`, the fold number of each item."""
    values = _read_values(items)
    known = ~np.isnan(values)
    counts = np.maximum(known.sum(axis=0), 1)
    means = np.where(known, values, 0.0).sum(axis=0) / counts
    scales = np.maximum(np.sqrt(np.where(known, (values - means) ** 2, 0.0).sum(axis=0) / counts), TINY)
    families = tuple(sorted({item.family for item in items}))
    columns, y = _build_columns(items, means, scales, families), np.asarray(labels, dtype=np.float64)
    fold = np.asarray(folds, dtype=np.int64)
    held_out = {one: _predict_held_out(columns, y, fold, one) for one in RIDGES}
    ridge = min(RIDGES, key=lambda one: (_compute_loss(held_out[one], y), one))
    return Stack(means, scales, families, _fit_weights(columns, y, ridge), _choose_threshold(held_out[ridge], labels))


def _read_values(items: Sequence[StackedItem]) -> Floats:
    return np.array([[np.nan if one is None else one for one in item.values] for item in items], dtype=np.float64)


def _build_columns(items: Sequence[StackedItem], means: Floats, scales: Floats, families: Sequence[str]) -> Floats:
    """Build the design matrix: standardized judges (0 where missing), families, and their interactions."""
    judged = np.nan_to_num((_read_values(items) - means) / scales)
    within = np.array([[item.family == name for name in families] for item in items], dtype=np.float64)
    crossed = [judged * within[:, [at]] for at in range(len(families))]
    return np.concatenate([np.ones((len(items), 1)), judged, within, *crossed], axis=1)


def _predict_held_out(columns: Floats, y: Floats, fold: NDArray[np.int64], ridge: float) -> Floats:
    probabilities = np.zeros(len(y))
    for number in np.unique(fold):
        held_out = fold == number
        probabilities[held_out] = _compute_probability(
            columns[held_out] @ _fit_weights(columns[~held_out], y[~held_out], ridge)
        )
    return probabilities


def _compute_loss(probabilities: Floats, y: Floats) -> float:
    return -float((y * np.log(probabilities + TINY) + (1 - y) * np.log(1 - probabilities + TINY)).sum())


def _choose_threshold(probabilities: Floats, labels: Sequence[bool]) -> float:
    tally = build_tally(probabilities, labels)
    return min(THRESHOLDS, key=lambda at: (-(build_confusion_at(tally, at).kappa or 0.0), abs(at - 0.5)))


def _fit_weights(columns: Floats, y: Floats, ridge: float) -> Floats:
    """Fit by Newton's method; the ridge makes each step well defined."""
    at = np.zeros(columns.shape[1])
    for _ in range(MAX_STEPS):
        p = _compute_probability(columns @ at)
        spread = (columns * (p * (1 - p))[:, None]).T @ columns + ridge * np.eye(len(at))
        step = np.linalg.solve(spread, columns.T @ (y - p) - ridge * at)
        at = at + step
        if float(np.abs(step).max()) < TINY:
            break
    return at.astype(np.float64)


def _compute_probability(z: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(z, -500, 500)))
