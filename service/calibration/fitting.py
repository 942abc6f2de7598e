"""Fitting: from raw values and labels to a map, the threshold on it and the band in which a human is asked."""

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

Choice = Literal["auto", "identity", "platt", "isotonic", "temperature", "venn_abers"]

FEWEST_LABELS = 50
FEWEST_GROUPS = 10
FEWEST_OF_CLASS = 10
"""The floor: with fewer labels, or fewer groups of them, or fewer of the rarer class, nothing is called calibrated. It is what
the figures need: below it an interval of kappa is about as wide as kappa can be, and says nothing."""
MANY_LABELS = 300
"""From so many labels on, isotonic maps are as good as logistic ones, and bend where they must."""
STEPS = 200
TINY = 1e-12


def explain_too_few(items: Sequence[LabelledItem]) -> str:
    """Why so many labels are too few to call anything calibrated; empty where they are enough."""
    passing = sum(item.passes for item in items)
    counts = (
        ("labels", len(items), FEWEST_LABELS),
        ("groups", len({item.group for item in items}), FEWEST_GROUPS),
        ("labels of the rarer class", min(passing, len(items) - passing), FEWEST_OF_CLASS),
    )
    return next(
        (f"{count} {what} are too few: {least} are needed" for what, count, least in counts if count < least), ""
    )


def choose_method(items: Sequence[LabelledItem], choice: Choice = "auto") -> Method:
    """The method for so many labels: none below the floor unless one is asked for, Platt below 300, isotonic from there on."""
    if choice != "auto":
        return choice
    if explain_too_few(items):
        return "identity"
    return "platt" if len(items) < MANY_LABELS else "isotonic"


def fit_map(method: Method, found: LabelTally) -> Calibrator:
    """The map that a method fits to a tally of raw values; ValueError for one without items."""
    if not found.n:
        raise ValueError("nothing to fit")
    return _FITS[method](found)


def _fit_platt(found: LabelTally) -> Platt:
    """Newton's method with halved steps on the two numbers, towards targets drawn in a little, as Platt proposes.

    Lin, Lin and Weng 2007, "A note on Platt's probabilistic outputs for support vector machines", Machine Learning 68:267-276.
    A slope below 0 would turn the judge upside down; the best one that is allowed is then 0.
    """
    passed, failed = float(found.passed.sum()), float(found.failed.sum())
    high, low = (passed + 1) / (passed + 2), 1 / (failed + 2)
    targets = (found.passed * high + found.failed * low) / np.maximum(found.sizes, TINY)
    at = np.zeros(2)
    for _ in range(STEPS):
        step = _compute_newton_step(found.scores, targets, found.sizes, at)
        at = at + _shorten_step(found.scores, targets, found.sizes, at, step)
        if float(np.abs(step).max()) < TINY:
            break
    if at[0] > 0:
        return Platt(slope=float(at[0]), offset=float(at[1]))
    return Platt(slope=0.0, offset=_compute_logit(float((targets * found.sizes).sum()) / found.n))


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


def _fit_temperature(found: LabelTally) -> Temperature:
    """The one number that makes the labels most likely, between 1/20 and 20."""
    z = np.array([log_odds(float(score)) for score in found.scores])

    def loss(log_temperature: float) -> float:
        cooled = z / exp(log_temperature)
        return float((found.sizes * np.logaddexp(0, cooled) - found.passed * cooled).sum())

    best = optimize.minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded", options={"xatol": 1e-9})  # pyright: ignore
    return Temperature(temperature=exp(float(best.x)))  # pyright: ignore


def _fit_isotonic(found: LabelTally) -> Isotonic:
    """The non-decreasing shares that are closest to the labels, by pooling adjacent violators.

    Ayer, Brunk, Ewing, Reid and Silverman 1955, Annals of Mathematical Statistics 26:641-647. A level keeps its two ends.
    """
    kept = found.sizes > 0
    x, y = found.scores[kept], _pool_shares(found.passed[kept] / found.sizes[kept], found.sizes[kept])
    last = len(x) - 1
    ends = [at for at in range(len(x)) if at in (0, last) or y[at] != y[at - 1] or y[at] != y[at + 1]]
    return Isotonic(raw=tuple([float(x[at]) for at in ends]), value=tuple([float(y[at]) for at in ends]))


def _pool_shares(shares: Floats, sizes: Floats) -> Floats:
    result = optimize.isotonic_regression(shares, weights=sizes)  # pyright: ignore
    return np.clip(np.maximum.accumulate(np.asarray(result.x, dtype=np.float64)), 0.0, 1.0)  # pyright: ignore


def _fit_venn_abers(found: LabelTally) -> VennAbers:
    """For each raw value, and each gap beside it, the pooled share with one failing and with one passing item added there.

    Inductive Venn-Abers: Vovk, Petej and Fedorova 2015, "Large-scale probabilistic predictors", NeurIPS 28.
    """
    kept = found.sizes > 0
    x, passed, sizes = found.scores[kept], found.passed[kept], found.sizes[kept]
    places = range(2 * len(x) + 1)
    low, high = ([_pool_with_added(passed, sizes, place, label) for place in places] for label in (0.0, 1.0))
    low, high = np.maximum.accumulate(low), np.maximum.accumulate(high)
    return VennAbers(raw=tuple(x.tolist()), low=tuple(low.tolist()), high=tuple(high.tolist()))


