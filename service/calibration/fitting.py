"""Fit maps: from raw values and labels to a calibration map, its threshold, and the band in which a human decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import exp
from typing import Literal, NamedTuple

import numpy as np
from scipy import optimize  # pyright: ignore[reportMissingTypeStubs]

from service.calibration.labels import LabelledItem
from service.core.judging.fits import (
    Calibrator,
    Identity,
    Isotonic,
    Method,
    Platt,
    Temperature,
    VennAbers,
    log_odds,
)
from service.stats.tallies import Floats, LabelTally, build_confusion_at

MethodChoice = Literal["auto", "identity", "platt", "isotonic", "temperature", "venn_abers"]

MIN_LABELS = 50
MIN_GROUPS = 10
MIN_CLASS_LABELS = 10
"""The floor: with fewer labels, fewer groups, or fewer labels of the rarer class, nothing is called calibrated. Below it the
interval of kappa is about as wide as kappa's own range, and says nothing."""
ISOTONIC_MIN_LABELS = 300
"""From this many labels, isotonic maps are as good as logistic ones, and can follow any monotone shape."""
MAX_STEPS = 200
TINY = 1e-12


def explain_too_few(items: Sequence[LabelledItem]) -> str:
    """Explain why there are too few labels to call anything calibrated; empty where there are enough."""
    passing = sum(item.passes for item in items)
    counts = (
        ("labels", len(items), MIN_LABELS),
        ("groups", len({item.group for item in items}), MIN_GROUPS),
        ("labels of the rarer class", min(passing, len(items) - passing), MIN_CLASS_LABELS),
    )
    return next(
        (f"{count} {what} are too few: {least} are needed" for what, count, least in counts if count < least), ""
    )


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
    return _FITTERS[method](tally)


def _fit_platt(tally: LabelTally) -> Platt:
    """Fit slope and offset by Newton's method with step halving, towards Platt's smoothed targets.

    Lin, Lin and Weng 2007, "A note on Platt's probabilistic outputs for support vector machines", Machine Learning
    68:267-276. A slope below 0 would turn the judge upside down; the best slope allowed is then 0.
    """
    passed, failed = float(tally.passed.sum()), float(tally.failed.sum())
    high, low = (passed + 1) / (passed + 2), 1 / (failed + 2)
    targets = (tally.passed * high + tally.failed * low) / np.maximum(tally.sizes, TINY)
    at = np.zeros(2)
    for _ in range(MAX_STEPS):
        step = _compute_newton_step(tally.scores, targets, tally.sizes, at)
        at = at + _shorten_step(tally.scores, targets, tally.sizes, at, step)
        if float(np.abs(step).max()) < TINY:
            break
    if at[0] > 0:
        return Platt(slope=float(at[0]), offset=float(at[1]))
    return Platt(slope=0.0, offset=_compute_logit(float((targets * tally.sizes).sum()) / tally.n))


def _compute_newton_step(x: Floats, targets: Floats, sizes: Floats, at: Floats) -> Floats:
    p = 1 / (1 + np.exp(-(at[0] * x + at[1])))
    gradient = np.array([(sizes * (targets - p) * x).sum(), (sizes * (targets - p)).sum()])
    weight = sizes * p * (1 - p)
    mixed = float((weight * x).sum())
    hessian = np.array([[(weight * x * x).sum(), mixed], [mixed, weight.sum()]]) + TINY * np.eye(2)
    return np.linalg.solve(hessian, gradient).astype(np.float64)


def _shorten_step(x: Floats, targets: Floats, sizes: Floats, at: Floats, step: Floats) -> Floats:
    start = _compute_loss(x, targets, sizes, at)
    for _ in range(40):
        if _compute_loss(x, targets, sizes, at + step) <= start:
            return step
        step = step / 2
    return np.zeros(2)


def _compute_loss(x: Floats, targets: Floats, sizes: Floats, at: Floats) -> float:
    z = at[0] * x + at[1]
    return float((sizes * (np.logaddexp(0, z) - targets * z)).sum())


def _compute_logit(share: float) -> float:
    return float(np.log(share) - np.log1p(-share))


def _fit_temperature(tally: LabelTally) -> Temperature:
    """Fit the one temperature that makes the labels most likely, between 1/20 and 20."""
    z = np.array([log_odds(float(score)) for score in tally.scores])

    def loss(log_temperature: float) -> float:
        cooled = z / exp(log_temperature)
        return float((tally.sizes * np.logaddexp(0, cooled) - tally.passed * cooled).sum())

    best = optimize.minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded", options={"xatol": 1e-9})  # pyright: ignore
    return Temperature(temperature=exp(float(best.x)))  # pyright: ignore


