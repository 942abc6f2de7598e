"""Turn judges' replies into outcomes: combine votes, apply fits, complete what code began, leave open what does not count."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field, replace
from math import fsum
from operator import not_
from typing import Annotated, NamedTuple

from pydantic import Field, JsonValue

from service.core.json.values import format_value
from service.core.judging.fits.fit import AppliedFit, Fit, JudgeCalibration, Status, calibrate_value
from service.core.judging.focus import list_texts
from service.core.judging.grades import CANNOT_TELL
from service.core.judging.judges import Ask, Judge
from service.core.judging.notes import JudgeNote, JudgeReply, Vote, build_note, build_remarks
from service.core.judging.replies import Judgement
from service.core.judging.voting import build_binding, combine_values, grade_votes, is_decided, list_counted, passes
from service.core.models.light import light
from service.core.outcome import (
    Bounds,
    Errored,
    Finding,
    Outcome,
    PartialOutcome,
    PartlyOpenScore,
    Pointer,
    Scored,
    Skipped,
    build_open_part,
)
from service.core.trace import Trace


class PendingOutcome(NamedTuple):
    """An outcome that code started, and the questions that complete it."""

    partial: PartialOutcome
    parts: tuple[Ask | Skipped, ...]
    """For each open part, its question or why there is none."""

    @property
    def asks(self) -> tuple[Ask, ...]:
        """The questions."""
        return tuple([part for part in self.parts if isinstance(part, Ask)])


@light
class JudgedScore(Scored):
    """A judge's verdict: `raw` is its graded value in [0, 1]; `value` is the calibrated one, or else the value of its label."""

    raw: float = field(kw_only=True)
    calibration: JudgeCalibration = field(kw_only=True)
    judge: JudgeNote = field(kw_only=True)
    evidence: JsonValue = field(default=None, kw_only=True)
    """What code found first, as the judge saw it."""

    @property
    def decision(self) -> float:
        """1 if it passed, else 0: the label, the judge's own value and the probability are only shown."""
        return float(self.passed)


def judge_ask(
    ask: Ask, votes: Sequence[Vote], at: Pointer, fits: Collection[Fit] = (), *, stratum: str | None = None
) -> Outcome:
    """Return the outcome of a question about the place `at`.

    A missing vote is open, and so is whatever a vote leaves open: a judgement needs that neither can change the decision.

    `fits`: a fit for exactly this judge and these models maps the graded value to the value, and its threshold decides.
    `stratum`: the stratum of the trace, where it is known.
    """
    replies = [vote for vote in votes if isinstance(vote, JudgeReply)]
    missing = [vote for vote in votes if not isinstance(vote, JudgeReply)]
    ruling = _Ruling(ask, tuple([fit for fit in fits if fit.judge == ask.judge.id]), stratum)
    settled = bool(replies) and ruling.is_settled(replies, len(missing))
    if not replies or (missing and not settled):
        faults = [vote for vote in missing if isinstance(vote, Errored)]
        return next(iter([*faults, *missing]), Skipped("not_asked", "no judge has answered this"))
    verdicts = [reply for reply in replies if reply.has_verdict]
    if not verdicts or not settled:
        return _leave_unsure(ask, replies, at)
    verdicts = list_counted(ask.judge, verdicts)
    own, label = combine_values(ask.judge, [(one.judgement.label, one.judgement.value) for one in verdicts])
    applied = ruling.calibrate(replies, lambda one: (one.low.graded + one.high.graded) / 2)
    value = ruling.cap(applied.value if applied.calibration.status == "calibrated" else own)
    threshold = applied.calibration.threshold
    passed = passes(value, ask.judge.threshold if threshold is None else threshold)
    spokesman = next(reply for reply in verdicts if reply.judgement.label == label)
    reasons = _build_verdict_findings(ask.judge, spokesman.judgement, at, passed=passed)
    return JudgedScore(
        value=value,
        passed=passed,
        findings=(*ask.findings, *reasons, *build_remarks(replies, at)),
        raw=applied.raw,
        calibration=replace(applied.calibration, needs_human=ruling.leaves_open(applied, passed=passed)),
        judge=build_note(ask.judge, replies, spokesman),
        evidence=ask.evidence,
    )


