"""Compare a judge with the people who labelled what it judged: how often they agree, and how that depends on its value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, NamedTuple

from service.core.judging.judges import JudgeCheck
from service.engine import Engine
from service.labelling import LabelDesk
from service.stats.agreement import ConfusionTable
from service.stats.intervals import wilson
from service.store.labelling.opinions import LabelledCase

BINS = 5
MIN_LABELLED_ITEMS = 20
"""Labelled items needed before `trust` says anything."""

Trust = Literal["unknown", "better", "undecided", "worse"]
"""unknown: too few labels. better, worse: than always giving the people's commoner verdict. undecided: these labels
cannot tell.
"""


class StandingPoint(NamedTuple):
    """A point in [0, 1] x [0, 1], and the number of items behind it."""

    x: float
    y: float
    items: int


@dataclass(frozen=True, slots=True)
class SideCount:
    """The items that a judge passes (or fails), and on how many of them people agree."""

    items: int
    equal: int


@dataclass(frozen=True, slots=True)
class JudgeStanding:
    """A judge's verdicts against people's labels on one criterion. Shares are null if nothing was decided."""

    judge: str
    criterion: str
    items: int
    """Labelled items that the judge decided."""
    undecided: int
    """Labelled items that the judge, or its fit, left open."""
    equal: int
    share: float | None
    """The share of equal verdicts."""
    low: float | None
    """`low` to `high` is the 95 % confidence interval of `share`, if the items were drawn at random."""
    high: float | None
    kappa: float | None
    """Agreement beyond chance; null also if the judge and people only ever give one and the same verdict."""
    passes: SideCount
    """The items that it passes."""
    fails: SideCount
    commoner: Literal["pass", "fail"] | None
    """The verdict that people give more often."""
    easy: float | None
    """The share of items that always giving the commoner verdict gets right."""
    trust: Trust
    """What the labels say of the judge. unknown: too few of them. better, worse: than always giving the commoner
    verdict. undecided: they cannot tell.
    """
    reliability: tuple[StandingPoint, ...]
    """The share of items that people pass, by the judge's value."""
    coverage: tuple[StandingPoint, ...]
    """The share of equal verdicts, by the share of items decided, the surest first."""


@dataclass(frozen=True, slots=True)
class JudgeStandings:
    """The standing of each judge on each criterion that has labels."""

    data: tuple[JudgeStanding, ...]


@dataclass(frozen=True, slots=True)
class _JudgeVerdict:
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


def list_standings(desk: LabelDesk, engine: Engine, tenant: str, judge: str | None = None) -> JudgeStandings:
    """Compare every judge, or one, with people, on each criterion with labels."""
    labelled = set(desk.labels.list_criteria(tenant))
    standings = [
        measure_judge(desk.list_cases(tenant, criterion), name, criterion)
        for name, criteria in sorted(list_criteria(engine).items())
        for criterion in sorted(criteria & labelled)
        if judge in (None, name)
    ]
    return JudgeStandings(tuple([one for one in standings if one is not None]))


def list_criteria(engine: Engine) -> dict[str, set[str]]:
    """Map each judge to the criteria it decides in the registry's rubrics."""
    criteria: dict[str, set[str]] = {}
    for rubric in engine.registry:
        for criterion in rubric.criteria:
            if isinstance(criterion.check, JudgeCheck):
                for name in criterion.check.judge_ids:
                    criteria.setdefault(name, set()).add(criterion.id)
    return criteria


def measure_judge(cases: Iterable[LabelledCase], judge: str, criterion: str) -> JudgeStanding | None:
    """Compare a judge with people on one criterion; None if nobody labelled what it judged."""
    verdicts = [
        _JudgeVerdict(
            case.judge.raw if case.judge.value is None else case.judge.value,
            0.5 if case.judge.threshold is None else case.judge.threshold,
            case.judge.passed,
            case.passes,
        )
        for case in cases
        if case.judge is not None and case.passes is not None
    ]
    return _build_standing(verdicts, judge, criterion) if verdicts else None


def _build_standing(verdicts: Sequence[_JudgeVerdict], judge: str, criterion: str) -> JudgeStanding:
    decided = [one for one in verdicts if one.passed is not None]
    decided_count, sides = len(decided), Counter((one.passed, one.passes) for one in decided)
    table = ConfusionTable(sides[True, True], sides[True, False], sides[False, True], sides[False, False])
    low, high = wilson(table.tp + table.tn, decided_count) if decided_count else (None, None)
    prevalence = table.prevalence
    easy = None if prevalence is None else max(prevalence, 1 - prevalence)
    return JudgeStanding(
        judge,
        criterion,
        items=decided_count,
        undecided=len(verdicts) - decided_count,
        equal=round(table.tp + table.tn),
        share=table.accuracy,
        low=low,
        high=high,
        kappa=table.kappa,
        passes=SideCount(round(table.tp + table.fp), round(table.tp)),
        fails=SideCount(round(table.tn + table.fn), round(table.tn)),
        commoner=None if prevalence is None else "pass" if prevalence >= 1 / 2 else "fail",
        easy=easy,
        trust=_find_trust(decided_count, low, high, easy),
        reliability=_list_bins(verdicts),
        coverage=_list_coverage(decided, len(verdicts)),
    )


def _find_trust(items: int, low: float | None, high: float | None, easy: float | None) -> Trust:
    if items < MIN_LABELLED_ITEMS or low is None or high is None or easy is None:
        return "unknown"
    return "better" if low > easy else "worse" if high < easy else "undecided"


def _list_bins(verdicts: Sequence[_JudgeVerdict]) -> tuple[StandingPoint, ...]:
    ordered = sorted(verdicts, key=lambda one: one.value)
    bins = [list(members) for _, members in groupby(ordered, key=lambda one: min(int(one.value * BINS), BINS - 1))]
    return tuple([_build_point(members) for members in bins])


def _build_point(members: Sequence[_JudgeVerdict]) -> StandingPoint:
    n = len(members)
    return StandingPoint(sum(one.value for one in members) / n, sum(one.passes for one in members) / n, n)


def _list_coverage(verdicts: Sequence[_JudgeVerdict], total: int) -> tuple[StandingPoint, ...]:
    """Add a point after each group of equally sure verdicts; within a group the order means nothing."""
    ordered = sorted(verdicts, key=lambda one: -one.doubt)
    points: list[StandingPoint] = []
    count = equal = 0
    for _, members in groupby(ordered, key=lambda one: round(one.doubt, 9)):
        part = list(members)
        count, equal = count + len(part), equal + sum(one.is_equal for one in part)
        points.append(StandingPoint(count / total, equal / count, count))
    return tuple(points)