def _fit_isotonic(tally: LabelTally) -> Isotonic:
    """Fit the non-decreasing shares closest to the labels, by pooling adjacent violators.

    Ayer, Brunk, Ewing, Reid and Silverman 1955, Annals of Mathematical Statistics 26:641-647. Of each level only its two ends
    are kept.
    """
    kept = tally.sizes > 0
    x, y = tally.scores[kept], _pool_shares(tally.passed[kept] / tally.sizes[kept], tally.sizes[kept])
    last = len(x) - 1
    ends = [at for at in range(len(x)) if at in (0, last) or y[at] != y[at - 1] or y[at] != y[at + 1]]
    return Isotonic(raw=tuple([float(x[at]) for at in ends]), value=tuple([float(y[at]) for at in ends]))


def _pool_shares(shares: Floats, sizes: Floats) -> Floats:
    result = optimize.isotonic_regression(shares, weights=sizes)  # pyright: ignore
    return np.clip(np.maximum.accumulate(np.asarray(result.x, dtype=np.float64)), 0.0, 1.0)  # pyright: ignore


def _fit_venn_abers(tally: LabelTally) -> VennAbers:
    """For each raw value, and each gap beside it, pool the share with one failing and with one passing item added there.

    Inductive Venn-Abers: Vovk, Petej and Fedorova 2015, "Large-scale probabilistic predictors", NeurIPS 28.
    """
    kept = tally.sizes > 0
    x, passed, sizes = tally.scores[kept], tally.passed[kept], tally.sizes[kept]
    places = range(2 * len(x) + 1)
    low, high = ([_pool_with_added(passed, sizes, place, label) for place in places] for label in (0.0, 1.0))
    low, high = np.maximum.accumulate(low), np.maximum.accumulate(high)
    return VennAbers(raw=tuple(x.tolist()), low=tuple(low.tolist()), high=tuple(high.tolist()))


def _pool_with_added(passed: Floats, sizes: Floats, place: int, label: float) -> float:
    """Pool the share at a place with an item of that label added there: odd places are raw values, even ones gaps."""
    at = place // 2
    if place % 2:
        passed, sizes = passed.copy(), sizes.copy()
        passed[at] += label
        sizes[at] += 1
    else:
        passed, sizes = np.insert(passed, at, label), np.insert(sizes, at, 1.0)
    return float(_pool_shares(passed / sizes, sizes)[at])


_FITTERS: Mapping[Method, Callable[[LabelTally], Calibrator]] = {
    "identity": lambda _: Identity(),
    "platt": _fit_platt,
    "temperature": _fit_temperature,
    "isotonic": _fit_isotonic,
    "venn_abers": _fit_venn_abers,
}


def calibrate_tally(tally: LabelTally, calibrator: Calibrator) -> LabelTally:
    """Map each raw value of the tally; values that become equal are merged."""
    values = np.array([calibrator.apply(float(score)).value for score in tally.scores])
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


def choose_band(tally: LabelTally, threshold: float, *, least: float = 0.8) -> tuple[float, float] | None:
    """Choose the band of values that go to a human, so that the rest is as accurate as possible.

    At least `least` of the items stay decided. None where leaving nothing out is as good.
    """
    allowed = [point for point in build_coverage_curve([(tally, threshold)]) if point.coverage >= least]
    if not allowed:
        return None
    best = max(allowed, key=lambda point: (round(point.accuracy, 12), point.coverage))
    if best == allowed[0] or best.accuracy <= allowed[0].accuracy:
        return None
    return _widen_threshold(tally, threshold, best.margin)


def _widen_threshold(tally: LabelTally, threshold: float, margin: float) -> tuple[float, float]:
    """Return the band from halfway below the lowest value with a margin below `margin` to halfway above the highest one."""
    scores = tally.scores[tally.sizes > 0]
    unsure = [at for at, score in enumerate(scores) if _measure_margin(float(score), threshold) < margin]
    low, high = unsure[0], unsure[-1]
    below = 0.0 if low == 0 else float(scores[low - 1] + scores[low]) / 2
    above = 1.0 if high == len(scores) - 1 else float(scores[high] + scores[high + 1]) / 2
    return below, above
