"""Read a report's outcomes of one criterion as predictions, to be compared with labels."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import cast

from service.calibration.predictions import AnswerId, MemberAnswer, Prediction
from service.core.judging.fits.fit import join_models
from service.core.judging.judged_outcomes import JudgedScore, OpenJudgement
from service.core.judging.judges import JudgeCheck
from service.core.judging.notes import JudgeNote, JudgeVote, sum_costs
from service.core.judging.questions import ASSEMBLY
from service.core.outcome import Errored, Scored, Skipped
from service.core.report import Report, ReportOutcome
from service.core.rubric import CompiledCriterion, Criterion, Rubric
from service.errors import SETUP_CAUSES, InputError

DECIDED_BY_CODE = "code decides it, so no judge is asked"


@dataclass(frozen=True, slots=True)
class UnansweredItem:
    """An item that no judge answered."""

    answer_id: AnswerId
    reason: str
    shared_cause: str | None = None
    """The cause, where it lies in no single question and so affects all others too."""
    nothing_to_ask: bool = False
    """Whether there is nothing to ask, here as in scoring: code decides it, or the item contains nothing to judge."""

    def __str__(self) -> str:
        return f"{self.answer_id.id}: {self.reason}"


def find_criterion(rubric: Rubric, criterion: str) -> Criterion:
    """Return the judged criterion of that id; InputError where there is none."""
    known = {one.id: one for one in rubric.criteria if isinstance(one.check, JudgeCheck)}
    if criterion not in known:
        why = f"no judge of {rubric.id} decides {criterion!r}; known: {', '.join(known) or 'none'}"
        raise InputError.at("/criterion", why)
    return known[criterion]


def find_check(rubric: Rubric, criterion: str) -> JudgeCheck:
    """Return which judge decides a criterion, and on which evidence; InputError where none does."""
    return cast("JudgeCheck", find_criterion(rubric, criterion).check)


def read_prediction(
    answer_id: AnswerId, report: Report, rubric: Rubric, *, steps: Collection[int] | None = None
) -> Prediction | UnansweredItem:
    """Read a judge's prediction about an item from the report on it: the value that its fit would decide on.

    Where the criterion takes the worst of several questions, that is the lowest value: under a map that never decreases it
    passes, or is left open, exactly when the criterion does. Where the criterion takes the mean, a label of the whole says
    nothing about any single question. `steps`: the indexes of the steps that the item is about; None: all.
    """
    criterion = find_criterion(rubric, answer_id.criterion)
    if steps is not None:
        report = replace(report, steps=tuple([one for one in report.steps if one.index in steps]))
    outcomes = _list_outcomes(report, answer_id.criterion)
    if not outcomes and steps is not None and not steps:
        why = "its last message makes no call, and the judge is asked about calls"
        return UnansweredItem(answer_id, why, nothing_to_ask=True)
    judged = list_judged(report, answer_id.criterion)
    refuted = any(isinstance(one, Scored) and not isinstance(one, JudgedScore) and not one.passed for one in outcomes)
    if judged and refuted and CompiledCriterion.of(criterion).takes_minimum:
        return UnansweredItem(answer_id, DECIDED_BY_CODE, nothing_to_ask=True)
    unanswered = [
        one
        for one in outcomes
        if isinstance(one, Errored) or (isinstance(one, Skipped) and one.open and not isinstance(one, OpenJudgement))
    ]
    if not judged or unanswered:
        reasons = [one.reason for one in outcomes if isinstance(one, Skipped | Errored)]
        causes = [one.cause for one in outcomes if isinstance(one, Errored) and one.cause in SETUP_CAUSES]
        if not reasons and outcomes:
            return UnansweredItem(answer_id, DECIDED_BY_CODE, nothing_to_ask=True)
        return UnansweredItem(answer_id, reasons[0] if reasons else "the judge was not asked", next(iter(causes), None))
    chosen = choose_deciding(judged, criterion)
    if chosen is None:
        reason = f"{len(judged)} questions, of which the criterion takes the mean: label steps of a run, or traces of one each"
        return UnansweredItem(answer_id, reason)
    return build_prediction(answer_id, chosen, rubric)


def choose_deciding(
    judged: Sequence[JudgedScore | OpenJudgement], criterion: Criterion
) -> JudgedScore | OpenJudgement | None:
    """Choose the judgement that decides a criterion: its only one, or the lowest where it takes the worst; None if neither."""
    alone = len(judged) == 1 or CompiledCriterion.of(criterion).takes_minimum
    return min(judged, key=lambda outcome: outcome.raw) if judged and alone else None


def list_judged(report: Report, criterion: str) -> list[JudgedScore | OpenJudgement]:
    """List what judges said about one criterion in a report, whether it counts there or not."""
    return [one for one in _list_outcomes(report, criterion) if isinstance(one, JudgedScore | OpenJudgement)]


def _list_outcomes(report: Report, criterion: str) -> list[ReportOutcome]:
    loose = [each.outcome for one in report.criteria if one.id == criterion for each in one.outcomes]
    return [*loose, *[step.outcomes[criterion] for step in report.steps if criterion in step.outcomes]]


def build_prediction(answer_id: AnswerId, outcome: JudgedScore | OpenJudgement, rubric: Rubric) -> Prediction:
    """Turn a judge's outcome into a prediction. For a jury, `model` names all of its models, because fits are bound to them."""
    judge, note = rubric.judges_by_id[outcome.judge.id], outcome.judge
    members = _list_members(note) if judge.models else ()
    asked = note.cache == "miss"
    return Prediction(
        id=answer_id.id,
        criterion=answer_id.criterion,
        raw=outcome.raw,
        threshold=judge.threshold,
        judge=judge.id,
        judge_digest=judge.digest,
        model=join_models([member.model for member in members] or [vote.model for vote in note.votes] or [note.model]),
        assembly=ASSEMBLY,
        evidence=find_check(rubric, answer_id.criterion).evidence_digest,
        route=note.route,
        sample=answer_id.sample,
        reason=note.reason,
        cost_usd=note.cost_usd if asked else None,
        latency_ms=note.latency_ms if asked else None,
        members=members,
    )


def _list_members(note: JudgeNote) -> tuple[MemberAnswer, ...]:
    """List the answer of each model of a jury from its votes; none where one of them has no value."""
    if any(vote.raw is None for vote in note.votes):
        return ()
    by_model: dict[str, list[JudgeVote]] = {}
    for vote in note.votes:
        by_model.setdefault(vote.model, []).append(vote)
    members: list[MemberAnswer] = []
    for model, votes in by_model.items():
        raw = min(1.0, fmean([vote.raw for vote in votes if vote.raw is not None]))
        times = [vote.latency_ms for vote in votes if vote.latency_ms is not None]
        if all(vote.cache == "miss" for vote in votes):
            cost, longest = sum_costs([vote.cost_usd for vote in votes]), max(times, default=None)
            members.append(MemberAnswer(model=model, raw=raw, cost_usd=cost, latency_ms=longest))
        else:
            members.append(MemberAnswer(model=model, raw=raw))
    return tuple(members) if len(members) > 1 else ()
