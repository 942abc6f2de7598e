"""Replies become outcomes: votes are combined, and what each cost is kept beside the value."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field, replace
from math import fsum
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.values import format_value
from service.core.judging.fits import AppliedFit, Fit, Guarantee, Status, calibrate_value
from service.core.judging.focus import list_texts
from service.core.judging.grades import CANNOT_TELL
from service.core.judging.judges import Ask, Judge
from service.core.judging.notes import JudgeNote, JudgeReply, Vote, build_note, build_remarks
from service.core.judging.replies import Judgement
from service.core.judging.voting import (
    build_binding,
    combine_values,
    grade_votes,
    is_decided,
    list_counted,
    passes,
    take_best,
    take_middle,
    take_worst,
)
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
    """An outcome that code has begun, and the questions whose replies complete it."""

    partial: PartialOutcome
    parts: tuple[Ask | Skipped, ...]
    """For each part that is open its question, or why there is none."""

    @property
    def asks(self) -> tuple[Ask, ...]:
        """The questions."""
        return tuple([part for part in self.parts if isinstance(part, Ask)])


@light
class JudgeCalibration:
    """Whether the value is a measured probability that a human would pass the item.

    calibrated: it is, by the fit named. stale: that fit is too old, or was made with another snapshot of the model.
    mismatched: there are only fits of another version of the judge or another model. out_of_domain: the raw value, or the
    stratum that the request names, is none that was fitted. uncalibrated: there is no fit that may be used. All but the
    first leave the judge's own value as it is.
    """

    status: Status
    fit: str | None = None
    interval: tuple[float, float] | None = None
    """What the probability may as well be, where the method says so."""
    threshold: float | None = None
    """The least value that passes, chosen with the fit; None where the judge's own holds."""
    ask_a_human: bool = False
    """Whether the value lies where the fit says that it should not decide."""
    guarantee: Guarantee | None = None
    """What the fit promises of the verdicts that it accepts."""


@light
class EarlierJudgement:
    """What a judge said that was asked before, and whose fit left the verdict to the next."""

    judge: JudgeNote
    raw: float
    value: float
    calibration: JudgeCalibration
    fingerprint: str
    """Of the very judge."""


@light
class JudgedScore(Scored):
    """A judge's verdict: `raw` is its graded value in [0, 1], `value` what a fit makes of that, or else what the menu says."""

    raw: float = field(kw_only=True)
    calibration: JudgeCalibration = field(kw_only=True)
    judge: JudgeNote = field(kw_only=True)
    evidence: JsonValue = field(default=None, kw_only=True)
    """What code had found before, as the judge was shown it."""
    earlier: tuple[EarlierJudgement, ...] = field(default=(), kw_only=True)
    """Of a cascade, what was said before, first to last."""

    @property
    def decision(self) -> float:
        """1 where it passed, 0 where not: how sure the judge is moves the score, never the verdict."""
        return float(self.passed)


def judge_ask(
    ask: Ask, votes: Sequence[Vote], at: Pointer, fits: Collection[Fit] = (), *, stratum: str | None = None
) -> Outcome:
    """The outcome of a question. `at` is the place it is about.

    A vote that is missing is open, and so is what a vote leaves open: there is a judgement only where neither could turn the
    decision.

    `fits`: where one was made for this very judge and these models, the value is what it makes of the graded one, and its
    threshold decides. `stratum`: that of the trace, where it is known.
    """
    replies = [vote for vote in votes if isinstance(vote, JudgeReply)]
    missing = [vote for vote in votes if not isinstance(vote, JudgeReply)]
    ruling = _Ruling(ask, tuple([fit for fit in fits if fit.judge == ask.judge.id]), stratum)
    if not replies or (missing and not ruling.is_sure(replies, _count_missing(ask.judge, votes))):
        return _explain_missing(missing)
    told = [reply for reply in replies if reply.has_verdict]
    if not told or not (missing or ruling.is_settled(replies)):
        return _leave_unsure(ask, replies, at)
    told = list_counted(ask.judge, told)
    own, label = combine_values(ask.judge, [(one.judgement.label, one.judgement.value) for one in told])
    found = ruling.calibrate(replies, take_middle)
    value = ruling.cap(found.value if found.status == "calibrated" else own)
    passed = passes(value, ask.judge.threshold if found.threshold is None else found.threshold)
    spokesman = next(reply for reply in told if reply.judgement.label == label)
    return JudgedScore(
        value=value,
        passed=passed,
        findings=(
            *ask.findings,
            *_build_verdict_findings(ask.judge, spokesman.judgement, at, passed=passed),
            *build_remarks(replies, at),
        ),
        raw=found.raw,
        calibration=JudgeCalibration(
            found.status,
            found.fit,
            found.interval,
            found.threshold,
            ruling.leaves_open(found, passed=passed),
            found.guarantee,
        ),
        judge=build_note(ask.judge, replies, spokesman),
        evidence=ask.evidence,
    )


