"""Fit maps: from raw values and labels to a calibration map, its threshold, and the band in which a human decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy import optimize  # pyright: ignore[reportMissingTypeStubs]

from service.calibration.labels import LabelledItem
from service.core.judging.fits.fit import Method
from service.core.judging.fits.maps import Calibrator, Identity, Isotonic, Platt
from service.core.judging.fits.usefulness import MIN_CLASS_LABELS, MIN_GROUPS, MIN_LABELS
from service.stats.tallies import Floats, LabelTally, build_confusion_at

MethodChoice = Literal["auto", Method]

ISOTONIC_MIN_LABELS = 300
"""From this many labels, isotonic maps are as good as logistic ones, and can follow any monotone shape."""
MIN_DECIDED = 0.8
"""The least share of items that the undecided band must leave decided, where no guarantee is asked for."""
MAX_STEPS, MAX_HALVINGS = 200, 40
TINY = 1e-12


def explain_too_few(items: Sequence[LabelledItem]) -> str:
    """Explain why there are too few labels to call anything calibrated; empty where there are enough."""
    passing = sum(item.passes for item in items)
    for what, count, least in (
        ("labels", len(items), MIN_LABELS),
        ("groups", len({item.group for item in items}), MIN_GROUPS),
        ("labels of the rarer class", min(passing, len(items) - passing), MIN_CLASS_LABELS),
    ):
        if count < least:
            return f"{count} {what} are too few: {least} are needed"
    return ""


def choose_method(items: Sequence[LabelledItem], choice: MethodChoice = "auto") -> Method:
    """Choose the method for this many labels: identity below the floor, Platt below 300, else isotonic; `choice` overrides."""
    if choice != "auto":
        return choice
    if explain_too_few(items):
        return "identity"
    return "platt" if len(items) < ISOTONIC_MIN_LABELS else "isotonic"


def fit_map(method: Method, tally: LabelTally) -> Calibrator:
    """Fit a map to a tally of raw values; ValueError for a tally without items."""
    if not tally.n:
        raise ValueError("nothing to fit")
    if method == "identity":
        return Identity()
    return _fit_platt(tally) if method == "platt" else _fit_isotonic(tally)


def _fit_platt(tally: LabelTally) -> Platt:
    """Fit slope and offset by Newton's method with step halving, towards Platt's smoothed targets.

    Lin, Lin and Weng 2007, "A note on Platt's probabilistic outputs for support vector machines", Machine Learning
    68:267-276. A slope below 0 would turn the judge upside down; the best slope allowed is then 0.
    """
    x, sizes = tally.scores, tally.sizes
    passed, failed = float(tally.passed.sum()), float(tally.failed.sum())
    high, low = (passed + 1) / (passed + 2), 1 / (failed + 2)
    targets = (tally.passed * high + tally.failed * low) / np.maximum(sizes, TINY)

    def compute_loss(at: Floats) -> float:
        z = at[0] * x + at[1]
        return float((sizes * (np.logaddexp(0, z) - targets * z)).sum())

    at = np.zeros(2)
    for _ in range(MAX_STEPS):
        p = 1 / (1 + np.exp(-(at[0] * x + at[1])))
        weight = sizes * p * (1 - p)
        mixed = float((weight * x).sum())
        hessian = np.array([[(weight * x * x).sum(), mixed], [mixed, weight.sum()]]) + TINY * np.eye(2)
        step = np.linalg.solve(hessian, [(sizes * (targets - p) * x).sum(), (sizes * (targets - p)).sum()])
        start = compute_loss(at)
        halved = (step / 2**n for n in range(MAX_HALVINGS))
        at = at + next((part for part in halved if compute_loss(at + part) <= start), np.zeros(2))
        if float(np.abs(step).max()) < TINY:
            break
    if at[0] > 0:
        return Platt(slope=float(at[0]), offset=float(at[1]))
    share = float((targets * sizes).sum()) / tally.n
    return Platt(slope=0.0, offset=float(np.log(share) - np.log1p(-share)))


def _fit_isotonic(tally: LabelTally) -> Isotonic:
    """Fit the non-decreasing shares closest to the labels, by pooling adjacent violators.

    Ayer, Brunk, Ewing, Reid and Silverman 1955, Annals of Mathematical Statistics 26:641-647. Of each level only its two ends
    are kept.
    """
    kept = tally.sizes > 0
    x, sizes = tally.scores[kept], tally.sizes[kept]
    pooled = optimize.isotonic_regression(tally.passed[kept] / sizes, weights=sizes)  # pyright: ignore
    y = np.clip(np.maximum.accumulate(np.asarray(pooled.x, dtype=np.float64)), 0.0, 1.0)  # pyright: ignore
    last = len(x) - 1
    ends = [at for at in range(len(x)) if at in (0, last) or y[at] != y[at - 1] or y[at] != y[at + 1]]
    return Isotonic(raw=tuple([float(x[at]) for at in ends]), value=tuple([float(y[at]) for at in ends]))


def calibrate_tally(tally: LabelTally, calibrator: Calibrator) -> LabelTally:
    """Map each raw value of the tally; values that become equal are merged."""
    values = np.array([calibrator.apply(float(score)) for score in tally.scores])
    scores, codes = np.unique(values, return_inverse=True)
    sums = [np.bincount(codes, weights=counts, minlength=len(scores)) for counts in (tally.passed, tally.failed)]
    return LabelTally(scores, sums[0].astype(np.float64), sums[1].astype(np.float64))


def choose_threshold(tally: LabelTally) -> float:
    """Choose the least value that passes: where balanced accuracy is highest, halfway to the next value below.

    Of several equally good ones, the one closest to 0.5. Youden 1950, "Index for rating diagnostic tests", Cancer 3:32-35.
    0.5 where a class has no items.
    """
    scores = tally.scores[tally.sizes > 0]
    candidates = [0.0, *((scores[1:] + scores[:-1]) / 2).tolist()]
    judged = [(build_confusion_at(tally, at).balanced_accuracy, at) for at in candidates]
    known = [(-round(value, 12), abs(at - 0.5), at) for value, at in judged if value is not None]
    return min(known)[2] if known else 0.5


class CurvePoint(NamedTuple):
    """The accuracy when only values at least `margin` from the threshold are decided."""

    margin: float
    """0 at the threshold, 1 at the values 0 and 1."""
    coverage: float
    """The share of items that are decided."""
    accuracy: float
    """The accuracy among the decided items."""


def build_coverage_curve(parts: Sequence[tuple[LabelTally, float]]) -> tuple[CurvePoint, ...]:
    """Build the curve from all items decided to only the surest; values with one margin go together. Empty for no items.

    `parts`: tallies, each with the threshold of its verdicts; for held-out items that of the map that has not seen them.
    El-Yaniv and Wiener 2010, "On the foundations of noise-free selective classification", JMLR 11:1605-1641.
    """
    margins = np.array([_measure_margin(float(score), at) for tally, at in parts for score in tally.scores])
    sizes = np.concatenate([tally.sizes for tally, _ in parts]) if parts else np.empty(0)
    right = np.concatenate([np.where(tally.scores >= at, tally.passed, tally.failed) for tally, at in parts] or [sizes])
    points: list[CurvePoint] = []
    for margin in np.unique(margins[sizes > 0]).tolist():
        decided = margins >= margin
        n = float(sizes[decided].sum())
        points.append(CurvePoint(margin, n / float(sizes.sum()), float(right[decided].sum()) / n))
    return tuple(points)


def _measure_margin(value: float, threshold: float) -> float:
    room = 1 - threshold if value >= threshold else threshold
    return abs(value - threshold) / room if room > 0 else 1.0


def choose_band(tally: LabelTally, threshold: float, *, least: float = MIN_DECIDED) -> tuple[float, float] | None:
    """Choose the band of values that go to a human, so that the rest is as accurate as possible.

    At least `least` of the items stay decided. None where leaving nothing out is as good. The band reaches halfway to the
    nearest values that stay decided.
    """
    allowed = [point for point in build_coverage_curve([(tally, threshold)]) if point.coverage >= least]
    best = max(allowed, key=lambda point: (round(point.accuracy, 12), point.coverage), default=None)
    if best is None or best.accuracy <= allowed[0].accuracy:
        return None
    scores = tally.scores[tally.sizes > 0].tolist()
    unsure = [at for at, score in enumerate(scores) if _measure_margin(score, threshold) < best.margin]
    low, high = unsure[0], unsure[-1]
    below = 0.0 if low == 0 else (scores[low - 1] + scores[low]) / 2
    above = 1.0 if high == len(scores) - 1 else (scores[high] + scores[high + 1]) / 2
    return below, above
