"""Paired comparison of two judges on the same labelled items: how much better one agrees, and where they differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from service.calibration.figures import HeldOutItem, Resampling, measure_statistics, replace_pointlike
from service.calibration.labels import LabelledSet
from service.calibration.predictions import Prediction, group_by_judge
from service.calibration.results import CalibrationReport
from service.errors import InputError
from service.stats.intervals import mcnemar
from service.stats.rates import Measure
from service.stats.tallies import Floats, TallyRows, brier, build_confusion_at

COMPARED_FIGURES = ("accuracy", "kappa", "brier")


@dataclass(frozen=True, slots=True)
class JudgeSide:
    """One judge on one criterion, from a report or a file of predictions."""

    name: str
    criterion: str
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
        [JudgeSide(one.name, one.criterion, {item.id: item for item in one.items}) for one in report.all_judges]
    )


def read_prediction_sides(labels: LabelledSet, predictions: Iterable[Prediction]) -> tuple[JudgeSide, ...]:
    """Read the judges of recorded predictions, with their first raw values for all labelled items."""
    known = {item.key: item for item in labels.items}
    sides: list[JudgeSide] = []
    for judge in group_by_judge(predictions):
        values = [(known[key], raw[0]) for key, raw in judge.raw.items() if key in known]
        read = [HeldOutItem(item.id, item.group, item.passes, x, x, x >= judge.threshold) for item, x in values]
        sides.append(JudgeSide(judge.name, judge.criterion, {item.id: item for item in read}))
    return tuple(sides)


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
    pairs = [(_choose_side(a, one, names[0], "A"), _choose_side(b, one, names[1], "B")) for one in shared]
    return tuple([_build_comparison(one, other, resampling) for one, other in pairs])


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
    pairs = [(a.items[name], b.items[name]) for name in shared]
    for one, other in pairs:
        if one.label is not other.label:
            raise InputError.at(one.id, "its labels differ between the two: they are not of the same labelled set")
    right = [(one.right, other.right) for one, other in pairs]
    apart = [(one, other) for one, other in pairs if one.passed is not other.passed]
    differing = [DifferingItem(one.id, one.label, one.value, other.value, other.right) for one, other in apart]
    a_right, b_right = right.count((True, False)), right.count((False, True))
    return JudgeComparison(
        criterion=a.criterion,
        a=a.name,
        b=b.name,
        items=len(shared),
        groups=len({one.group for one, _ in pairs}),
        only_a=len(a.items) - len(shared),
        only_b=len(b.items) - len(shared),
        figures=compare_figures([one for one, _ in pairs], [other for _, other in pairs], resampling),
        both_right=right.count((True, True)),
        a_right=a_right,
        b_right=b_right,
        neither_right=right.count((False, False)),
        p_value=mcnemar(a_right, b_right),
        differing=tuple(sorted(differing, key=lambda one: (one.b_is_right, -abs(one.a - one.b), one.id))),
    )


def compare_figures(
    a: Sequence[HeldOutItem], b: Sequence[HeldOutItem], resampling: Resampling
) -> tuple[FigureComparison, ...]:
    """Compare accuracy, kappa and Brier score. The rows are of the same items in the same order; which order does not matter.

    Whole groups are drawn, the same ones for both sides. A difference is None where a figure is undefined on one side. Draws that
    are all alike give no interval; a share of right items then gets Wilson's, with one observation per group.
    """
    labels, sides = [row.label for row in a], {"a": a, "b": b}
    values = {name: TallyRows([row.value for row in rows], labels) for name, rows in sides.items()}
    verdicts = {name: TallyRows([row.passed for row in rows], labels) for name, rows in sides.items()}

    def statistics(weights: Floats) -> dict[str, float | None]:
        found: dict[str, float | None] = {}
        for name in sides:
            table = build_confusion_at(verdicts[name].tally(weights), 1.0)
            figures = (table.accuracy, table.kappa, brier(values[name].tally(weights)))
            found |= {f"{name} {figure}": value for figure, value in zip(COMPARED_FIGURES, figures, strict=True)}
        for figure in COMPARED_FIGURES:
            one, other = found[f"a {figure}"], found[f"b {figure}"]
            found[figure] = None if one is None or other is None else other - one
        return found

    groups = [row.group for row in a]
    measures, n = measure_statistics(statistics, groups, resampling), len(set(groups))
    found: list[FigureComparison] = []
    for name in COMPARED_FIGURES:
        one, other = (replace_pointlike(name, measures[f"{side} {name}"], n) for side in sides)
        found.append(FigureComparison(name, one, other, replace_pointlike("difference", measures[name], n)))
    return tuple(found)
