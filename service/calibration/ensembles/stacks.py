"""Many recorded judges as one: a logistic sum of what they said, with a weight of its own for each judge in each family.

Unlike a jury's its weights may be below 0, and a judge may be missing. It shows what a set of judges knows together; it is
not served.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.stats.tallies import Floats, build_confusion_at, build_tally

RIDGES = (3.0, 10.0, 20.0, 40.0, 80.0, 160.0)
"""How strongly weights may be held back; the likeliest one on items that were not fitted is taken."""
INNER_FOLDS = 5
THRESHOLDS = tuple([at / 100 for at in range(30, 71)])
STEPS = 50
TINY = 1e-9


class StackedItem(NamedTuple):
    """What each judge said of an item (None: nothing), and its family."""

    said: tuple[float | None, ...]
    family: str


class Stack(NamedTuple):
    """A fitted sum."""

    means: Floats
    scales: Floats
    families: tuple[str, ...]
    weights: Floats
    threshold: float
    """The least probability that passes: where kappa is best on fitted items, each by what the others make likely."""

    def apply(self, items: Sequence[StackedItem]) -> Floats:
        """The probability that each passes."""
        return _compute_chance(_build_columns(items, self.means, self.scales, self.families) @ self.weights)


def fit_stack(items: Sequence[StackedItem], labels: Sequence[bool], folds: Sequence[int]) -> Stack:
    """The sum that makes the labels likeliest, held back by the ridge that predicts best across `folds`, one for each item."""
    said = _read_said(items)
    known = ~np.isnan(said)
    counts = np.maximum(known.sum(axis=0), 1)
    means = np.where(known, said, 0.0).sum(axis=0) / counts
    scales = np.maximum(np.sqrt(np.where(known, (said - means) ** 2, 0.0).sum(axis=0) / counts), TINY)
    families = tuple(sorted({item.family for item in items}))
    columns, y = _build_columns(items, means, scales, families), np.asarray(labels, dtype=np.float64)
    fold = np.asarray(folds, dtype=np.int64)
    held = {one: _predict_held_out(columns, y, fold, one) for one in RIDGES}
    ridge = min(RIDGES, key=lambda one: (_compute_loss(held[one], y), one))
    return Stack(means, scales, families, _fit_weights(columns, y, ridge), _choose_threshold(held[ridge], labels))


def _read_said(items: Sequence[StackedItem]) -> Floats:
    return np.array([[np.nan if one is None else one for one in item.said] for item in items], dtype=np.float64)


def _build_columns(items: Sequence[StackedItem], means: Floats, scales: Floats, families: Sequence[str]) -> Floats:
    """Each judge on one scale, 0 where it said nothing; the family; and each judge within each family."""
    judged = np.nan_to_num((_read_said(items) - means) / scales)
    within = np.array([[item.family == name for name in families] for item in items], dtype=np.float64)
    crossed = [judged * within[:, [at]] for at in range(len(families))]
    return np.concatenate([np.ones((len(items), 1)), judged, within, *crossed], axis=1)


def _predict_held_out(columns: Floats, y: Floats, fold: NDArray[np.int64], ridge: float) -> Floats:
    found = np.zeros(len(y))
    for number in np.unique(fold):
        held = fold == number
        found[held] = _compute_chance(columns[held] @ _fit_weights(columns[~held], y[~held], ridge))
    return found


def _compute_loss(chance: Floats, y: Floats) -> float:
    return -float((y * np.log(chance + TINY) + (1 - y) * np.log(1 - chance + TINY)).sum())


def _choose_threshold(chance: Floats, labels: Sequence[bool]) -> float:
    found = build_tally(chance, labels)
    return min(THRESHOLDS, key=lambda at: (-(build_confusion_at(found, at).kappa or 0.0), abs(at - 0.5)))


def _fit_weights(columns: Floats, y: Floats, ridge: float) -> Floats:
    """Newton's method; the ridge makes each step well defined."""
    at = np.zeros(columns.shape[1])
    for _ in range(STEPS):
        p = _compute_chance(columns @ at)
        spread = (columns * (p * (1 - p))[:, None]).T @ columns + ridge * np.eye(len(at))
        step = np.linalg.solve(spread, columns.T @ (y - p) - ridge * at)
        at = at + step
        if float(np.abs(step).max()) < TINY:
            break
    return at.astype(np.float64)


def _compute_chance(z: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(z, -500, 500)))