def build_earlier(ask: Ask, votes: Sequence[Vote], found: JudgedScore) -> EarlierJudgement:
    """What a judge said before the next one was asked."""
    replies = [vote for vote in votes if isinstance(vote, JudgeReply)]
    fingerprint = build_binding(ask, replies).fingerprint
    return EarlierJudgement(found.judge, found.raw, found.value, found.calibration, fingerprint)


class _Ruling(NamedTuple):
    """What decides a question: the judge's own threshold, or fits."""

    ask: Ask
    fits: tuple[Fit, ...]
    """Those of the judge."""
    stratum: str | None

    @property
    def fitted(self) -> bool:
        """Whether a fit exists for this judge and criterion, of whatever models."""
        return any(fit.criterion == self.ask.criterion for fit in self.fits)

    def cap(self, value: float) -> float:
        """The value, or the most that the evidence leaves of it."""
        return value if self.ask.veto is None else min(value, self.ask.veto)

    def leaves_open(self, found: AppliedFit, *, passed: bool) -> bool:
        """Whether the fit leaves the verdict to others: in its band, and where it promises nothing of this side."""
        promise = found.guarantee
        return found.abstain or (promise is not None and not promise.accepts(found.raw, passed=passed))

    def calibrate(self, replies: Sequence[JudgeReply], take: Callable[[Judgement], float]) -> AppliedFit:
        """What fits make of the replies, with what is open taken so."""
        raw, members = grade_votes(replies, take)
        binding = build_binding(self.ask, replies)
        return calibrate_value(self.fits, binding, self.ask.criterion, raw, members=members, stratum=self.stratum)

    def is_sure(self, replies: Sequence[JudgeReply], missing: int) -> bool:
        """Whether the judge decides the same whatever the missing votes were.

        Where the judge has been fitted it is not: a fit is bound to all who vote, and nobody knows who did not.
        """
        return not self.fitted and is_decided(self.ask.judge, replies, missing, self.ask.veto)

    def is_settled(self, replies: Sequence[JudgeReply]) -> bool:
        """Whether what is open in replies, of which none is missing, leaves the decision as it is."""
        if all(reply.judgement.best is None for reply in replies):
            return True
        if not self.fitted:
            return is_decided(self.ask.judge, replies, 0, self.ask.veto)
        worst, best = (self._decide(self.calibrate(replies, take)) for take in (take_worst, take_best))
        return worst == best and worst[0] != "out_of_domain"

    def _decide(self, found: AppliedFit) -> tuple[Status, bool, bool]:
        passed = found.threshold is not None and passes(self.cap(found.value), found.threshold)
        return found.status, self.leaves_open(found, passed=passed), passed


def _count_missing(judge: Judge, votes: Sequence[Vote]) -> int:
    """How many votes are missing, with those that would have been asked had the missing ones disagreed."""
    missing = sum(not isinstance(vote, JudgeReply) for vote in votes)
    if judge.most_votes is None:
        return missing
    return missing + max(0, judge.samples * max(1, len(judge.models)) - len(votes))


@light
class UnsureJudgement(Skipped):
    """A judge that answered, and left open what it was asked."""

    judge: JudgeNote = field(kw_only=True)
    evidence: JsonValue = field(default=None, kw_only=True)
    """What code had found before, as the judge was shown it."""


def _leave_unsure(ask: Ask, replies: Sequence[JudgeReply], at: Pointer) -> Outcome:
    """What a question comes to that replies leave open. A text that is judged in part alone is a fault of the judge."""
    unread = [sentence for reply in replies for sentence in reply.judgement.left_out]
    if unread:
        reason = f"no claim quotes anything of {len(set(unread))} sentences, such as {format_value(unread[0], 120)}"
        return Errored("invalid_judgement", reason)
    open_ones = [reply for reply in replies if reply.judgement.best is not None]
    spokesman = next(iter([reply for reply in open_ones if not reply.has_verdict] or open_ones))
    said = spokesman.judgement
    reason = f"{ask.judge.id} cannot tell" + (f": {said.reason}" if said.reason else "")
    return UnsureJudgement(
        "human",
        reason,
        (*ask.findings, *build_remarks(replies, at), Finding(CANNOT_TELL, reason, at)),
        judge=build_note(ask.judge, replies, spokesman),
        evidence=ask.evidence,
    )


