"""What a report says of the judges of one criterion, as predictions that are held against labels."""

from __future__ import annotations

from dataclasses import dataclass

from service.calibration.predictions import AnswerId, Prediction
from service.core.judging.judges import JudgeCheck
from service.core.judging.questions import ASSEMBLY
from service.core.judging.votes import JudgedScore
from service.core.judging.withheld import WithheldJudgement
from service.core.outcome import Errored, Skipped
from service.core.report import Report, ReportOutcome
from service.core.rubric import Criterion, Rubric
from service.errors import NOBODY_THERE, InputError


@dataclass(frozen=True, slots=True)
class UnansweredItem:
    """An item that no judge gave an answer for."""

    said: AnswerId
    reason: str
    nobody: str | None = None
    """The cause, where no question has to do with it: then it is so of all the others."""

    def __str__(self) -> str:
        return f"{self.said.id}: {self.reason}"


def find_criterion(rubric: Rubric, criterion: str) -> Criterion:
    """The criterion of that id, which a judge decides; InputError where there is none."""
    for one in rubric.criteria:
        if one.id == criterion and isinstance(one.check, JudgeCheck):
            return one
    known = [one.id for one in rubric.criteria if isinstance(one.check, JudgeCheck)]
    raise InputError.at(
        "/criterion", f"no judge of {rubric.id} decides {criterion!r}; known: {', '.join(known) or 'none'}"
    )


def find_judge(rubric: Rubric, criterion: str) -> str:
    """The id of the judge that decides a criterion; InputError where none does."""
    check = find_criterion(rubric, criterion).check
    return check.judge if isinstance(check, JudgeCheck) else ""


def read_prediction(said: AnswerId, report: Report, rubric: Rubric) -> Prediction | UnansweredItem:
    """What the judges of a rubric said of an item, by the report on it: of several questions, the lowest value."""
    judged = list_judged(report, said.criterion)
    if not judged:
        outcomes = list_outcomes(report, said.criterion)
        reasons = [outcome.reason for outcome in outcomes if isinstance(outcome, Skipped | Errored)]
        causes = [
            outcome.cause for outcome in outcomes if isinstance(outcome, Errored) and outcome.cause in NOBODY_THERE
        ]
        return UnansweredItem(said, reasons[0] if reasons else "the judge was not asked", next(iter(causes), None))
    return build_prediction(said, min(judged, key=lambda outcome: outcome.raw), rubric)


def list_judged(report: Report, criterion: str) -> list[JudgedScore | WithheldJudgement]:
    """What judges said in a report of one criterion, whether it counts there or not."""
    return [
        outcome for outcome in list_outcomes(report, criterion) if isinstance(outcome, JudgedScore | WithheldJudgement)
    ]


def list_outcomes(report: Report, criterion: str) -> list[ReportOutcome]:
    """The outcomes of one criterion in a report."""
    loose = [each.outcome for one in report.criteria if one.id == criterion for each in one.outcomes]
    return [*loose, *[step.outcomes[criterion] for step in report.steps if criterion in step.outcomes]]


def build_prediction(said: AnswerId, outcome: JudgedScore | WithheldJudgement, rubric: Rubric) -> Prediction:
    """A judge's outcome as a prediction. Of a jury, `model` is all of its models, as fits are bound to them."""
    judge = rubric.judges_by_id[outcome.judge.id]
    models = dict.fromkeys([vote.model for vote in outcome.judge.votes]) or [outcome.judge.model]
    return Prediction(
        id=said.id,
        criterion=said.criterion,
        raw=outcome.raw,
        judge=judge.id,
        judge_digest=judge.digest,
        model="+".join(models),
        assembly=ASSEMBLY,
        sample=said.sample,
        reason=outcome.judge.reason,
    )
