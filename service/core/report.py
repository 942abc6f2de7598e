"""The second half of scoring: replies and outcomes become the report. The dataclasses are the wire format."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from service.core.calibrate import Fit
from service.core.case import Pair, folded
from service.core.checks import WHOLE, Subject
from service.core.decisions import Decision
from service.core.evidence.evidenced import Evidenced
from service.core.evidence.injection import suspicions
from service.core.judged import Judged, Mixed, Reply, Vote, completed, cost, judged, place_of, total
from service.core.judges import Ask
from service.core.outcome import Carried, Errored, Finding, Outcome, Scored, Skipped
from service.core.oversights import oversights
from service.core.plan import Awaiting, Filled, Plan
from service.core.rubric import Column, Rubric, Stage
from service.core.scores import Mark, Verdict, mark_of, overall, standings, step_standing, total_of

JudgeMode = Literal["off", "cached", "live", "fresh"]

ENGINE = "2"
"""Raised whenever the same plan and replies may give another report."""


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


Told = Scored | Judged | Mixed | Evidenced | Carried | Skipped | Errored
"""An outcome on the wire, with all that its kind has to tell."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """An outcome that belongs to no step: of a turn, of an expected call that was not made, or of the whole trace."""

    turn: int | None
    expected: str | None
    """The pointer of the expected call."""
    outcome: Told


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
    outcomes: dict[str, Told]


@dataclass(frozen=True, slots=True)
class MissingCall:
    """A required call that was not made: its pointer in the expectation, and its tool (of alternatives the first)."""

    expected: str
    tool: str


@dataclass(frozen=True, slots=True)
class NotAsked:
    """A question that was not put to a judge, why, and about what it would have taken. None: not worked out."""

    criterion: str
    judge: str
    step: int | None
    turn: int | None
    why: str
    tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What asking would take: tokens both ways at most, and their price, None where it is not known."""

    tokens: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Provenance:
    """What produced the report. Tokens are those the replies took when they were made, cached ones too; unknown is None."""

    engine: str
    judges: JudgeMode
    judge_model: str | None
    """The models that answered, as their providers name them, with commas between; None where none did."""
    stand_in: bool
    """Whether rules stood in for a model, so that what was judged means nothing."""
    replies: int
    """How many of a judge's replies went into the report."""
    cache_hits: int
    questions_saved: int
    """How many questions code answered, so that no judge was needed."""
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    """What was paid for this report, in US dollars; None where a price is not known, or nobody was asked."""
    calibrators: tuple[str, ...] | Literal["uncalibrated"]


@dataclass(frozen=True, slots=True)
class ExecutedScore:
    """The same trace without the calls that failed or were not made, judges left out: what the calls came to, not the tries."""

    verdict: Verdict
    score: float | None
    coverage: float | None
    steps: int
    """How many calls did not fail."""


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
    executed: ExecutedScore | None = None
    """Where a call failed or was not made: the score without such calls, beside that of all that was attempted."""
    notes: tuple[Finding, ...] = ()
    """What the request seems to have overlooked (an expectation that no criterion reads, a tool that is not on offer), and
    where judges were asked, what in the trace looks as if it spoke to them. It changes no score."""

    def findings(self) -> list[Finding]:
        """Every finding once, in the order of the trace: what belongs to no step first."""
        loose = [o.outcome for c in self.criteria for o in c.outcomes]
        outcomes = [*loose, *(o for step in self.steps for o in step.outcomes.values())]
        return list(dict.fromkeys(f for o in outcomes if not isinstance(o, Errored) for f in o.findings))


Answer = Outcome | tuple[Vote, ...]
"""The votes on a question, or an outcome that stands in their place."""

Replies = Mapping[str, Answer]
"""Answers by `Ask.key`."""

JUDGES_OFF = Skipped("not_applicable", "judges are off")
NO_REPLY = Skipped("not_asked", "no judge has answered this")
STAND_IN = "callgrade/stand-in"
"""The name of the model that is none: rules that answer the bundled cases."""


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
    `Ask.key`, say what the questions that were not asked would have taken; `fits` are the calibrations at hand.
    """
    rubric = plan.rubric
    rows = [(filled.column, _answered(filled, _Answers(replies, plan, fits))) for filled in plan.filled]
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

    def to(self, ask: Ask) -> Outcome:
        answer = (self.replies or {}).get(ask.key, NO_REPLY)
        at = place_of(ask, self.plan.trace)
        return judged(ask, answer, at, self.fits) if isinstance(answer, tuple) else answer


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
