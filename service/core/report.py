"""The second half of scoring: outcomes become scores, coverage and verdicts. The dataclasses are the wire format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import fsum
from typing import Literal, NamedTuple

from service.core.case import Pair, folded
from service.core.checks import WHOLE, Subject
from service.core.decisions import Decision
from service.core.judges import Ask
from service.core.outcome import PERFECT, Errored, Finding, Outcome, Scored, Skipped
from service.core.plan import Filled, NotAsked, Plan
from service.core.rubric import Column, Rubric, Stage, Thresholds

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
    expected_tool: str | None
    """The tool of that expected call, spelt as called where the rubric takes both names for one."""
    unexpected: bool
    """Whether it is a call too many."""
    outcomes: dict[str, Outcome]


@dataclass(frozen=True, slots=True)
class MissingCall:
    """A required call that was not made: its pointer in the expectation, and its tool (of alternatives the first)."""

    expected: str
    tool: str


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
    missing: tuple[MissingCall, ...]
    decisions: tuple[Decision, ...]
    """Whether a call was due and made: in the trace and in each turn of which the expectation tells."""
    offered: tuple[str, ...] | None
    """The names of the tools on offer; None where the trace does not tell."""
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
    rubric = plan.rubric
    rows = [(filled.column, _answered(filled, replies)) for filled in plan.filled]
    marks = [_mark(column, cells) for column, cells in rows]
    stages = _stages(marks, rubric)
    total = _total(marks, stages, rubric)
    return Report(
        trace_id=plan.trace.id,
        rubric=RubricRef(rubric.id, rubric.version, rubric.digest),
        verdict=_overall(marks, stages, total, rubric),
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
        not_asked=(*plan.blocked, *_left_open(plan, replies)),
        tags=dict(sorted(tags.items())) if tags else {},
        provenance=UNJUDGED if replies is None else Provenance(ENGINE, "cached", None, 0, None, "uncalibrated"),
    )


UNJUDGED = Provenance(ENGINE, "off", None, 0, None, "uncalibrated")

Answered = tuple[Subject, Outcome]
Row = tuple[Column, list[Answered]]


def _answered(filled: Filled, replies: Replies | None) -> list[Answered]:
    column, cells = filled
    if not column.judged:
        return cells  # pyright: ignore[reportReturnType] (only judged columns hold questions)
    if replies is None:
        return []  # `not_asked` lists them
    return [
        (subject, replies.get(found.key, NO_REPLY) if isinstance(found, Ask) else found) for subject, found in cells
    ]


def _left_open(plan: Plan, replies: Replies | None) -> Iterable[NotAsked]:
    for ask in plan.asks:
        if replies is None:
            yield NotAsked(ask.criterion, ask.judge.id, ask.step, JUDGES_OFF.reason)
        elif ask.key not in replies:
            yield NotAsked(ask.criterion, ask.judge.id, ask.step, NO_REPLY.reason)


class Mark(NamedTuple):
    """A criterion folded over its outcomes."""

    column: Column
    value: float | None
    coverage: float | None
    """The share of applicable outcomes that have a value; None where none applies."""
    failed: bool
    """Whether an outcome did not pass."""
    clean: bool
    """Whether everything that applies was measured and passed."""

    @property
    def full(self) -> bool:
        """Whether it was measured, in full, as 1.0, and counts."""
        return self.value == 1.0 and self.clean and self.column.weight > 0.0


def _mark(column: Column, cells: Sequence[tuple[object, Outcome]]) -> Mark:
    values: list[float] = []
    unknown = blocked = 0
    failing = False
    for _, outcome in cells:
        if outcome is PERFECT:
            values.append(1.0)
        elif isinstance(outcome, Scored):
            values.append(outcome.value)
            failing = failing or not outcome.passed
        elif isinstance(outcome, Errored) or outcome.cause not in ("blocked", "not_applicable"):
            unknown += 1
        elif outcome.cause == "blocked":
            values.append(0.0)
            blocked += 1
    if not values:
        return Mark(column, None, 0.0 if unknown else None, False, not unknown)
    value = min(values) if column.takes_worst else fsum(values) / len(values)
    coverage = len(values) / (len(values) + unknown)
    return Mark(column, value, coverage, failing, not (failing or unknown or blocked))


class Total(NamedTuple):
    """A weighted mean with the share of weight that was measured."""

    score: float | None
    coverage: float | None


FULL = Total(1.0, 1.0)
ABSENT = Total(None, None)

Part = tuple[float, float | None, float | None]
"""Weight, score (None: not measured), coverage (None: does not apply)."""


def _mean(parts: Sequence[Part]) -> Total:
    """The weighted mean. Sums are exactly rounded, so that no order of criteria changes a digit."""
    if len(parts) == 1 and parts[0][0]:
        return Total(parts[0][1], parts[0][2])
    scored = [(weight, score) for weight, score, _ in parts if score is not None]
    applicable = [(weight, coverage) for weight, _, coverage in parts if coverage is not None]
    return Total(_share(scored), _share(applicable))


def _share(pairs: list[tuple[float, float]]) -> float | None:
    whole = fsum([weight for weight, _ in pairs])
    return min(1.0, fsum([weight * value for weight, value in pairs]) / whole) if whole else None


def _weighed(marks: Iterable[Mark]) -> Total:
    return _mean([(mark.column.weight, mark.value, mark.coverage) for mark in marks])


Standing = tuple[Stage, Verdict, Total]


def _stages(marks: Sequence[Mark], rubric: Rubric) -> list[Standing]:
    """How each stage that has criteria stands, in the order of the contract."""
    by_stage: dict[Stage, list[Mark]] = {}
    for mark in marks:
        by_stage.setdefault(mark.column.stage, []).append(mark)
    return [(stage, *_standing(group, rubric.thresholds)) for stage, group in by_stage.items()]


def _standing(marks: list[Mark], thresholds: Thresholds) -> tuple[Verdict, Total]:
    applying = [mark for mark in marks if mark.coverage is not None]
    if not applying:
        return "not_applicable", ABSENT
    if all([mark.full for mark in applying]):  # noqa: C419 (a list is quicker, and short)
        return "pass", FULL  # what the rest would come to
    total = _weighed(applying)
    return _verdict(applying, total, thresholds), total


def _total(marks: Sequence[Mark], stages: Sequence[Standing], rubric: Rubric) -> Total:
    if rubric.stages is None:
        return _weighed(marks)
    weights = rubric.stage_weights
    return _mean([(weights[stage], part.score, part.coverage) for stage, _, part in stages])


def _verdict(marks: Iterable[Mark], total: Total, thresholds: Thresholds) -> Verdict:
    if any(mark.failed and mark.column.must_pass for mark in marks):
        return "fail"
    if total.coverage is None:
        return "not_applicable"
    least = thresholds.min_coverage - NOISE
    if total.score is None or total.coverage < least or any(_unmeasured(mark, least) for mark in marks):
        return "abstain"
    if total.score < thresholds.fail - NOISE:
        return "fail"
    return "warn" if total.score < thresholds.warn - NOISE else "pass"


def _unmeasured(mark: Mark, least: float) -> bool:
    """Whether something that was asked for, and must pass, could hardly be measured."""
    return mark.column.insists and mark.coverage is not None and mark.coverage < least


def _overall(marks: Iterable[Mark], stages: Iterable[Standing], total: Total, rubric: Rubric) -> Verdict:
    """The verdict on all stages together."""
    verdict = _verdict(marks, total, rubric.thresholds)
    if rubric.verdict == "score" or verdict in ("abstain", "not_applicable"):
        return verdict
    return max([verdict, *[of_stage for _, of_stage, _ in stages]], key=_SEVERITY.__getitem__)


_SEVERITY: dict[Verdict, int] = {"not_applicable": 0, "abstain": 0, "pass": 1, "warn": 2, "fail": 3}


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
    verdict, total = _step_standing(plan.rubric, cells)
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


def _step_standing(rubric: Rubric, cells: list[tuple[Column, Outcome]]) -> tuple[Verdict, Total]:
    if cells and all(outcome is PERFECT and column.weight for column, outcome in cells):
        return "pass", FULL  # what the rest would come to
    marks = [_mark(cell[0], (cell,)) for cell in cells]
    stages = _stages(marks, rubric)
    total = _total(marks, stages, rubric)
    return _overall(marks, stages, total, rubric), total