@light
class MixedScore(PartlyOpenScore):
    """What code and judges decided together: `judges` are those that spoke."""

    judges: tuple[JudgeNote, ...] = field(kw_only=True)
    calibrations: tuple[Status, ...] = field(kw_only=True)
    """Whether what each of them said is calibrated."""
    decided: float = field(kw_only=True)
    """The value with 1 for each part that a judge passed and 0 for each that it did not."""

    @property
    def decision(self) -> float:
        """What counts for a verdict."""
        return self.decided


def complete_outcome(awaiting: PendingOutcome, answers: Sequence[Outcome]) -> Outcome:
    """The outcome with what judges say of its open parts.

    A part that nobody decided leaves the whole open within bounds, and a failure standing.
    """
    partial = awaiting.partial
    if partial.ban_finding is not None:
        answers = [_invert_ban(answer, partial.ban_finding) for answer in answers]
    if len(answers) == 1 and not (partial.weight or partial.findings):
        return answers[0]
    parts = list(zip([part.weight for part in partial.open], answers, strict=True))
    scored = [(weight, one) for weight, one in parts if isinstance(one, Scored)]
    unknown = [(weight, one) for weight, one in parts if not isinstance(one, Scored)]
    passed = partial.passed and all(one.passed for _, one in scored)
    known = fsum([partial.weight, *[weight for weight, _ in scored]])
    gained = fsum([partial.gained, *[weight * one.value for weight, one in scored]])
    decided = fsum([partial.gained, *[weight * one.decision for weight, one in scored]])
    findings = (*partial.findings, *[finding for _, one in scored for finding in one.findings])
    bounds = _compute_bounds(known, gained, decided, fsum([weight for weight, _ in unknown])) if unknown else None
    if unknown and passed:
        return _leave_open(unknown[0][1], bounds, findings)
    spoke = [one for _, one in scored if isinstance(one, JudgedScore)]
    return MixedScore(
        _compute_ratio(gained, known),
        passed,
        findings,
        judges=tuple([one.judge for one in spoke]),
        calibrations=tuple([one.calibration.status for one in spoke]),
        decided=_compute_ratio(decided, known),
        bounds=bounds,
        open_parts=tuple([build_open_part(one) for _, one in unknown]),
    )


def _compute_bounds(known: float, gained: float, decided: float, left: float) -> Bounds:
    whole = known + left
    return Bounds(
        _compute_ratio(gained, whole),
        _compute_ratio(gained + left, whole),
        _compute_ratio(decided, whole),
        _compute_ratio(decided + left, whole),
    )


def _compute_ratio(part: float, whole: float) -> float:
    return min(1.0, part / whole) if whole else 1.0


def _leave_open(outcome: Skipped | Errored, bounds: Bounds | None, findings: tuple[Finding, ...]) -> Outcome:
    """The whole, open for the reason that its first open part is."""
    if isinstance(outcome, Errored):
        return replace(outcome, bounds=bounds)
    return replace(outcome, findings=(*findings, *outcome.findings), bounds=bounds)


def _invert_ban(answer: Outcome, banned: Finding) -> Outcome:
    """The outcome of a ban: what fits its words is wrong."""
    if not isinstance(answer, Scored):
        return answer
    if answer.passed:
        return replace(answer, value=0.0, passed=False, findings=(banned, *answer.findings))
    return replace(answer, value=1.0, passed=True, findings=())


def find_place(ask: Ask, trace: Trace) -> Pointer:
    """The place in the trace that a question is about."""
    if ask.place:
        return ask.place
    if ask.step is not None:
        return f"/steps/{ask.step}/call"
    said = list_texts(trace, ask.turn)
    return said[-1][0] if said else "/messages"


def _explain_missing(votes: Sequence[Errored | Skipped]) -> Outcome:
    """Why votes are missing: a fault before anything else."""
    faults = [vote for vote in votes if isinstance(vote, Errored)]
    return next(iter([*faults, *votes]), Skipped("not_asked", "no judge has answered this"))


def _build_verdict_findings(judge: Judge, said: Judgement, at: Pointer, *, passed: bool) -> Iterable[Finding]:
    """Why it did not pass: each claim that falls short, else the verdict as a whole."""
    told = [claim for claim in said.claims if claim.label != CANNOT_TELL]
    short = [claim for claim in told if judge.scale[claim.label].value < judge.threshold]
    for claim in short:
        yield Finding(claim.label, f'"{claim.quote}": {claim.reason}', claim.path or at)
    if not passed and not short:
        yield Finding(said.label, said.reason or said.label, at)
