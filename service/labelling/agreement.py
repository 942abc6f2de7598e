"""Compare a judge with the people who labelled what it judged: how often they agree, and whether that beats guessing."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from service.core.judging.judges import JudgeCheck
from service.engine import Engine
from service.labelling.desk import LabelDesk
from service.stats.agreement import build_confusion
from service.stats.intervals import wilson
from service.store.labelling.labels import JudgeWord
from service.store.labelling.opinions import LabelledCase

MIN_LABELLED_ITEMS = 20
"""Labelled items needed before `trust` says anything."""

Trust = Literal["unknown", "better", "undecided", "worse"]
"""unknown: too few labels. better, worse: than always giving the people's commoner verdict. undecided: these labels
cannot tell.
"""


@dataclass(frozen=True, slots=True)
class SideCount:
    """The items that a judge passes (or fails), and on how many of them people agree."""

    items: int
    equal: int


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """A judge's verdicts against people's labels on one criterion. Shares are null if nothing was decided."""

    judge: str
    criterion: str
    items: int
    """Labelled items that the judge decided."""
    undecided: int
    """Labelled items that the judge, or its fit, left open."""
    unanswered: int
    """Labelled items without an answer of the judge."""
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
    models: tuple[str, ...]
    """The models whose answers these are: of several, what is said here is of all of them together."""
    trust: Trust
    """What the labels say of the judge. unknown: too few of them. better, worse: than always giving the commoner
    verdict. undecided: they cannot tell.
    """


@dataclass(frozen=True, slots=True)
class JudgeAgreements:
    """How each judge does on each criterion that has labels."""

    data: tuple[JudgeAgreement, ...]


def list_agreements(desk: LabelDesk, engine: Engine, tenant: str, judge: str | None = None) -> JudgeAgreements:
    """Compare every judge, or one, with people, on each criterion with labels."""
    labelled = set(desk.labels.list_criteria(tenant))
    agreements = [
        measure_judge(desk.list_cases(tenant, criterion), name, criterion)
        for name, criteria in sorted(list_criteria(engine).items())
        for criterion in sorted(criteria & labelled)
        if judge in (None, name)
    ]
    return JudgeAgreements(tuple([one for one in agreements if one is not None]))


def list_criteria(engine: Engine) -> dict[str, set[str]]:
    """Map each judge to the criteria it decides in the registry's rubrics."""
    criteria: dict[str, set[str]] = {}
    for rubric in engine.registry:
        for criterion in rubric.criteria:
            if isinstance(criterion.check, JudgeCheck):
                criteria.setdefault(criterion.check.judge, set()).add(criterion.id)
    return criteria


def measure_judge(cases: Iterable[LabelledCase], judge: str, criterion: str) -> JudgeAgreement | None:
    """Compare a judge with people on one criterion; None if people passed or failed nothing of it.

    Imported answers of a judge with another name are not its own; those that name none are.
    """
    own: list[tuple[JudgeWord | None, bool]] = []
    models: set[str | None] = set()
    for case in cases:
        if case.passes is None:
            continue
        said: list[dict[str, str]] = json.loads(case.judge.predictions) if case.judge else []
        is_own = all(one.get("judge", judge) == judge for one in said)
        own.append((case.judge if is_own else None, case.passes))
        models |= {one.get("model") for one in said if is_own}
    if not own:
        return None
    verdicts = [(answer.passed, passes) for answer, passes in own if answer is not None]
    decided = [one for one in verdicts if one[0] is not None]
    decided_count = len(decided)
    table = build_confusion([label for _, label in decided], [bool(verdict) for verdict, _ in decided])
    low, high = wilson(table.tp + table.tn, decided_count) if decided_count else (None, None)
    prevalence = table.prevalence
    easy = None if prevalence is None else max(prevalence, 1 - prevalence)
    trust: Trust = "unknown"
    if decided_count >= MIN_LABELLED_ITEMS and low is not None and high is not None and easy is not None:
        trust = "better" if low > easy else "worse" if high < easy else "undecided"
    return JudgeAgreement(
        judge,
        criterion,
        items=decided_count,
        undecided=len(verdicts) - decided_count,
        unanswered=len(own) - len(verdicts),
        equal=round(table.tp + table.tn),
        share=table.accuracy,
        low=low,
        high=high,
        kappa=table.kappa,
        passes=SideCount(round(table.tp + table.fp), round(table.tp)),
        fails=SideCount(round(table.tn + table.fn), round(table.tn)),
        commoner=None if prevalence is None else "pass" if prevalence >= 1 / 2 else "fail",
        easy=easy,
        models=tuple(sorted(filter(None, models))),
        trust=trust,
    )
