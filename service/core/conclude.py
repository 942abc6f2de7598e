"""The second half of scoring: replies and outcomes become the report."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from service.core.calibrate import Fit
from service.core.case import Pair, folded
from service.core.checks import WHOLE, Subject
from service.core.evidence.injection import suspicions
from service.core.judged import Judged, Reply, Vote, completed, cost, judged, place_of, total
from service.core.judges import Ask
from service.core.outcome import Finding, Outcome, Scored, Skipped
from service.core.oversights import oversights
from service.core.plan import Awaiting, Filled, Plan
from service.core.report import (
    ENGINE,
    STAND_IN,
    CriterionScore,
    Elsewhere,
    Estimate,
    JudgeMode,
    MissingCall,
    NotAsked,
    Provenance,
    Report,
    RubricRef,
    StageScore,
    StepVerdict,
)
from service.core.rubric import Column, Rubric, Stage
from service.core.scores import Mark, mark_of, overall, standings, step_standing, total_of
from service.core.withheld import withheld

Answer = Outcome | tuple[Vote, ...]
"""The votes on a question, or an outcome that stands in their place."""

Replies = Mapping[str, Answer]
"""Answers by `Ask.key`."""

JUDGES_OFF = Skipped("not_applicable", "judges are off")
NO_REPLY = Skipped("not_asked", "no judge has answered this")

STRATUM = "stratum"
"""The tag that says of which stratum of labelled sets a trace is: who wrote it, say."""


def conclude(
    plan: Plan,
    replies: Replies | None = None,
    *,
    tags: Mapping[str, str] | None = None,
    mode: JudgeMode = "cached",
    estimates: Mapping[str, Estimate] | None = None,
    fits: Collection[Fit] = (),
) -> Report:
    """The report of a plan. Pure.

    `replies` None: judges are off, and their criteria do not apply. `mode` is how the replies came about; `estimates`, by
    `Ask.key`, say what the questions that were not asked would have taken; `fits` are the calibrations at hand, and
    the tag `stratum` says whether they were made on such traces.
    """
    rubric = plan.rubric
    answers = _Answers(replies, plan, fits, (tags or {}).get(STRATUM))
    rows = [(filled.column, _answered(filled, answers)) for filled in plan.filled]
    marks = [mark_of(column, cells) for column, cells in rows]
    stages = standings(marks, rubric)
    total = total_of(marks, stages, rubric)
    return Report(
        trace_id=plan.trace.id,
        rubric=RubricRef(rubric.id, rubric.version, rubric.digest),
        verdict=overall(marks, stages, total, rubric),
        score=total.score,
        coverage=total.coverage,
        all_passed=total.score is not None and all(mark.clean for mark in marks),
        first_failing_stage=next((stage for stage, verdict, _ in stages if verdict == "fail"), None),
        failing=tuple([mark.column.id for mark in marks if mark.failed]),
        stages=tuple([StageScore(stage, verdict, part.score, part.coverage) for stage, verdict, part in stages]),
        criteria=tuple([_criterion_score(mark, cells, plan) for mark, (_, cells) in zip(marks, rows, strict=True)]),
        steps=_steps(plan, rows),
        missing=tuple([MissingCall(plan.wanted[i], plan.due[i]) for i in plan.alignment.missing]),
        decisions=plan.decisions,
        offered=None if plan.trace.tools is None else tuple([tool.name for tool in plan.trace.tools]),
        not_asked=tuple(_not_asked(plan, replies, estimates or {})),
        tags=dict(sorted(tags.items())) if tags else {},
        provenance=_provenance(replies, mode, plan.saved, _applied(rows)),
        notes=(*oversights(plan.trace, plan.rubric, plan.expectation), *_suspicions(plan, replies)),
    )


def _provenance(replies: Replies | None, mode: JudgeMode, saved: int, fits: tuple[str, ...]) -> Provenance:
    if replies is None:
        return _unjudged(saved)
    made = [vote for _, answer in sorted(replies.items()) for vote in _votes(answer) if isinstance(vote, Reply)]
    models = sorted({reply.model or reply.requested for reply in made})
    return Provenance(
        engine=ENGINE,
        judges=mode,
        judge_model=", ".join(models) or None,
        stand_in=STAND_IN in models,
        replies=len(made),
        cache_hits=sum(reply.cache == "hit" for reply in made),
        questions_saved=saved,
        tokens_in=total([reply.usage.tokens_in for reply in made]) if made else None,
        tokens_out=total([reply.usage.tokens_out for reply in made]) if made else None,
        cost_usd=cost([reply.usage.cost_usd for reply in made]) if made else None,
        calibrators=fits or "uncalibrated",
    )


@lru_cache(maxsize=64)
def _unjudged(saved: int) -> Provenance:
    return Provenance(ENGINE, "off", None, False, 0, 0, saved, None, None, None, "uncalibrated")


def _votes(answer: Answer) -> tuple[Vote, ...]:
    return answer if isinstance(answer, tuple) else ()


Answered = tuple[Subject, Outcome]
Row = tuple[Column, Sequence[Answered]]


def _suspicions(plan: Plan, replies: Replies | None) -> tuple[Finding, ...]:
    """What looks as if it spoke to a judge, where judges were asked."""
    return suspicions(plan.trace) if replies else ()


class _Answers(NamedTuple):
    """Where the outcomes of questions come from."""

    replies: Replies | None
    plan: Plan
    fits: Collection[Fit]
    stratum: str | None

    def to(self, ask: Ask) -> Outcome:
        answer = (self.replies or {}).get(ask.key, NO_REPLY)
        at = place_of(ask, self.plan.trace)
        if not isinstance(answer, tuple):
            return answer
        found = judged(ask, answer, at, self.fits, stratum=self.stratum)
        if self.plan.rubric.require_calibration and isinstance(found, Judged):
            return withheld(found, at)
        return found


def _answered(filled: Filled, answers: _Answers) -> Sequence[Answered]:
    if filled.column.judged and answers.replies is None:  # what code decided stands; `not_asked` lists the rest
        return [(subject, found) for subject, found in filled.cells if isinstance(found, Scored)]
    if not filled.open:
        return filled.cells  # pyright: ignore[reportReturnType] (no cell waits for a reply)
    return [(subject, _filled_in(found, answers)) for subject, found in filled.cells]


def _filled_in(found: Outcome | Ask | Awaiting, answers: _Answers) -> Outcome:
    """The outcome of a cell, with the replies that it waits for."""
    if isinstance(found, Awaiting):
        return completed(found, [answers.to(ask) for ask in found.asks])
    return answers.to(found) if isinstance(found, Ask) else found


def _applied(rows: Iterable[Row]) -> tuple[str, ...]:
    """The fits that values of the report rest on."""
    outcomes = [outcome for column, cells in rows if column.judged for _, outcome in cells]
    calibrations = [outcome.calibration for outcome in outcomes if isinstance(outcome, Judged)]
    return tuple(sorted({one.fit for one in calibrations if one.fit and one.status == "calibrated"}))


def _not_asked(plan: Plan, replies: Replies | None, estimates: Mapping[str, Estimate]) -> Iterable[NotAsked]:
    held = [(one.ask, one.why) for one in plan.blocked]
    asked = () if replies is None else replies
    why = JUDGES_OFF.reason if replies is None else NO_REPLY.reason
    held += [(ask, why) for ask in plan.asks if ask.key not in asked]
    for ask, reason in held:
        guess = estimates.get(ask.key)
        priced = (guess.tokens, guess.cost_usd) if guess else (None, None)
        yield NotAsked(ask.criterion, ask.judge.id, ask.step, ask.turn, reason, *priced)


def _criterion_score(mark: Mark, cells: Iterable[Answered], plan: Plan) -> CriterionScore:
    column = mark.column
    loose = [cell for cell in cells if cell[0].step is None]
    if not loose:
        return _on_steps_alone(column.id, column.stage, column.weight, mark.value)
    if len(loose) == 1 and loose[0][0] is WHOLE and (reason := _absence(loose[0][1])):
        return _absent(column.id, column.stage, column.weight, reason)
    elsewhere = [
        Elsewhere(subject.turn, None if subject.expected is None else plan.wanted[subject.expected], outcome)
        for subject, outcome in loose
    ]
    return CriterionScore(column.id, column.stage, column.weight, mark.value, tuple(elsewhere))


# What most criteria of most traces come to is made once: making it costs more than finding it.
@lru_cache(maxsize=4096)
def _on_steps_alone(name: str, stage: Stage, weight: float, value: float | None) -> CriterionScore:
    return CriterionScore(name, stage, weight, value, ())


@lru_cache(maxsize=1024)
def _absent(name: str, stage: Stage, weight: float, reason: str) -> CriterionScore:
    return CriterionScore(name, stage, weight, None, (Elsewhere(None, None, Skipped("not_applicable", reason)),))


def _absence(outcome: Outcome) -> str | None:
    """Why a criterion does not apply, if that is all there is to say of it."""
    if isinstance(outcome, Skipped) and outcome.cause == "not_applicable" and not outcome.findings:
        return outcome.reason
    return None


def _steps(plan: Plan, rows: Iterable[Row]) -> tuple[StepVerdict, ...]:
    by_step: list[list[tuple[Column, Outcome]]] = [[] for _ in plan.trace.steps]
    for column, cells in rows:
        for subject, outcome in cells:
            if subject.step is not None:
                by_step[subject.step].append((column, outcome))
    matched = {pair.step: pair for pair in plan.alignment.pairs}
    return tuple([_step_verdict(plan, n, cells, matched.get(n)) for n, cells in enumerate(by_step)])


def _step_verdict(plan: Plan, index: int, cells: list[tuple[Column, Outcome]], pair: Pair | None) -> StepVerdict:
    verdict, total = step_standing(plan.rubric, cells)
    step = plan.trace.steps[index]
    return StepVerdict(
        index=index,
        turn=step.turn,
        tool=step.call.name,
        verdict=verdict,
        score=total.score,
        matched=None if pair is None else pair.expected,
        expected=None if pair is None else pair.path,
        expected_tool=None if pair is None else _spelt(pair.pattern.tool, step.call.name, plan.rubric),
        unexpected=index in plan.unexpected,
        outcomes=_by_criterion(cells),
    )


def _spelt(expected: str, called: str, rubric: Rubric) -> str:
    return called if rubric.fold_names and folded(expected) == folded(called) else expected


def _by_criterion(cells: Iterable[tuple[Column, Outcome]]) -> dict[str, Outcome]:
    """The outcome of each criterion; of several at one step the worst, with the findings of all."""
    outcomes: dict[str, Outcome] = {}
    for column, outcome in cells:
        before = outcomes.get(column.id)
        outcomes[column.id] = outcome if before is None else _worse(before, outcome)
    return outcomes


def _worse(one: Outcome, other: Outcome) -> Outcome:
    if not isinstance(one, Scored) or not isinstance(other, Scored):
        return one if isinstance(one, Scored) else other
    return Scored(min(one.value, other.value), one.passed and other.passed, (*one.findings, *other.findings))
