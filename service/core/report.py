"""The second half of scoring: outcomes become scores, coverage and verdicts. The dataclasses are the wire format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import fsum
from typing import Literal, NamedTuple

from service.core.judges import Ask
from service.core.outcome import Errored, Finding, Outcome, Scored, Skipped
from service.core.plan import Cell, NotAsked, Plan
from service.core.rubric import Criterion, Rubric, Stage, Thresholds
from service.core.weights import weight_of

Verdict = Literal["pass", "warn", "fail", "abstain", "not_applicable"]

ENGINE = "1"
"""Raised whenever the same plan and replies may give another report."""

NOISE = 1e-9
"""Scores this close to a threshold have reached it: weights such as 0.7 and 0.3 do not add up exactly."""


@dataclass(frozen=True, slots=True)
class RubricRef:
    """Which rubric scored: `hash` is the sha256 of its canonical JSON."""

    id: str
    version: int
    hash: str


@dataclass(frozen=True, slots=True)
class StageScore:
    """One stage. `score` is None where nothing was measured, `coverage` None where nothing applied."""

    stage: Stage
    verdict: Verdict
    score: float | None
    coverage: float | None


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """An outcome that belongs to no step: of a turn, of an expected call that was not made, or of the whole trace."""

    turn: int | None
    expected: str | None
    """The pointer of the expected call."""
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class CriterionScore:
    """One criterion over the whole trace. `value` is None where it was not measured or did not apply."""

    id: str
    stage: Stage
    weight: float
    value: float | None
    outcomes: tuple[Elsewhere, ...]


@dataclass(frozen=True, slots=True)
class StepVerdict:
    """One call. `matched` is the position of the expected call it stands for, `expected` that call's pointer."""

    index: int
    turn: int
    tool: str
    verdict: Verdict
    score: float | None
    matched: int | None
    expected: str | None
    outcomes: dict[str, Outcome]


@dataclass(frozen=True, slots=True)
class Provenance:
    """What produced the report. `judge_model` is the model as the provider names it; None where no judge was asked."""

    engine: str
    judges: Literal["off", "cached", "live", "fresh"]
    judge_model: str | None
    cache_hits: int
    cost_usd: float | None
    calibrators: tuple[str, ...] | Literal["uncalibrated"]


@dataclass(frozen=True, slots=True)
class Report:
    """The answer: a score, its coverage, and a verdict for every stage and step."""

    trace_id: str | None
    rubric: RubricRef
    verdict: Verdict
    score: float | None
    coverage: float | None
    all_passed: bool
    first_failing_stage: Stage | None
    failing: tuple[str, ...]
    """The criteria with an outcome that did not pass."""
    stages: tuple[StageScore, ...]
    criteria: tuple[CriterionScore, ...]
    steps: tuple[StepVerdict, ...]
    not_asked: tuple[NotAsked, ...]
    tags: dict[str, str]
    provenance: Provenance

    def findings(self) -> list[Finding]:
        """Every finding once, in the order of the trace: what belongs to no step first."""
        loose = [o.outcome for c in self.criteria for o in c.outcomes]
        outcomes = [*loose, *(o for step in self.steps for o in step.outcomes.values())]
        return list(dict.fromkeys(f for o in outcomes if not isinstance(o, Errored) for f in o.findings))


Replies = Mapping[str, Outcome]
"""Outcomes of questions by `Ask.key`."""

JUDGES_OFF = Skipped("not_applicable", "judges are off")
NO_REPLY = Skipped("not_asked", "no judge has answered this")


def conclude(plan: Plan, replies: Replies | None = None, *, tags: Mapping[str, str] | None = None) -> Report:
    """The report of a plan. `replies` None: judges are off, and their criteria do not apply. Pure."""
    answered = [(cell, _answered(cell, replies)) for cell in plan.cells]
    groups = [(criterion, list(cells)) for criterion, cells in groupby(answered, key=_criterion)]
    marks = [_mark(criterion, [outcome for _, outcome in cells]) for criterion, cells in groups]
    stages = tuple(_stage_score(stage, list(group), plan.rubric) for stage, group in groupby(marks, key=_stage))
    total = _total(marks, stages, plan.rubric)
    return Report(
        trace_id=plan.trace.id,
        rubric=RubricRef(plan.rubric.id, plan.rubric.version, plan.rubric.digest),
        verdict=_verdict(marks, total, plan.rubric.thresholds),
        score=total.score,
        coverage=total.coverage,
        all_passed=total.score is not None and all(mark.clean for mark in marks),
        first_failing_stage=next((s.stage for s in stages if s.verdict == "fail"), None),
        failing=tuple(mark.criterion.id for mark in marks if mark.failed),
        stages=stages,
        criteria=tuple(_criterion_score(mark, cells, plan) for mark, (_, cells) in zip(marks, groups, strict=True)),
        steps=_steps(plan, answered),
        not_asked=(*plan.blocked, *_left_open(plan, replies)),
        tags=dict(sorted((tags or {}).items())),
        provenance=Provenance(ENGINE, "off" if replies is None else "cached", None, 0, None, "uncalibrated"),
    )


Answered = tuple[Cell, Outcome]


def _answered(cell: Cell, replies: Replies | None) -> Outcome:
    if not isinstance(cell.outcome, Ask):
        return cell.outcome
    return JUDGES_OFF if replies is None else replies.get(cell.outcome.key, NO_REPLY)


