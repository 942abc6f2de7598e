"""Scores in [0, 1] against labels. All figures come from a tally by score, so the order of items and of ties changes none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from service.stats.agreement import ConfusionTable

Floats = NDArray[np.float64]

BINS = 10


@dataclass(frozen=True, slots=True)
class LabelTally:
    """How many items of each score the labels pass and fail. `scores` ascend and differ; the others are of its shape."""

    scores: Floats
    passed: Floats
    failed: Floats

    @property
    def sizes(self) -> Floats:
        """Items by score."""
        return self.passed + self.failed

    @property
    def n(self) -> float:
        """Items in all."""
        return float(self.sizes.sum())


class Bin(NamedTuple):
    """Items of neighbouring scores: how many, what was said of them on average, and what share the labels pass."""

    low: float
    high: float
    n: float
    mean: float
    share: float


class TallyRows:
    """Items with a score and a label each, laid out so that they can be tallied again and again with other weights."""

    def __init__(self, scores: ArrayLike, labels: ArrayLike) -> None:
        values = np.asarray(scores, dtype=np.float64)
        self._scores, codes = np.unique(values, return_inverse=True)
        self._codes = 2 * codes + np.asarray(labels, dtype=np.int64)

    def tally(self, weights: Floats | None = None) -> LabelTally:
        """The tally, each item counted as often as its weight says."""
        counts = np.bincount(self._codes, weights=weights, minlength=2 * len(self._scores)).astype(np.float64)
        return LabelTally(self._scores, counts[1::2], counts[0::2])


def tally(scores: ArrayLike, labels: ArrayLike) -> LabelTally:
    """The tally of items. `scores` in [0, 1]; `labels` true where the item passes; both of one length."""
    return TallyRows(scores, labels).tally()


def build_confusion_at(found: LabelTally, threshold: float) -> ConfusionTable:
    """The verdicts that passing from `threshold` upwards gives, against the labels."""
    at = int(np.searchsorted(found.scores, threshold, side="left"))
    return ConfusionTable(
        tp=float(found.passed[at:].sum()),
        fp=float(found.failed[at:].sum()),
        fn=float(found.passed[:at].sum()),
        tn=float(found.failed[:at].sum()),
    )


def auroc(found: LabelTally) -> float | None:
    """The chance that a passing item has the higher score than a failing one, ties counted half.

    Mann and Whitney 1947, Annals of Mathematical Statistics 18:50-60. None where a class has no item.

    >>> auroc(tally([0.1, 0.4, 0.4, 0.8], [0, 0, 1, 1]))
    0.875
    """
    return auroc_within([found])


def auroc_within(strata: Iterable[LabelTally]) -> float | None:
    """The same over pairs of items of one stratum only: what the score knows beside which stratum it is."""
    won = pairs = 0.0
    for found in strata:
        below = np.cumsum(found.failed) - found.failed
        won += float((found.passed * (below + found.failed / 2)).sum())
        pairs += float(found.passed.sum() * found.failed.sum())
    return won / pairs if pairs > 0 else None


def brier(found: LabelTally) -> float | None:
    """The mean squared distance of score and label (Brier 1950, Monthly Weather Review 78:1-3). None for no items.

    >>> round(brier(tally([0.9, 0.9, 0.3], [1, 1, 0])), 6)
    0.036667
    """
    if not found.n:
        return None
    lost = found.passed * (1 - found.scores) ** 2 + found.failed * found.scores**2
    return float(lost.sum()) / found.n


def build_reliability(found: LabelTally, bins: int = BINS) -> tuple[Bin, ...]:
    """At most `bins` bins of about equal size. Equal scores share one bin: the middle of their ranks says which.

    So the table does not depend on the order of items, as it does where bins of equal size cut through ties.
    """
    if not found.n:
        return ()
    which, sizes = _assign_bins(found, bins), found.sizes
    return tuple([_build_bin(found, np.flatnonzero((which == at) & (sizes > 0))) for at in np.unique(which[sizes > 0])])


def ece(found: LabelTally, bins: int = BINS) -> float | None:
    """The expected calibration error: over those bins, the mean distance of what was said and what is so, by items.

    Naeini, Cooper and Hauskrecht 2015, "Obtaining well calibrated probabilities using Bayesian binning", AAAI. None for no
    items. In [0, 1].

    >>> round(ece(tally([0.2] * 5 + [0.8] * 5, [0, 0, 0, 0, 1] + [0, 1, 1, 1, 1])), 6)
    0.0
    """
    if not found.n:
        return None
    gaps = np.bincount(_assign_bins(found, bins), weights=found.sizes * found.scores - found.passed)
    return float(np.abs(gaps).sum()) / found.n


def ece_by_chance(found: LabelTally, *, bins: int = BINS, draws: int = 200, seed: int = 20_240_229) -> float | None:
    """The ECE that these scores would show on average if each were exactly the chance that its items pass.

    With few items no figure comes below it but by luck; the closer an ECE is to it, the less there is left to explain.
    """
    if not found.n:
        return None
    rng, sizes = np.random.default_rng(seed), found.sizes.astype(np.int64)
    drawn = rng.binomial(sizes, np.clip(found.scores, 0, 1), size=(draws, len(sizes))).astype(np.float64)
    errors = [ece(LabelTally(found.scores, passed, sizes - passed), bins) or 0.0 for passed in drawn]
    return float(np.mean(errors))


def _assign_bins(found: LabelTally, bins: int) -> NDArray[np.int64]:
    middle = np.cumsum(found.sizes) - found.sizes / 2
    return np.minimum(bins - 1, np.floor(middle * bins / found.n)).astype(np.int64)


def _build_bin(found: LabelTally, at: NDArray[np.int64]) -> Bin:
    scores, sizes = found.scores[at], found.sizes[at]
    n = float(sizes.sum())
    return Bin(
        low=float(scores[0]),
        high=float(scores[-1]),
        n=n,
        mean=float((scores * sizes).sum()) / n,
        share=float(found.passed[at].sum()) / n,
    )


def tally_strata(scores: Sequence[float], labels: Sequence[bool], strata: Sequence[str]) -> tuple[LabelTally, ...]:
    """A tally for each stratum, in the order of their names."""
    return tuple([_tally_stratum(scores, labels, strata, name) for name in sorted(set(strata))])


def _tally_stratum(scores: Sequence[float], labels: Sequence[bool], strata: Sequence[str], name: str) -> LabelTally:
    rows = [at for at, stratum in enumerate(strata) if stratum == name]
    return tally([scores[at] for at in rows], [labels[at] for at in rows])