def _pool_with_added(passed: Floats, sizes: Floats, place: int, label: float) -> float:
    """The pooled share at a place, were an item with that label there: odd places are raw values, even ones gaps."""
    at = place // 2
    if place % 2:
        passed, sizes = passed.copy(), sizes.copy()
        passed[at] += label
        sizes[at] += 1
    else:
        passed, sizes = np.insert(passed, at, label), np.insert(sizes, at, 1.0)
    return float(_pool_shares(passed / sizes, sizes)[at])


_FITS: Mapping[Method, Callable[[LabelTally], Calibrator]] = {
    "identity": lambda _: Identity(),
    "platt": _fit_platt,
    "temperature": _fit_temperature,
    "isotonic": _fit_isotonic,
    "venn_abers": _fit_venn_abers,
}


def calibrate_tally(found: LabelTally, calibrator: Calibrator) -> LabelTally:
    """The tally with each raw value put through the map; values that became equal are one."""
    values = np.array([calibrator.apply(float(score)).value for score in found.scores])
    scores, codes = np.unique(values, return_inverse=True)
    sums = [np.bincount(codes, weights=counts, minlength=len(scores)) for counts in (found.passed, found.failed)]
    return LabelTally(scores, sums[0].astype(np.float64), sums[1].astype(np.float64))


def choose_threshold(found: LabelTally) -> float:
    """The least value that passes: where balanced accuracy is best, half way to the next value below.

    Of several as good, the one closest to 0.5. Youden 1950, "Index for rating diagnostic tests", Cancer 3:32-35. 0.5 where
    one class has no item.
    """
    scores = found.scores[found.sizes > 0]
    candidates = [0.0, *((scores[1:] + scores[:-1]) / 2).tolist()]
    judged = [(build_confusion_at(found, at).balanced_accuracy, at) for at in candidates]
    known = [(-round(value, 12), abs(at - 0.5), at) for value, at in judged if value is not None]
    return min(known)[2] if known else 0.5


class CurvePoint(NamedTuple):
    """What becomes of accuracy when only values at least `margin` from the threshold are decided."""

    margin: float
    """0 at the threshold, 1 at a value of 0 and of 1."""
    coverage: float
    """The share of items that are decided."""
    accuracy: float
    """Among them."""


def build_coverage_curve(parts: Sequence[tuple[LabelTally, float]]) -> tuple[CurvePoint, ...]:
    """From all decided to the surest only; values of one margin go together. Empty for no items.

    `parts`: items with the threshold of their verdicts; held-out items have that of the map that has not seen them.
    El-Yaniv and Wiener 2010, "On the foundations of noise-free selective classification", JMLR 11:1605-1641.
    """
    margins = np.array([_measure_margin(float(score), at) for found, at in parts for score in found.scores])
    sizes = np.concatenate([found.sizes for found, _ in parts]) if parts else np.empty(0)
    right = np.concatenate([np.where(found.scores >= at, found.passed, found.failed) for found, at in parts] or [sizes])
    points: list[CurvePoint] = []
    for margin in np.unique(margins[sizes > 0]).tolist():
        decided = margins >= margin
        n = float(sizes[decided].sum())
        points.append(CurvePoint(margin, n / float(sizes.sum()), float(right[decided].sum()) / n))
    return tuple(points)


def _measure_margin(value: float, threshold: float) -> float:
    room = 1 - threshold if value >= threshold else threshold
    return abs(value - threshold) / room if room > 0 else 1.0


def choose_band(found: LabelTally, threshold: float, *, least: float = 0.8) -> tuple[float, float] | None:
    """The values that go to a human: what makes the rest most accurate while at least `least` of the items are decided.

    None where leaving nothing out is as good.
    """
    allowed = [point for point in build_coverage_curve([(found, threshold)]) if point.coverage >= least]
    if not allowed:
        return None
    best = max(allowed, key=lambda point: (round(point.accuracy, 12), point.coverage))
    if best == allowed[0] or best.accuracy <= allowed[0].accuracy:
        return None
    return _widen_threshold(found, threshold, best.margin)


def _widen_threshold(found: LabelTally, threshold: float, margin: float) -> tuple[float, float]:
    """From half way below the lowest value with less than `margin` to half way above the highest one."""
    scores = found.scores[found.sizes > 0]
    unsure = [at for at, score in enumerate(scores) if _measure_margin(float(score), threshold) < margin]
    low, high = unsure[0], unsure[-1]
    below = 0.0 if low == 0 else float(scores[low - 1] + scores[low]) / 2
    above = 1.0 if high == len(scores) - 1 else float(scores[high] + scores[high + 1]) / 2
    return below, above
