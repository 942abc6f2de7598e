"""Drift check: whether a judge still agrees with the labels as it did when it was fitted, on a sample of held-out items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from service.calibration.predictions import Prediction
from service.calibration.results import HeldOutItem, JudgeReport
from service.calibration.splits import SEED
from service.core.judging.fits.fit import Fit
from service.errors import InputError
from service.stats.agreement import build_confusion
from service.stats.drift import NIGHTS, Fall, PairedItem, measure_fall

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
    fit: Fit,
    sample: Sequence[HeldOutItem],
    predictions: Mapping[str, Prediction],
    earlier: Sequence[Mapping[str, bool]] = (),
) -> JudgeDrift:
    """Compare the sample then and now, under the map and threshold of the fit.

    `predictions`: the new answers by item id; items without one are left out. `earlier`: for each earlier check of this fit,
    oldest first, whether judge and label agreed. InputError where none was answered.
    """
    answered = [item for item in sample if item.id in predictions]
    if not answered:
        raise InputError.at(judge.name, f"none of {len(sample)} items was answered")
    now = {item.id: fit.passes(predictions[item.id].weigh_by(fit)) for item in answered}
    agreed = {item.id: now[item.id] is item.label for item in answered}
    nights = [*earlier, agreed][-NIGHTS:]
    fall = measure_fall(
        [
            PairedItem(fit.passes(item.raw) is item.label, [one[item.id] for one in nights if item.id in one])
            for item in answered
        ]
    )
    labels = [item.label for item in answered]
    then, tonight = (build_confusion(labels, one) for one in ([fit.passes(i.raw) for i in answered], now.values()))
    return JudgeDrift(
        judge=judge.name,
        criterion=judge.criterion,
        fit=fit.id,
        model=judge.model,
        models=tuple(sorted({predictions[item.id].model for item in answered})),
        n=len(answered),
        then={"kappa": then.kappa, "accuracy": then.accuracy},
        now={"kappa": tonight.kappa, "accuracy": tonight.accuracy},
        fall=fall,
        drifted=fall.drifted,
        agreed=agreed,
        unanswered=len(sample) - len(answered),
    )
