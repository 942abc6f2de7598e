"""The second half of scoring: turn a plan and the judges' replies into the report."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from service.core.checks import WHOLE, Subject
from service.core.conclusion.judge_answers import JudgeAnswers, Replies, Row, SubjectResult, resolve_outcomes
from service.core.conclusion.oversights import find_oversights
from service.core.conclusion.step_verdicts import build_step_verdicts
from service.core.criterion_results import CriterionResult, fold_criterion, fold_perfect
from service.core.expectations.expectation import ExpectedCall
from service.core.judging.fits.fit import Fit, Status
from service.core.judging.judged_outcomes import JudgedScore, MixedScore, OpenJudgement
from service.core.judging.notes import JudgeReply, sum_counts
from service.core.judging.prompts import Usage
from service.core.money import NOTHING, Cost, Spent
from service.core.outcome import PERFECT, Errored, Outcome, Scored, Skipped, list_open_parts
from service.core.plan import CriterionPlan, Plan
from service.core.report import (
    ENGINE,
    NOT_JUDGED,
    STAND_IN,
    AppliedJudgeMode,
    AskEstimate,
    CalibrationCounts,
    CriterionScore,
    LooseOutcome,
    MissingCall,
    NotAsked,
    OpenOutcome,
    Provenance,
    Report,
    ReportScope,
    RubricRef,
    StageScore,
    UnreadPart,
    cache_json,
)
from service.core.results.failures.marking import list_failures
from service.core.rubric import CompiledCriterion, Stage
from service.core.scores import Fold, find_deciding_criteria, fold_results
from service.core.trace import Trace
from service.core.unread_parts import UNREAD_RESULT

STRATUM = "stratum"
"""The tag that names a trace's stratum, as labelled sets have it: who wrote it, for example."""


def conclude(  # noqa: PLR0913 (each by name)
    plan: Plan,
    replies: Replies | None = None,
    *,
    tags: Mapping[str, str] | None = None,
    mode: AppliedJudgeMode | None = None,
    estimates: Mapping[str, AskEstimate] | None = None,
    fits: Collection[Fit] = (),
    spent: Spent | None = None,
) -> Report:
    """Build the report of a plan. Pure.

    `mode` is how judges were asked: `off` leaves judged criteria out of the score, `none` (the default without `replies`) leaves
    them open. `estimates`, by `Ask.key`, say what the questions that were not asked would have taken. `fits` are the available
    calibrations; the tag `stratum` selects those made on such traces. `spent`: what the calls of this report took, those included
    whose replies were of no use; None: what the replies say.
    """
    asking = mode or ("none" if replies is None else "cached")
    answers = JudgeAnswers(replies or {}, asking, plan, fits, (tags or {}).get(STRATUM))
    results, scores, rows, others = _conclude_criteria(plan, answers)
    folded = fold_results(results, plan.rubric)
    whole, trace = folded.whole, plan.trace
    missing = [plan.expected_calls[i] for i in plan.alignment.missing if i not in plan.alignment.unsettled]
    deciding = find_deciding_criteria(results, folded, plan.rubric) if others else ()
    return Report(
        trace_id=trace.id,
        format=trace.format,
        rubric=_refer_to(plan.rubric.id, plan.rubric.version, plan.rubric.digest, plan.rubric.thresholds.min_coverage),
        scope=_find_scope(plan, results, asking),
        verdict=whole.verdict,
        score=whole.score,
        score_range=whole.score_range,
        full_range=whole.full_range,
        coverage=whole.coverage,
        all_passed=whole.score is not None and folded.clean,
        first_failing_stage=folded.first_failing,
        failing=folded.failing,
        open=tuple(_list_open_outcomes(plan, others, deciding)) if others else (),
        stages=_build_stage_scores(folded.stages),
        criteria=scores,
        steps=build_step_verdicts(plan, rows),
        missing=tuple([MissingCall(one.path, one.tool) for one in missing]),
        decisions=plan.decisions,
        offered=None if trace.tools is None else tuple([tool.name for tool in trace.tools]),
        not_asked=tuple(_list_not_asked(plan, answers, estimates or {})) if plan.blocked_asks or others else (),
        unread=_list_unread(trace, others) if others or trace.unread else (),
        calibration=_count_calibrated(others) if others else NOT_JUDGED,
        tags=dict(sorted(tags.items())) if tags else {},
        provenance=_build_provenance(answers, plan.questions_saved, others, spent),
        usage=trace.usage,
        notes=(*find_oversights(trace, plan.rubric, plan.expectation, plan.listing), *list_failures(trace)),
    )


