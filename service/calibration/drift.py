"""Drift check: whether a judge still agrees with the labels as it did when it was fitted, on a sample of held-out items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from pydantic import TypeAdapter

from service.calibration.figures import FigureRow, Figures, Measure, Resampling, compute_judge_figures
from service.calibration.predictions import Prediction
from service.calibration.report.wording import show_number
from service.calibration.results import HeldOutItem, JudgeReport
from service.calibration.splits import SEED
from service.core.judging.fits import Fit
from service.errors import InputError
from service.stats.intervals import bootstrap
from service.stats.rates import RatePart

CHECK_VERSION = 1
STATISTICS = ("kappa", "accuracy")


@dataclass(frozen=True, slots=True)
class DriftedFigure:
    """A figure that fell outside the interval it had."""

    statistic: str
    direction: Literal["below", "above"]
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        end = (
            f"low end, {show_number(self.low)}" if self.direction == "below" else f"high end, {show_number(self.high)}"
        )
        return f"{self.statistic} is {show_number(self.value)}, {self.direction} the {end}, of its interval"


@dataclass(frozen=True, slots=True)
class JudgeDrift:
    """One judge on one criterion, then and now, on the same items."""

    judge: str
    criterion: str
    fit: str
    threshold: float
    model: str
    """The model that was fitted."""
    models: tuple[str, ...]
    """The models that answered now."""
    n: int
    groups: int
    then: Mapping[str, Measure]
    """Kappa and accuracy on these items by the judge's earlier answers, with intervals by groups."""
    now: Mapping[str, Measure]
    outside: tuple[DriftedFigure, ...]
    items: tuple[str, ...]
    """The ids of the sample; a later check that names this report asks them again."""
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
        """Whether any figure fell outside its interval."""
        return any(one.outside for one in self.judges)


_CHECK: TypeAdapter[CheckReport] = TypeAdapter(CheckReport)


def read_check(text: str | bytes) -> CheckReport:
    """Read a check report from JSON; raises pydantic's ValidationError for anything else."""
    return _CHECK.validate_json(text)


def draw_sample(judge: JudgeReport, size: int, *, seed: str = SEED) -> tuple[HeldOutItem, ...]:
    """Draw `size` of its held-out items, or all if there are fewer: the same ones for the same seed, ordered by id."""
    ranked = sorted(judge.items, key=lambda item: sha256(f"{seed}\0check\0{item.id}".encode()).hexdigest())
    return tuple(sorted(ranked[:size], key=lambda item: item.id))


def select_named(judge: JudgeReport, ids: Sequence[str]) -> tuple[HeldOutItem, ...]:
    """Select the held-out items with these ids; InputError for an unknown id."""
    known = {item.id: item for item in judge.items}
    unknown = sorted(set(ids) - known.keys())
    if unknown:
        raise InputError.at(unknown[0], f"no held-out item of {judge.name}")
    return tuple([known[name] for name in sorted(set(ids))])


def check_judge(
    judge: JudgeReport,
    fit: Fit,
    sample: Sequence[HeldOutItem],
    predictions: Mapping[str, Prediction],
    resampling: Resampling,
) -> JudgeDrift:
    """Compare the sample then and now, under the map and threshold of the fit.

    `predictions`: the new answers by item id; items without one are left out. InputError where none was answered.
    """
    answered = [item for item in sample if item.id in predictions]
    if not answered:
        raise InputError.at(judge.name, f"none of {len(sample)} items was answered")
    raws = [item.raw for item in answered], [predictions[item.id].weigh_by(fit) for item in answered]
    then, now = (_compute_measures(_build_rows(answered, raw, fit), resampling) for raw in raws)
    return JudgeDrift(
        judge=judge.name,
        criterion=judge.criterion,
        fit=fit.id,
        threshold=judge.threshold,
        model=judge.model,
        models=tuple(sorted({predictions[item.id].model for item in answered})),
        n=len(answered),
        groups=len({item.group for item in answered}),
        then=then,
        now=now,
        outside=tuple(_find_drifted(then, now)),
        items=tuple([item.id for item in sample]),
        unanswered=len(sample) - len(answered),
    )


def _build_rows(items: Sequence[HeldOutItem], raw: Sequence[float], fit: Fit) -> list[FigureRow]:
    values = [fit.calibrator.apply(one).value for one in raw]
    return [
        FigureRow(item.group, "", value, item.label, value >= fit.threshold)
        for item, value in zip(items, values, strict=True)
    ]


def _compute_measures(rows: Sequence[FigureRow], resampling: Resampling) -> dict[str, Measure]:
    figures: Figures = compute_judge_figures(rows, resampling)
    right = [RatePart(row.group, float(row.passed is row.label)) for row in rows]
    # Unlike bootstrap percentiles, this interval has a width where all verdicts are right.
    accuracy = Measure(figures.of("accuracy").value, *bootstrap(right))
    return {"kappa": figures.of("kappa"), "accuracy": accuracy}


def _find_drifted(then: Mapping[str, Measure], now: Mapping[str, Measure]) -> Iterator[DriftedFigure]:
    """Yield the figures outside their earlier interval.

    A kappa interval of width 0 says nothing: all verdicts of the sample were right, and only accuracy can show drift.
    """
    for name in STATISTICS:
        before, value = then[name], now[name].value
        if value is None or before.low is None or before.high is None or before.low == before.high:
            continue
        if value < before.low:
            yield DriftedFigure(name, "below", value, before.low, before.high)
        if value > before.high:
            yield DriftedFigure(name, "above", value, before.low, before.high)
