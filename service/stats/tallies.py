"""Scores in [0, 1] against labels. All figures come from a tally by score, so neither item order nor ties change any of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from service.stats.agreement import ConfusionTable

Floats = NDArray[np.float64]

BINS = 10


@dataclass(frozen=True, slots=True)
class LabelTally:
    """How many items of each score the labels pass and fail; `scores` ascend without repeats, all arrays have one shape."""

    scores: Floats
    passed: Floats
    failed: Floats

    @property
    def sizes(self) -> Floats:
        """How many items have each score."""
        return self.passed + self.failed

    @property
    def n(self) -> float:
        """The total number of items."""
        return float(self.sizes.sum())


class Bin(NamedTuple):
    """Items of neighbouring scores: how many, their mean score, and the share that the labels pass."""

    low: float
    high: float
    n: float
    mean: float
    share: float


class TallyRows:
    """Items, each with a score and a label, laid out so that they can be tallied repeatedly with different weights."""

    def __init__(self, scores: ArrayLike, labels: ArrayLike) -> None:
        values = np.asarray(scores, dtype=np.float64)
        self._scores, codes = np.unique(values, return_inverse=True)
        self._codes = 2 * codes + np.asarray(labels, dtype=np.int64)

    def tally(self, weights: Floats | None = None) -> LabelTally:
        """Tally the items, each counted as often as its weight says."""
        counts = np.bincount(self._codes, weights=weights, minlength=2 * len(self._scores)).astype(np.float64)
        return LabelTally(self._scores, counts[1::2], counts[0::2])


def build_tally(scores: ArrayLike, labels: ArrayLike) -> LabelTally:
    """Tally items. `scores` in [0, 1]; `labels` true where the item passes; both of one length."""
    return TallyRows(scores, labels).tally()


def build_confusion_at(tally: LabelTally, threshold: float) -> ConfusionTable:
    """Tabulate against the labels the verdicts that result when scores from `threshold` upwards pass."""
    at = int(np.searchsorted(tally.scores, threshold, side="left"))
    return ConfusionTable(
        tp=float(tally.passed[at:].sum()),
        fp=float(tally.failed[at:].sum()),
        fn=float(tally.passed[:at].sum()),
        tn=float(tally.failed[:at].sum()),
    )


def auroc(tally: LabelTally) -> float | None:
    """Compute the chance that a passing item scores higher than a failing one, ties counted half.

    Mann and Whitney 1947, Annals of Mathematical Statistics 18:50-60. None where a class has no items.

    >>> auroc(build_tally([0.1, 0.4, 0.4, 0.8], [0, 0, 1, 1]))
    0.875
    """
    return auroc_within([tally])


def auroc_within(strata: Iterable[LabelTally]) -> float | None:
    """Compute the AUROC over pairs within one stratum only: what the score knows beyond which stratum an item belongs to."""
    won = pairs = 0.0
    for tally in strata:
        below = np.cumsum(tally.failed) - tally.failed
        won += float((tally.passed * (below + tally.failed / 2)).sum())
        pairs += float(tally.passed.sum() * tally.failed.sum())
    return won / pairs if pairs > 0 else None


def brier(tally: LabelTally) -> float | None:
    """Compute the mean squared distance of score and label (Brier 1950, Monthly Weather Review 78:1-3). None for no items.

    >>> round(brier(build_tally([0.9, 0.9, 0.3], [1, 1, 0])), 6)
    0.036667
    """
    if not tally.n:
        return None
    lost = tally.passed * (1 - tally.scores) ** 2 + tally.failed * tally.scores**2
    return float(lost.sum()) / tally.n


def build_reliability(tally: LabelTally) -> tuple[Bin, ...]:
    """Build the reliability table: at most `BINS` bins of about equal size. Equal scores share the bin of their middle rank.

    The table therefore does not depend on the order of items, unlike one whose equal-size bins cut through ties.
    """
    which, kept, found = _assign_bins(tally), tally.sizes > 0, list[Bin]()
    for number in np.unique(which[kept]):
        at = kept & (which == number)
        scores, sizes = tally.scores[at], tally.sizes[at]
        n = float(sizes.sum())
        mean, share = float((scores * sizes).sum()) / n, float(tally.passed[at].sum()) / n
        found.append(Bin(float(scores[0]), float(scores[-1]), n, mean, share))
    return tuple(found)


def ece(tally: LabelTally) -> float | None:
    """Compute the expected calibration error over those bins: the mean distance of mean score and pass rate, weighted by items.

    Naeini, Cooper and Hauskrecht 2015, "Obtaining well calibrated probabilities using Bayesian binning", AAAI. None for no
    items. In [0, 1].

    >>> round(ece(build_tally([0.2] * 5 + [0.8] * 5, [0, 0, 0, 0, 1] + [0, 1, 1, 1, 1])), 6)
    0.0
    """
    if not tally.n:
        return None
    gaps = np.bincount(_assign_bins(tally), weights=tally.sizes * tally.scores - tally.passed)
    return float(np.abs(gaps).sum()) / tally.n


def _assign_bins(tally: LabelTally) -> NDArray[np.int64]:
    middle = np.cumsum(tally.sizes) - tally.sizes / 2
    return np.minimum(BINS - 1, np.floor(middle * BINS / (tally.n or 1.0))).astype(np.int64)
