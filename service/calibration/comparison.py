"""Paired comparison of two judges on the same labelled items: how much better one agrees, and where they differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from service.calibration.figures import FigureRow, Measure, Resampling, compute_judge_figures
from service.calibration.labels import LabelledSet
from service.calibration.options import ReportOptions
from service.calibration.paired import TallyFigure, compute_differences
from service.calibration.predictions import Prediction, group_by_judge
from service.calibration.results import CalibrationReport, HeldOutItem
from service.errors import InputError
from service.stats.intervals import mcnemar
from service.stats.tallies import LabelTally, brier, build_confusion_at

FIGURES = ("accuracy", "kappa", "brier")


@dataclass(frozen=True, slots=True)
class JudgeSide:
    """One judge on one criterion, from a report or a file of predictions."""

    name: str
    criterion: str
    threshold: float
    """The least value that passes."""
    items: Mapping[str, HeldOutItem]


@dataclass(frozen=True, slots=True)
class FigureComparison:
    """A figure of both judges on the items they share, and b's minus a's."""

    name: str
    a: Measure
    b: Measure
    difference: Measure


@dataclass(frozen=True, slots=True)
class DifferingItem:
    """An item that one judge passes and the other fails."""

    id: str
    label: bool
    a: float
    b: float
    b_is_right: bool


@dataclass(frozen=True, slots=True)
class JudgeComparison:
    """Two judges on the items of one criterion that both have. `only_a` and `only_b` count the others, which enter no figure."""

    criterion: str
    a: str
    b: str
    thresholds: tuple[float, float]
    items: int
    groups: int
    only_a: int
    only_b: int
    figures: tuple[FigureComparison, ...]
    both_right: int
    a_right: int
    """Items on which only a agrees with the labels."""
    b_right: int
    neither_right: int
    p_value: float
    """McNemar's exact test of `a_right` against `b_right`. It assumes independent items: where groups hold several, it is too
    optimistic, and the intervals are what counts."""
    differing: tuple[DifferingItem, ...]
    """First the items that a has right, then those that b has right."""


def read_report_sides(report: CalibrationReport) -> tuple[JudgeSide, ...]:
    """Read the judges and juries of a run, with the calibrated values of its held-out items."""
    return tuple(
        [
            JudgeSide(one.name, one.criterion, one.threshold, {item.id: item for item in one.items})
            for one in report.all_judges
        ]
    )


def read_prediction_sides(
    labels: LabelledSet, predictions: Iterable[Prediction], *, threshold: float = ReportOptions().own_threshold
) -> tuple[JudgeSide, ...]:
    """Read the judges of recorded predictions, with their first raw values for all labelled items."""
    known = {item.key: item for item in labels.items}
    return tuple(
        [
            JudgeSide(
                judge.name,
                judge.criterion,
                threshold,
                {
                    key[0]: HeldOutItem(key[0], known[key].group, known[key].passes, raw[0], raw[0])
                    for key, raw in judge.raw.items()
                    if key in known
                },
            )
            for judge in group_by_judge(predictions)
        ]
    )


def compare_sides(
    a: Sequence[JudgeSide],
    b: Sequence[JudgeSide],
    names: tuple[str | None, str | None] = (None, None),
    *,
    resampling: Resampling,
) -> tuple[JudgeComparison, ...]:
    """Compare the two sides on each criterion that both have. `names`: which judge to take where a side has several.

    InputError where that leaves none or several, where the two share no items, and for an item whose labels differ.
    """
    shared = sorted({side.criterion for side in a} & {side.criterion for side in b})
    if not shared:
        raise InputError.at("", "the two share no criterion")
    return tuple(
        [
            _build_comparison(_choose_side(a, one, names[0], "A"), _choose_side(b, one, names[1], "B"), resampling)
            for one in shared
        ]
    )


def _choose_side(sides: Sequence[JudgeSide], criterion: str, name: str | None, place: str) -> JudgeSide:
    known = [side for side in sides if side.criterion == criterion]
    matching = [side for side in known if name in (None, side.name)]
    if len(matching) == 1:
        return matching[0]
    names = ", ".join(side.name for side in known)
    why = f"{len(matching)} judges on {criterion!r}" if matching else f"no judge {name!r} on {criterion!r}"
    raise InputError.at(place, f"{why}; name one of: {names}")


def _build_comparison(a: JudgeSide, b: JudgeSide, resampling: Resampling) -> JudgeComparison:
    shared = sorted(a.items.keys() & b.items.keys())
    if not shared:
        raise InputError.at("", f"{a.name} and {b.name} share no item of {a.criterion!r}")
    for name in shared:
        if a.items[name].label is not b.items[name].label:
            raise InputError.at(name, "its labels differ between the two: they are not of the same labelled set")
    rows = [[_build_row(one, side.threshold) for one in _select_items(side, shared)] for side in (a, b)]
    right = [[row.passed is row.label for row in own] for own in rows]
    both, only_a, only_b, neither = (
        sum(pair == outcome for pair in zip(*right, strict=True))
        for outcome in ((True, True), (True, False), (False, True), (False, False))
    )
    return JudgeComparison(
        criterion=a.criterion,
        a=a.name,
        b=b.name,
        thresholds=(a.threshold, b.threshold),
        items=len(shared),
        groups=len({row.group for row in rows[0]}),
        only_a=len(a.items) - len(shared),
        only_b=len(b.items) - len(shared),
        figures=tuple(_compare_figures(rows, resampling)),
        both_right=both,
        a_right=only_a,
        b_right=only_b,
        neither_right=neither,
        p_value=mcnemar(only_a, only_b),
        differing=tuple(
            sorted(_find_differing(a, b, shared), key=lambda one: (one.b_is_right, -abs(one.a - one.b), one.id))
        ),
    )


def _select_items(side: JudgeSide, names: Iterable[str]) -> list[HeldOutItem]:
    return [side.items[name] for name in names]


def _build_row(one: HeldOutItem, threshold: float) -> FigureRow:
    return FigureRow(one.group, "", one.value, one.label, one.passes_from(threshold))


def _compare_figures(rows: Sequence[Sequence[FigureRow]], resampling: Resampling) -> Iterator[FigureComparison]:
    of_a, of_b = (compute_judge_figures(own, resampling) for own in rows)
    verdicts = [[row._replace(value=float(row.passed)) for row in own] for own in rows]
    differences: dict[str, Measure] = {}
    for own, figures in ((verdicts, _OF_VERDICTS), (rows, {"brier": brier})):
        differences |= compute_differences(
            own[0], own[1], {name: (one, one) for name, one in figures.items()}, resampling
        )
    for name in FIGURES:
        yield FigureComparison(name, of_a.of(name), of_b.of(name), differences[name])


def _compute_verdict_figure(name: str, tally: LabelTally) -> float | None:
    return getattr(build_confusion_at(tally, 1.0), name)


_OF_VERDICTS: Mapping[str, TallyFigure] = {
    name: partial(_compute_verdict_figure, name) for name in FIGURES if name != "brier"
}


def _find_differing(a: JudgeSide, b: JudgeSide, names: Iterable[str]) -> Iterator[DifferingItem]:
    for name in names:
        one, other = a.items[name], b.items[name]
        passes = other.passes_from(b.threshold)
        if one.passes_from(a.threshold) is not passes:
            yield DifferingItem(name, one.label, one.value, other.value, passes is one.label)
