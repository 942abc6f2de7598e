"""Replace the questions that outcomes wait for by judges' answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from service.core.checks import Subject
from service.core.grounding.origins import GroundedSkip
from service.core.judging.fits.fit import Fit
from service.core.judging.judged_outcomes import JudgedScore, complete_outcome, find_judged_place, judge_ask, leave_open
from service.core.judging.judges import Ask
from service.core.judging.notes import Vote
from service.core.models.light import light
from service.core.outcome import Outcome, Skipped
from service.core.plan import CriterionPlan, PendingOutcome, Plan
from service.core.report import AppliedJudgeMode
from service.core.rubric import CompiledCriterion

Answer = Outcome | tuple[Vote, ...]
"""The votes on a question, or an outcome in their place."""

Replies = Mapping[str, Answer]
"""Answers by `Ask.key`."""

JUDGES_OFF = "judges are off"
NO_JUDGE = "no judge is set up"
NO_REPLY = "no judge has answered this"


SubjectResult = tuple[Subject, Outcome]
Row = tuple[CompiledCriterion, Sequence[SubjectResult]]
"""A criterion and its outcomes."""


@light
class JudgeAnswers:
    """Judges' answers to a plan's questions, and what unanswered questions resolve to."""

    replies: Replies
    asking: AppliedJudgeMode
    plan: Plan
    fits: Collection[Fit]
    stratum: str | None

    @property
    def silence(self) -> str:
        """Why a question has no answer."""
        return {"off": JUDGES_OFF, "none": NO_JUDGE}.get(self.asking, NO_REPLY)

    def resolve(self, ask: Ask) -> Outcome:
        """Return the outcome of a question."""
        if self.asking == "off":
            return _leave_unasked(ask)
        answer = self.replies.get(ask.key)
        if answer is None:
            return Skipped("not_asked", self.silence, ask.findings)
        if not isinstance(answer, tuple):
            return answer
        at = find_judged_place(ask, self.plan.trace)
        found = judge_ask(ask, answer, at, self.fits, stratum=self.stratum)
        if not isinstance(found, JudgedScore):
            return found
        return leave_open(found, at, required=self.plan.rubric.require_calibration, guarantee=ask.guarantee)


def _leave_unasked(ask: Ask) -> Skipped:
    """Return the outcome of a question when judges are off.

    It is still open if the expectation asks it in words, if code suspects something, or if code could not look at everything.
    """
    if ask.gap is not None:
        return ask.gap
    if ask.words or ask.findings:
        return GroundedSkip("out_of_scope", JUDGES_OFF, ask.findings, open=True, grounding=ask.grounding or ())
    return GroundedSkip("out_of_scope", JUDGES_OFF, grounding=ask.grounding) if ask.grounding else OUT_OF_SCOPE


OUT_OF_SCOPE = Skipped("out_of_scope", JUDGES_OFF)


def resolve_outcomes(criterion_plan: CriterionPlan, answers: JudgeAnswers) -> Sequence[SubjectResult]:
    """Return a criterion's outcomes with every question resolved."""
    outcomes = criterion_plan.outcomes
    if criterion_plan.open:
        outcomes = [(subject, _resolve_outcome(found, answers)) for subject, found in outcomes]
    criterion = criterion_plan.criterion
    if criterion_plan.blocked and criterion.judged and answers.asking == "off":
        outcomes = [
            (subject, OUT_OF_SCOPE if type(found) is Skipped and found.cause == "blocked" else found)
            for subject, found in outcomes
        ]
    if criterion.requires_outcome:  # what was left out is open then
        left_out = ("not_captured", "out_of_scope")
        outcomes = [
            (subject, replace(found, open=True) if isinstance(found, Skipped) and found.cause in left_out else found)
            for subject, found in outcomes
        ]
    return outcomes  # pyright: ignore[reportReturnType] (no question is left among them)


def _resolve_outcome(found: Outcome | Ask | PendingOutcome, answers: JudgeAnswers) -> Outcome:
    if isinstance(found, PendingOutcome):
        parts = [answers.resolve(part) if isinstance(part, Ask) else part for part in found.parts]
        return complete_outcome(found, parts)
    return answers.resolve(found) if isinstance(found, Ask) else found
