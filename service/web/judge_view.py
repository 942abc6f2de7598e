"""A judge beside the people who labelled what it judged: how often they agree, by its value, and as plots in SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from service.labelling import LabelDesk
from service.stats.intervals import wilson
from service.store.labelling.opinions import LabelledCase

SIDE = 200
"""Units of a plot from 0 to 1."""
BINS = 5
FEWEST = 5
"""Labelled items from which on plots are drawn."""


@dataclass(frozen=True, slots=True)
class PlotPoint:
    """A point in [0, 1] x [0, 1], and of how many items it is."""

    x: float
    y: float
    count: int

    @property
    def left(self) -> float:
        """Where it is drawn."""
        return round(30 + SIDE * self.x, 1)

    @property
    def top(self) -> float:
        """Likewise, from above."""
        return round(10 + SIDE * (1 - self.y), 1)


@dataclass(frozen=True, slots=True)
class JudgedAgreement:
    """A judge's verdicts against labels of people on one criterion."""

    criterion: str
    items: int
    """What was decided."""
    undecided: int
    equal: int
    reliability: tuple[PlotPoint, ...]
    """The share that people pass, by the value."""
    coverage: tuple[PlotPoint, ...]
    """The share of equal verdicts, by the share of items that are decided, the surest first."""

    @property
    def share(self) -> float:
        """Of equal verdicts, where anything was decided."""
        return self.equal / self.items

    @property
    def interval(self) -> tuple[float, float]:
        """Where that share lies, with 95 % confidence, were these items drawn at random."""
        low, high = wilson(self.equal, self.items)
        return low, high

    @property
    def path(self) -> str:
        """The curve of coverage, as SVG draws it."""
        return " ".join(f"{'L' if at else 'M'}{one.left} {one.top}" for at, one in enumerate(self.coverage))

    @property
    def is_plotted(self) -> bool:
        """Whether there are enough items for plots to tell something."""
        return self.items >= FEWEST


@dataclass(frozen=True, slots=True)
class _Case:
    value: float
    threshold: float
    passed: bool | None
    passes: bool

    @property
    def is_equal(self) -> bool:
        return self.passed is self.passes

    @property
    def doubt(self) -> float:
        return abs(self.value - self.threshold)


def measure_judge(cases: Iterable[LabelledCase], criterion: str) -> JudgedAgreement | None:
    """The judge of a criterion beside people; None where nobody has labelled what it judged."""
    found = [
        _Case(
            case.judge.raw if case.judge.value is None else case.judge.value,
            0.5 if case.judge.threshold is None else case.judge.threshold,
            case.judge.passed,
            case.passes,
        )
        for case in cases
        if case.judge is not None and case.passes is not None
    ]
    if not found:
        return None
    decided = [one for one in found if one.passed is not None]
    equal, undecided = sum(one.is_equal for one in decided), len(found) - len(decided)
    coverage = _list_coverage(decided, len(found))
    return JudgedAgreement(criterion, len(decided), undecided, equal, _list_bins(found), coverage)


def _list_bins(found: Sequence[_Case]) -> tuple[PlotPoint, ...]:
    ordered = sorted(found, key=lambda one: one.value)
    bins = [list(own) for _, own in groupby(ordered, key=lambda one: min(int(one.value * BINS), BINS - 1))]
    return tuple(
        [
            PlotPoint(sum(one.value for one in own) / len(own), sum(one.passes for one in own) / len(own), len(own))
            for own in bins
        ]
    )


def _list_coverage(found: Sequence[_Case], whole: int) -> tuple[PlotPoint, ...]:
    """A point after each group of equally sure verdicts: between them there is nothing to choose."""
    ordered = sorted(found, key=lambda one: -one.doubt)
    points: list[PlotPoint] = []
    seen = equal = 0
    for _, own in groupby(ordered, key=lambda one: round(one.doubt, 9)):
        part = list(own)
        seen, equal = seen + len(part), equal + sum(one.is_equal for one in part)
        points.append(PlotPoint(seen / whole, equal / seen, seen))
    return tuple(points)


def measure_all(desk: LabelDesk, tenant: str, criteria: Iterable[str]) -> list[JudgedAgreement]:
    """The judge of each criterion beside people, where there are any."""
    found = [measure_judge(desk.list_cases(tenant, one), one) for one in criteria]
    return [one for one in found if one is not None]