def _left_open(plan: Plan, replies: Replies | None) -> Iterable[NotAsked]:
    for ask in plan.asks:
        if replies is None:
            yield NotAsked(ask.criterion, ask.judge, ask.step, JUDGES_OFF.reason)
        elif ask.key not in replies:
            yield NotAsked(ask.criterion, ask.judge, ask.step, NO_REPLY.reason)


class Mark(NamedTuple):
    """A criterion folded over its outcomes."""

    criterion: Criterion
    weight: float
    value: float | None
    coverage: float | None
    """The share of applicable outcomes that have a value; None where none applies."""
    failed: bool
    """Whether an outcome did not pass or was blocked."""
    clean: bool
    """Whether everything that applies was measured and passed."""


def _criterion(answered: Answered) -> Criterion:
    return answered[0].criterion


def _stage(mark: Mark) -> Stage:
    return mark.criterion.stage


def _mark(criterion: Criterion, outcomes: Sequence[Outcome]) -> Mark:
    values: list[float] = []
    unknown = 0
    broken = False
    for outcome in outcomes:
        if isinstance(outcome, Scored):
            values.append(outcome.value)
            broken = broken or not outcome.passed
        elif isinstance(outcome, Errored) or outcome.cause not in ("blocked", "not_applicable"):
            unknown += 1
        elif outcome.cause == "blocked":
            values.append(0.0)
            broken = True
    applicable = len(values) + unknown
    value = (min(values) if criterion.folds == "min" else fsum(values) / len(values)) if values else None
    coverage = len(values) / applicable if applicable else None
    return Mark(criterion, weight_of(criterion.weight), value, coverage, broken, not broken and not unknown)


class Total(NamedTuple):
    """A weighted mean with the share of weight that was measured."""

    score: float | None
    coverage: float | None


def _mean(parts: Sequence[tuple[float, float | None, float | None]]) -> Total:
    """The weighted mean of (weight, score, coverage); what has no coverage does not apply."""
    measured = fsum(weight for weight, score, _ in parts if score is not None)
    applicable = fsum(weight for weight, _, coverage in parts if coverage is not None)
    gained = fsum(weight * score for weight, score, _ in parts if score is not None)
    covered = fsum(weight * coverage for weight, _, coverage in parts if coverage is not None)
    return Total(
        min(1.0, gained / measured) if measured else None,
        min(1.0, covered / applicable) if applicable else None,
    )


def _weighed(marks: Iterable[Mark]) -> Total:
    return _mean([(mark.weight, mark.value, mark.coverage) for mark in marks])


def _stage_score(stage: Stage, marks: list[Mark], rubric: Rubric) -> StageScore:
    total = _weighed(marks)
    return StageScore(stage, _verdict(marks, total, rubric.thresholds), total.score, total.coverage)


def _total(marks: Sequence[Mark], stages: Sequence[StageScore], rubric: Rubric) -> Total:
    if rubric.stages is None:
        return _weighed(marks)
    weights = rubric.stages
    return _mean([(weight_of(weights.get(s.stage, 1.0)), s.score, s.coverage) for s in stages])


def _verdict(marks: Iterable[Mark], total: Total, thresholds: Thresholds) -> Verdict:
    if any(mark.failed and mark.criterion.blocking for mark in marks):
        return "fail"
    if total.coverage is None:
        return "not_applicable"
    if total.score is None or total.coverage < thresholds.min_coverage - NOISE:
        return "abstain"
    if total.score < thresholds.fail - NOISE:
        return "fail"
    return "warn" if total.score < thresholds.warn - NOISE else "pass"


def _criterion_score(mark: Mark, cells: Iterable[Answered], plan: Plan) -> CriterionScore:
    elsewhere = tuple(
        Elsewhere(cell.subject.turn, _expected_at(cell, plan), outcome)
        for cell, outcome in cells
        if cell.subject.step is None
    )
    return CriterionScore(mark.criterion.id, mark.criterion.stage, mark.weight, mark.value, elsewhere)


def _expected_at(cell: Cell, plan: Plan) -> str | None:
    return None if cell.subject.expected is None else plan.patterns[cell.subject.expected]


def _steps(plan: Plan, answered: Iterable[Answered]) -> tuple[StepVerdict, ...]:
    by_step: list[list[Answered]] = [[] for _ in plan.trace.steps]
    for cell, outcome in answered:
        if cell.subject.step is not None:
            by_step[cell.subject.step].append((cell, outcome))
    matched = {step: expected for expected, step in plan.alignment.pairs}
    return tuple(_step_verdict(plan, n, cells, matched.get(n)) for n, cells in enumerate(by_step))


def _step_verdict(plan: Plan, index: int, cells: list[Answered], matched: int | None) -> StepVerdict:
    marks = [_mark(cell.criterion, [outcome]) for cell, outcome in cells]
    stages = [_stage_score(stage, list(group), plan.rubric) for stage, group in groupby(marks, key=_stage)]
    total = _total(marks, stages, plan.rubric)
    step = plan.trace.steps[index]
    return StepVerdict(
        index=index,
        turn=step.turn,
        tool=step.call.name,
        verdict=_verdict(marks, total, plan.rubric.thresholds),
        score=total.score,
        matched=matched,
        expected=None if matched is None else plan.patterns[matched],
        outcomes={cell.criterion.id: outcome for cell, outcome in cells},
    )