_refer_to = lru_cache(maxsize=256)(RubricRef)


ConcludedCriterion = tuple[CriterionResult, CriterionScore, Sequence[SubjectResult] | None]
"""A criterion's result, its score in the report, and its outcomes (None if nothing else in the report needs them)."""


def _conclude_criteria(
    plan: Plan, answers: JudgeAnswers
) -> tuple[tuple[CriterionResult, ...], tuple[CriterionScore, ...], list[Row], list[OtherOutcome]]:
    """Return the results and scores of all criteria, the outcomes that are needed further on, and those of no plain score."""
    several_agents = plan.trace.has_several_agents()
    concluded = [
        _conclude_criterion(one, answers, several_agents=several_agents)
        if one.idle is None
        else _conclude_idle(one.criterion, one.idle.reason)
        for one in plan.criteria
    ]
    results, scores, _ = zip(*concluded, strict=True)
    rows = [(result.criterion, outcomes) for result, _, outcomes in concluded if outcomes is not None]
    others = [(criterion, *each) for criterion, outcomes in rows for each in outcomes if type(each[1]) is not Scored]
    return results, scores, rows, others


def _conclude_criterion(planned: CriterionPlan, answers: JudgeAnswers, *, several_agents: bool) -> ConcludedCriterion:
    criterion = planned.criterion
    outcomes: Sequence[SubjectResult] = planned.outcomes  # pyright: ignore[reportAssignmentType] (or they are resolved)
    if planned.perfect and (planned.at_steps or (outcomes[0][0] is WHOLE and not outcomes[1:])):
        return *_conclude_perfect(criterion, at_steps=planned.at_steps), outcomes
    if planned.open or criterion.judged or criterion.requires_outcome:
        outcomes = resolve_outcomes(planned, answers)
    if several_agents:
        outcomes = [(subject, _name_agents(outcome, answers.plan.trace)) for subject, outcome in outcomes]
    subject, first = outcomes[0]
    if type(first) is Skipped and not (outcomes[1:] or first.findings or first.bounds) and subject.expected is None:
        return *_conclude_skipped(criterion, subject, first), outcomes
    result = fold_criterion(criterion, [outcome for _, outcome in outcomes])
    return result, _build_criterion_score(result, outcomes, answers.plan.expected_calls), outcomes


def _name_agents(outcome: Outcome, trace: Trace) -> Outcome:
    """Return the outcome with findings that name the agent that they are about."""
    if isinstance(outcome, Errored) or not outcome.findings:
        return outcome
    agents = [trace.find_agent(one.path) for one in outcome.findings]
    named = zip(outcome.findings, agents, strict=True)
    findings = tuple([replace(one, message=f"{agent}: {one.message}") if agent else one for one, agent in named])
    return replace(outcome, findings=findings)


# Most criteria of most traces have the same few results: looking those up is cheaper than building them.
@lru_cache(maxsize=4096)
def _conclude_skipped(
    criterion: CompiledCriterion, subject: Subject, outcome: Skipped
) -> tuple[CriterionResult, CriterionScore]:
    """Conclude a criterion with a single skipped outcome that holds nothing specific to the trace."""
    result = fold_criterion(criterion, (outcome,))
    return result, cache_json(_build_criterion_score(result, [(subject, outcome)], ()))