class _Ruling(NamedTuple):
    """Decides a question by the judge's own threshold or by its fits."""

    ask: Ask
    fits: tuple[Fit, ...]
    """The fits of this judge."""
    stratum: str | None

    def cap(self, value: float) -> float:
        """Return the value, capped at the highest score that the evidence allows."""
        return value if self.ask.veto is None else min(value, self.ask.veto)

    def leaves_open(self, applied: AppliedFit, *, passed: bool) -> bool:
        """Whether the fit leaves the verdict to others: inside its band, or where it guarantees nothing for this side."""
        promise = applied.calibration.guarantee
        broken = promise is not None and not promise.accepts(applied.raw, passed=passed)
        return applied.calibration.needs_human or broken

    def calibrate(self, replies: Sequence[JudgeReply], take: Callable[[Judgement], float]) -> AppliedFit:
        """Apply the fits to the replies; `take` says how to count what they leave open."""
        raw, members = grade_votes(replies, take)
        binding = build_binding(self.ask, replies)
        return calibrate_value(self.fits, binding, self.ask.criterion, raw, members=members, stratum=self.stratum)

    def is_settled(self, replies: Sequence[JudgeReply], missing: int) -> bool:
        """Whether neither the missing votes, and those that a disagreement calls for, nor what replies leave open decide.

        Missing votes always do for a fitted judge: a fit is bound to every model that votes, and nobody knows which one would
        have answered.
        """
        judge = self.ask.judge
        if not any(fit.criterion == self.ask.criterion for fit in self.fits):
            most = 0 if judge.most_votes is None or not missing else judge.samples * max(1, len(judge.models))
            return is_decided(judge, replies, max(missing, most - len(replies)), self.ask.veto)
        if missing or all(reply.judgement.best is None for reply in replies):
            return not missing
        decisions: set[tuple[Status, bool, bool]] = set()
        worst = self.calibrate(replies, lambda one: one.low.graded)
        best = self.calibrate(replies, lambda one: one.high.graded)
        for applied in (worst, best):
            threshold = applied.calibration.threshold
            passed = threshold is not None and passes(self.cap(applied.value), threshold)
            decisions.add((applied.calibration.status, self.leaves_open(applied, passed=passed), passed))
        return len(decisions) == 1 and "out_of_domain" not in [status for status, *_ in decisions]


@light
class UnsureJudgement(Skipped):
    """The outcome of a judge that answered but left its question open."""

    judge: JudgeNote = field(kw_only=True)
    evidence: JsonValue = field(default=None, kw_only=True)
    """What code found first, as the judge saw it."""


def _leave_unsure(ask: Ask, replies: Sequence[JudgeReply], at: Pointer) -> Outcome:
    """Build the outcome of a question that the replies leave open. Judging only part of a text is the judge's fault."""
    unquoted = [sentence for reply in replies for sentence in reply.judgement.left_out]
    if unquoted:
        reason = f"no claim quotes anything of {len(set(unquoted))} sentences, such as {format_value(unquoted[0], 120)}"
        return Errored("invalid_judgement", reason)
    open_ones = [reply for reply in replies if reply.judgement.best is not None]
    spokesman = next(iter([reply for reply in open_ones if not reply.has_verdict] or open_ones))
    judgement = spokesman.judgement
    reason = f"{ask.judge.id} cannot tell" + (f": {judgement.reason}" if judgement.reason else "")
    findings = (*ask.findings, *build_remarks(replies, at), Finding(CANNOT_TELL, reason, at))
    note = build_note(ask.judge, replies, spokesman)
    return UnsureJudgement("human", reason, findings, judge=note, evidence=ask.evidence)


@light
class MixedScore(PartlyOpenScore):
    """A score that code and judges decided together: `judges` are those that answered; each judged part counts 1 or 0."""

    judges: tuple[JudgeNote, ...] = field(kw_only=True)
    calibrations: tuple[Status, ...] = field(kw_only=True)
    """The calibration status of each judge's answer, in the same order."""
    certified: Annotated[int, Field(exclude_if=not_)] = field(default=0, kw_only=True)
    """How many of these answers have a certified fit."""
    code_passed: bool = field(kw_only=True)
    """Whether all that code decided passed."""


def complete_outcome(pending: PendingOutcome, answers: Sequence[Outcome]) -> Outcome:
    """Complete an outcome with the judges' answers about its open parts.

    A part that nobody decided leaves the whole open within bounds, unless a failure already decides it.
    """
    partial = pending.partial
    if partial.ban_finding is not None:
        answers = [_invert_ban(answer, partial.ban_finding) for answer in answers]
    if len(answers) == 1 and not (partial.weight or partial.findings):
        return answers[0]
    parts = list(zip([part.weight for part in partial.open], answers, strict=True))
    scored = [(weight, one) for weight, one in parts if isinstance(one, Scored)]
    unknown = [(weight, one) for weight, one in parts if not isinstance(one, Scored)]
    passed = partial.passed and all(one.passed for _, one in scored)
    known = fsum([partial.weight, *[weight for weight, _ in scored]])
    gained = fsum([partial.gained, *[weight * one.decision for weight, one in scored]])
    findings = (*partial.findings, *[finding for _, one in scored for finding in one.findings])
    left = fsum([weight for weight, _ in unknown])
    whole = known + left
    bounds = Bounds(_compute_ratio(gained, whole), _compute_ratio(gained + left, whole)) if unknown else None
    if unknown and passed:  # open, with the reason of its first open part
        first = unknown[0][1]
        own = {} if isinstance(first, Errored) else {"findings": (*findings, *first.findings)}
        return replace(first, bounds=bounds, **own)
    judged = [one for _, one in scored if isinstance(one, JudgedScore)]
    return MixedScore(
        _compute_ratio(gained, known),
        passed,
        findings,
        judges=tuple([one.judge for one in judged]),
        calibrations=tuple([one.calibration.status for one in judged]),
        certified=sum(one.calibration.certified for one in judged),
        code_passed=partial.passed,
        bounds=bounds,
        open_parts=tuple([build_open_part(one) for _, one in unknown]),
    )


