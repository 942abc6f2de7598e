"""Two judges on the same labelled items, paired: how much better one agrees with the labels, and where they differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from service.calibrating.figures import Measure, Resampling, Row, judged_figures
from service.calibrating.labels import LabelledSet
from service.calibrating.options import Options
from service.calibrating.paired import Figure, differences
from service.calibrating.predictions import Prediction, by_judge
from service.calibrating.results import CalibrationReport, HeldOut
from service.errors import InputError
from service.stats.intervals import mcnemar
from service.stats.tallies import Tally, brier, confusion_at

FIGURES = ("accuracy", "kappa", "brier")


@dataclass(frozen=True, slots=True)
class Side:
    """One judge on one criterion, as a report or a file of predictions tells of it."""

    name: str
    criterion: str
    threshold: float
    """The least value that passes."""
    items: Mapping[str, HeldOut]


@dataclass(frozen=True, slots=True)
class Beside:
    """A figure of both on the items they share, and b's minus a's."""

    name: str
    a: Measure
    b: Measure
    difference: Measure


@dataclass(frozen=True, slots=True)
class Differing:
    """An item that one of them passes and the other does not."""

    id: str
    label: bool
    a: float
    b: float
    b_is_right: bool


@dataclass(frozen=True, slots=True)
class JudgeComparison:
    """Two judges on the items of one criterion that both have. `only_a` and `only_b` are items of one alone: not counted."""

    criterion: str
    a: str
    b: str
    thresholds: tuple[float, float]
    items: int
    groups: int
    only_a: int
    only_b: int
    figures: tuple[Beside, ...]
    both_right: int
    a_right: int
    """Items that a alone judges as the labels do."""
    b_right: int
    neither_right: int
    p_value: float
    """McNemar's exact test of `a_right` against `b_right`. It takes items for independent: where groups hold several, it
    promises too much, and the intervals are what counts."""
    differing: tuple[Differing, ...]
    """What a had right comes first, then what b had right."""


def sides_of_report(report: CalibrationReport) -> tuple[Side, ...]:
    """The judges and juries of a run, with the calibrated values of its held-out items."""
    judges = [*report.judges, *[jury.report for jury in report.juries]]
    return tuple(
        [Side(one.name, one.criterion, one.threshold, {item.id: item for item in one.items}) for one in judges]
    )


def sides_of_predictions(
    labels: LabelledSet, predictions: Iterable[Prediction], *, threshold: float = Options().own_threshold
) -> tuple[Side, ...]:
    """The judges of recorded predictions, with their first raw values of all labelled items."""
    known = {item.key: item for item in labels.items}
    return tuple(
        [
            Side(
                judge.name,
                judge.criterion,
                threshold,
                {
                    key[0]: HeldOut(key[0], known[key].group, known[key].passes, raw[0], raw[0])
                    for key, raw in judge.raw.items()
                    if key in known
                },
            )
            for judge in by_judge(predictions)
        ]
    )


def compared(
    a: Sequence[Side], b: Sequence[Side], names: tuple[str | None, str | None] = (None, None), *, resampling: Resampling
) -> tuple[JudgeComparison, ...]:
    """The comparison for each criterion that both have. `names`: which judges, where there are several.

    InputError where that leaves none or several, where they share no item, and for an item whose label differs.
    """
    shared = sorted({side.criterion for side in a} & {side.criterion for side in b})
    if not shared:
        raise InputError.at("", "the two share no criterion")
    return tuple(
        [_comparison(_chosen(a, one, names[0], "A"), _chosen(b, one, names[1], "B"), resampling) for one in shared]
    )


def _chosen(sides: Sequence[Side], criterion: str, name: str | None, place: str) -> Side:
    known = [side for side in sides if side.criterion == criterion]
    found = [side for side in known if name in (None, side.name)]
    if len(found) == 1:
        return found[0]
    told = ", ".join(side.name for side in known)
    why = f"{len(found)} judges on {criterion!r}" if found else f"no judge {name!r} on {criterion!r}"
    raise InputError.at(place, f"{why}; name one of: {told}")


def _comparison(a: Side, b: Side, resampling: Resampling) -> JudgeComparison:
    shared = sorted(a.items.keys() & b.items.keys())
    if not shared:
        raise InputError.at("", f"{a.name} and {b.name} share no item of {a.criterion!r}")
    for name in shared:
        if a.items[name].label is not b.items[name].label:
            raise InputError.at(name, "its labels differ between the two: they are not of the same labelled set")
    rows = [[Row(one.group, "", one.value, one.label) for one in _of(side, shared)] for side in (a, b)]
    right = [[(one.value >= side.threshold) is one.label for one in _of(side, shared)] for side in (a, b)]
    both, only_a, only_b, neither = (
        sum(pair == want for pair in zip(*right, strict=True))
        for want in ((True, True), (True, False), (False, True), (False, False))
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
        figures=tuple(_figures(rows, a, b, resampling)),
        both_right=both,
        a_right=only_a,
        b_right=only_b,
        neither_right=neither,
        p_value=mcnemar(only_a, only_b),
        differing=tuple(
            sorted(_differing(a, b, shared), key=lambda one: (one.b_is_right, -abs(one.a - one.b), one.id))
        ),
    )


def _of(side: Side, names: Iterable[str]) -> list[HeldOut]:
    return [side.items[name] for name in names]


def _figures(rows: Sequence[Sequence[Row]], a: Side, b: Side, resampling: Resampling) -> Iterator[Beside]:
    of_a, of_b = (judged_figures(own, side.threshold, resampling) for own, side in zip(rows, (a, b), strict=True))
    wanted = {name: (_figure(name, a.threshold), _figure(name, b.threshold)) for name in FIGURES}
    found = differences(rows[0], rows[1], wanted, resampling)
    for name in FIGURES:
        yield Beside(name, of_a.of(name), of_b.of(name), found[name])


def _figure(name: str, threshold: float) -> Figure:
    return brier if name == "brier" else partial(_at, name, threshold)


def _at(name: str, threshold: float, found: Tally) -> float | None:
    return getattr(confusion_at(found, threshold), name)


def _differing(a: Side, b: Side, names: Iterable[str]) -> Iterator[Differing]:
    for name in names:
        one, other = a.items[name], b.items[name]
        passes = other.value >= b.threshold
        if (one.value >= a.threshold) is not passes:
            yield Differing(name, one.label, one.value, other.value, passes is one.label)