@lru_cache(maxsize=4096)
def _conclude_idle(criterion: CompiledCriterion, reason: str) -> ConcludedCriterion:
    outcome = Skipped("not_applicable", reason)
    score = _build_absent_score(criterion.id, criterion.stage, criterion.weight, reason)
    return fold_criterion(criterion, (outcome,)), cache_json(score), None


@lru_cache(maxsize=4096)
def _conclude_perfect(criterion: CompiledCriterion, *, at_steps: bool) -> tuple[CriterionResult, CriterionScore]:
    """Conclude a criterion whose outcomes are all PERFECT and either all at steps or one for the whole trace."""
    elsewhere = () if at_steps else (LooseOutcome(None, None, PERFECT),)
    score = CriterionScore(criterion.id, criterion.stage, criterion.weight, 1.0, elsewhere, (1.0, 1.0), (1.0, 1.0), 1.0)
    return fold_perfect(criterion), cache_json(score)


def _find_scope(plan: Plan, results: Iterable[CriterionResult], asking: AppliedJudgeMode) -> ReportScope:
    if asking != "off":
        return "full"
    for one, planned in zip(results, plan.criteria, strict=True):
        if planned.open or (planned.criterion.judged and one.coverage is not None):
            return "code"
    return "full"


def _build_provenance(
    answers: JudgeAnswers, saved: int, others: Iterable[OtherOutcome], spent: Spent | None
) -> Provenance:
    if not answers.replies:
        return _build_unjudged_provenance(answers.asking, saved)
    votes = [vote for _, one in sorted(answers.replies.items()) if isinstance(one, tuple) for vote in one]
    made = [vote for vote in votes if isinstance(vote, JudgeReply)]
    models = sorted({reply.model or reply.requested for reply in made})
    usages = [reply.usage for reply in made]
    cost = sum([Cost.of(one.cost_usd) for one in usages], NOTHING) if spent is None else spent.cost
    if spent is not None:  # what no reply accounts for went to those that were of no use
        new = [reply.usage for reply in made if reply.cache == "miss"]
        tokens_in = spent.tokens_in - sum(one.tokens_in or 0 for one in new)
        usages.append(Usage(tokens_in, spent.tokens_out - sum(one.tokens_out or 0 for one in new)))
    return Provenance(
        engine=ENGINE,
        judges=answers.asking,
        judge_model=", ".join(models) or None,
        stand_in=STAND_IN in models,
        replies=len(made),
        cache_hits=sum(reply.cache == "hit" for reply in made),
        questions_saved=saved,
        tokens_in=sum_counts([one.tokens_in for one in usages]) if usages else None,
        tokens_out=sum_counts([one.tokens_out for one in usages]) if usages else None,
        cost_usd=cost.known_usd if usages else None,
        unpriced_calls=cost.unpriced,
        calibrators=_list_fits(others) or "uncalibrated",
    )


@lru_cache(maxsize=256)
def _build_unjudged_provenance(asking: AppliedJudgeMode, saved: int) -> Provenance:
    return Provenance(ENGINE, asking, None, False, 0, 0, saved, None, None, None, calibrators="uncalibrated")


OtherOutcome = tuple[CompiledCriterion, Subject, Outcome]
"""An outcome that is not a plain score by code, with its criterion and subject."""


def _list_fits(others: Iterable[OtherOutcome]) -> tuple[str, ...]:
    outcomes = [outcome for criterion, _, outcome in others if criterion.judged]
    calibrations = [one.calibration for one in outcomes if type(one) is not Skipped and isinstance(one, JudgedScore)]
    return tuple(sorted({one.fit for one in calibrations if one.fit and one.status == "calibrated"}))


def _count_calibrated(others: Iterable[OtherOutcome]) -> CalibrationCounts:
    statuses: list[Status] = []
    left_open = certified = 0
    for _, _, outcome in others:
        if type(outcome) is Skipped:
            continue
        if isinstance(outcome, JudgedScore):
            statuses.append(outcome.calibration.status)
            certified += outcome.calibration.certified
        elif isinstance(outcome, MixedScore):
            statuses.extend(outcome.calibrations)
            certified += outcome.certified
        left_open += isinstance(outcome, OpenJudgement)
    if not statuses and not left_open:
        return NOT_JUDGED
    calibrated = statuses.count("calibrated")
    return CalibrationCounts(len(statuses) + left_open, calibrated, len(statuses) - calibrated, left_open, certified)