def _compute_ratio(part: float, whole: float) -> float:
    return min(1.0, part / whole) if whole else 1.0


def _invert_ban(answer: Outcome, ban: Finding) -> Outcome:
    """Invert the outcome of a ban: text that fits its words is wrong."""
    if not isinstance(answer, Scored):
        return answer
    if answer.passed:
        return replace(answer, value=0.0, passed=False, findings=(ban, *answer.findings))
    return replace(answer, value=1.0, passed=True, findings=())


def find_judged_place(ask: Ask, trace: Trace) -> Pointer:
    """Return the pointer to the place in the trace that a question is about."""
    if ask.place:
        return ask.place
    if ask.step is not None:
        return f"/steps/{ask.step}/call"
    texts = list_texts(trace, ask.turn)
    return texts[-1][0] if texts else "/messages"


def _build_verdict_findings(judge: Judge, judgement: Judgement, at: Pointer, *, passed: bool) -> Iterable[Finding]:
    """Yield why it did not pass: each claim that falls short, else the verdict as a whole."""
    labelled = [claim for claim in judgement.claims if claim.label != CANNOT_TELL]
    short = [claim for claim in labelled if judge.scale[claim.label].value < judge.threshold]
    for claim in short:
        yield Finding(claim.label, f'"{claim.quote}": {claim.reason}', claim.path or at)
    if not passed and not short:
        yield Finding(judgement.label, judgement.reason or judgement.label, at)


@light
class OpenJudgement(Skipped):
    """A judgement that does not count and stays open. `raw` is the judge's graded value in [0, 1]."""

    raw: float = field(kw_only=True)
    estimate: float | None = field(default=None, kw_only=True)
    """The calibrated value, where a fit applies."""
    calibration: JudgeCalibration = field(kw_only=True)
    judge: JudgeNote = field(kw_only=True)
    evidence: JsonValue = field(default=None, kw_only=True)
    """What code found first, as the judge saw it."""


_WHY: dict[Status, str] = {
    "stale": "its fit is too old, or was made with another snapshot of the model",
    "mismatched": "the installed fits are for another version of it, another model or another route to it",
    "out_of_domain": "its value, or the stratum of the trace, is none that was fitted",
    "uncalibrated": "there is no fit that may be used",
}


def leave_open(
    score: JudgedScore, at: Pointer, *, required: bool, guarantee: float | None = None
) -> JudgedScore | OpenJudgement:
    """Return the judgement if it counts, else an open one with a finding that says why.

    A calibrated judgement counts unless it lies in the band that its fit leaves to humans. One whose fit does not apply
    never counts: a judge must not gain from a calibration that became invalid. One without any fit counts
    unless calibration is `required`. If a `guarantee` is required, a judgement counts only where its fit guarantees at
    least that share. `at` is the place it is about. The judgement keeps its own findings.
    """
    calibration, judge = score.calibration, score.judge
    said, estimate, cause = f"{judge.id} said {judge.label}", None, "uncalibrated"
    if guarantee is not None and (lacking := _find_lacking(calibration, guarantee)):
        why = Finding("not_guaranteed", f"{said}, which does not count: {lacking}", at)
    elif calibration.status == "calibrated":
        if not calibration.needs_human:
            return score
        estimate, cause = score.value, "human"
        why = Finding("needs_human", f"{said}; at {estimate:.2f} its fit {calibration.fit} asks for a human", at)
    elif calibration.status == "uncalibrated" and calibration.fit is None and not required:
        return score
    else:
        reason = f"{said}, but this does not count: {_WHY[calibration.status]}"
        why = Finding("not_calibrated", reason, at)
    return OpenJudgement(
        cause,
        why.message,
        (*score.findings, why),
        raw=score.raw,
        estimate=estimate,
        calibration=calibration,
        judge=judge,
        evidence=score.evidence,
    )


def _find_lacking(calibration: JudgeCalibration, guarantee: float) -> str:
    """Return why the guarantee of a judgement is missing or too low; empty if it suffices."""
    if calibration.status != "calibrated":
        return _WHY[calibration.status]
    promise = calibration.guarantee
    if promise is None or promise.share < guarantee:
        promised = "nothing" if promise is None else f"{promise.share:g}"
        return f"{guarantee:g} is to be promised of it, and its fit promises {promised}"
    return ""
