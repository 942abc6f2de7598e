"""Drift check: whether a judge still agrees with the labels as it did when it was fitted, on a sample of held-out items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import fsum, sqrt
from typing import NamedTuple

from service.calibration.figures import HeldOutItem
from service.calibration.predictions import Prediction
from service.calibration.results import JudgeReport
from service.calibration.splits import SEED
from service.errors import InputError
from service.stats.agreement import build_confusion

CHECK_VERSION = 2


@dataclass(frozen=True, slots=True)
class JudgeDrift:
    """One judge on one criterion, then and now, on the same items."""

    judge: str
    criterion: str
    fit: str
    model: str
    """The model that was fitted."""
    models: tuple[str, ...]
    """The models that answered now."""
    n: int
    then: Mapping[str, float | None]
    """Kappa and accuracy on the items that were answered now, by the judge's earlier answers."""
    now: Mapping[str, float | None]
    fall: Fall
    """How much lower agreement is on the latest checks, this one included."""
    drifted: bool
    agreed: Mapping[str, bool]
    """For each item that was answered now, whether judge and label agree."""
    unanswered: int

    @property
    def is_own(self) -> bool:
        """Whether the model that was fitted answered, and no other."""
        return self.models == (self.model,)


@dataclass(frozen=True, slots=True)
class CheckReport:
    """A drift check of the judges of a run."""

    version: int
    source: str
    seed: str
    judges: tuple[JudgeDrift, ...]

    @property
    def drifted(self) -> bool:
        """Whether any judge has drifted."""
        return any(one.drifted for one in self.judges)


def draw_sample(judge: JudgeReport, size: int, *, seed: str = SEED) -> tuple[HeldOutItem, ...]:
    """Draw `size` of its held-out items, or all if there are fewer: the same ones for the same seed, ordered by id."""
    ranked = sorted(judge.items, key=lambda item: sha256(f"{seed}\0check\0{item.id}".encode()).hexdigest())
    return tuple(sorted(ranked[:size], key=lambda item: item.id))


def check_judge(
    judge: JudgeReport,
    sample: Sequence[HeldOutItem],
    predictions: Mapping[str, Prediction],
    earlier: Sequence[Mapping[str, bool]] = (),
) -> JudgeDrift:
    """Compare the sample then and now, under the map and threshold of its fit.

    `predictions`: the new answers by item id; items without one are left out. `earlier`: for each earlier check of this fit,
    oldest first, whether judge and label agreed. InputError where none was answered.
    """
    fit, answered = judge.fit, [item for item in sample if item.id in predictions]
    if not answered:
        raise InputError.at(judge.name, f"none of {len(sample)} items was answered")
    now = {item.id: fit.passes(predictions[item.id].weigh_by(fit)) for item in answered}
    agreed = {item.id: now[item.id] is item.label for item in answered}
    nights = [*earlier, agreed][-NIGHTS:]
    agreements = [[one[item.id] for one in nights if item.id in one] for item in answered]
    were = [fit.passes(item.raw) is item.label for item in answered]
    fall = measure_fall([PairedItem(*pair) for pair in zip(were, agreements, strict=True)])
    labels, models = [item.label for item in answered], tuple(sorted({predictions[i.id].model for i in answered}))
    then, tonight = (build_confusion(labels, one) for one in ([fit.passes(i.raw) for i in answered], now.values()))
    return JudgeDrift(
        judge=judge.name,
        criterion=judge.criterion,
        fit=fit.id,
        model=fit.model,
        models=models,
        n=len(answered),
        then={"kappa": then.kappa, "accuracy": then.accuracy},
        now={"kappa": tonight.kappa, "accuracy": tonight.accuracy},
        fall=fall,
        drifted=fall.drifted and models == (fit.model,),
        agreed=agreed,
        unanswered=len(sample) - len(answered),
    )


MARGIN = 0.03
"""The fall of agreement that is no drift."""
NIGHTS = 5
"""How many of the latest nights are compared."""
ERRORS, ERRORS_TONIGHT = 2.4, 3.5
"""Standard errors beyond the margin that are drift, on these nights and on the last one alone, which shows a sudden change. By
the first, 4 % of judges whose agreement fell by exactly the margin alarm within 100 nights (`tests/benchmarks/drift.py`)."""


class PairedItem(NamedTuple):
    """Whether a judge agreed with an item's label when it was recorded, and on each of the latest nights that it answered."""

    then: bool
    nights: Sequence[bool]


@dataclass(frozen=True, slots=True)
class Fall:
    """How much lower agreement is on the latest nights than it was."""

    value: float
    limit: float
    """The fall from which on the judge has drifted: what is allowed, and what chance explains."""
    nights: int

    @property
    def drifted(self) -> bool:
        """Whether the judge has drifted."""
        return self.value > self.limit


def measure_fall(items: Sequence[PairedItem]) -> Fall:
    """Measure the fall on one or more items, each with one or more nights; on the last night alone if only that shows drift.

    >>> fall = measure_fall([PairedItem(True, [True, False])] * 20 + [PairedItem(True, [True, True])] * 60)
    >>> fall.nights, fall.value, round(fall.limit, 3), fall.drifted
    (1, 0.25, 0.226, True)
    """
    tonight = _measure([PairedItem(item.then, item.nights[-1:]) for item in items], ERRORS_TONIGHT)
    return tonight if tonight.drifted else _measure(items, ERRORS)


def _measure(items: Sequence[PairedItem], errors: float) -> Fall:
    """Measure the fall. Its error is never below that of one changed item: a judge that never varied may vary tomorrow."""
    falls = [item.then - sum(item.nights) / len(item.nights) for item in items]
    error = sqrt(max(1.0, fsum(map(_compute_variance, items)))) / len(items)
    return Fall(fsum(falls) / len(items), MARGIN + errors * error, max(len(item.nights) for item in items))


def _compute_variance(item: PairedItem) -> float:
    """Compute the variance of an item's fall if its judge has not changed: over the nights, or over then and the only night."""
    n, right = len(item.nights), sum(item.nights)
    if n == 1:
        return float(item.then != item.nights[0])
    return right * (n - right) / (n * (n - 1)) * (1 + 1 / n)