def _list_unread(trace: Trace, others: Iterable[OtherOutcome]) -> tuple[UnreadPart, ...]:
    """List the parts that could not be read: in the source, and in results that a check needed."""
    found = {part.path: UnreadPart(part.kind, part.path, part.reason) for part in trace.unread} if trace.unread else {}
    for _, _, outcome in others:
        if outcome.kind == "skipped" and outcome.cause == "unread":
            for finding in outcome.findings:
                if finding.code == UNREAD_RESULT:
                    found.setdefault(finding.path, UnreadPart("result", finding.path, finding.message))
    return tuple(found.values()) if found else ()


def _list_not_asked(plan: Plan, answers: JudgeAnswers, estimates: Mapping[str, AskEstimate]) -> Iterator[NotAsked]:
    unscoped = {one.criterion.id for one in plan.criteria if one.criterion.judged and answers.asking == "off"}
    unasked = [(one.ask, answers.silence if one.ask.criterion in unscoped else one.why) for one in plan.blocked_asks]
    unasked += [(ask, answers.silence) for ask in plan.asks if ask.key not in answers.replies]
    for ask, reason in unasked:
        guess = estimates.get(ask.key)
        priced = (guess.tokens, guess.cost_usd) if guess else (None, None)
        yield NotAsked(ask.criterion, ask.judge.id, ask.step, ask.turn, reason, *priced)


def _list_open_outcomes(plan: Plan, others: Iterable[OtherOutcome], decide: Collection[str]) -> Iterator[OpenOutcome]:
    for criterion, subject, outcome in others:
        if type(outcome) is Skipped and not outcome.open:
            continue
        expected = None if subject.expected is None else plan.expected_calls[subject.expected].path
        for part in list_open_parts(outcome):
            yield OpenOutcome(
                criterion=criterion.id,
                stage=criterion.stage,
                step=subject.step,
                turn=subject.turn,
                expected=expected,
                kind=part.kind,
                cause=part.cause,
                reason=part.reason,
                decides=criterion.id in decide,
            )


@lru_cache(maxsize=1024)
def _build_stage_scores(stages: tuple[tuple[Stage, Fold], ...]) -> tuple[StageScore, ...]:
    scores = [
        StageScore(name, one.verdict, one.score, one.coverage, one.score_range, one.full_range) for name, one in stages
    ]
    return tuple(map(cache_json, scores))


def _build_criterion_score(
    result: CriterionResult, outcomes: Sequence[SubjectResult], expected_calls: Sequence[ExpectedCall]
) -> CriterionScore:
    criterion = result.criterion
    loose = [one for one in outcomes if one[0].step is None]
    only = loose[0][1] if loose and loose[0][0] is WHOLE and not outcomes[1:] else None
    if isinstance(only, Skipped) and only.cause == "not_applicable" and not only.findings:
        return _build_absent_score(criterion.id, criterion.stage, criterion.weight, only.reason)
    paths = [None if at.expected is None else expected_calls[at.expected].path for at, _ in loose]
    elsewhere = tuple([LooseOutcome(at.turn, path, one) for (at, one), path in zip(loose, paths, strict=True)])
    return CriterionScore(
        criterion.id,
        criterion.stage,
        criterion.weight,
        None if result.measured is None else result.measured.value,
        elsewhere,
        None if result.worst is None or result.best is None else (result.worst.value, result.best.value),
        None if result.lowest is None or result.highest is None else (result.lowest.value, result.highest.value),
        result.coverage,
    )


@lru_cache(maxsize=1024)
def _build_absent_score(name: str, stage: Stage, weight: float, reason: str) -> CriterionScore:
    return CriterionScore(name, stage, weight, None, (LooseOutcome(None, None, Skipped("not_applicable", reason)),))
