"""Leave open the judgements that do not count: their fit does not apply, is required but missing, or leaves them to a human."""

from __future__ import annotations

from dataclasses import field

from pydantic import JsonValue

from service.core.judging.fits.fit import Status
from service.core.judging.judged_outcomes import JudgeCalibration, JudgedScore
from service.core.judging.notes import JudgeNote
from service.core.models.light import light
from service.core.outcome import Finding, Pointer, SkipCause, Skipped


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
    if guarantee is not None and (lacking := _find_lacking(score, guarantee)):
        reason = f"{judge.id} said {judge.label}, which does not count: {lacking}"
        return _build_open(score, "uncalibrated", Finding("not_guaranteed", reason, at), estimate=None)
    if calibration.status == "calibrated":
        if not calibration.needs_human:
            return score
        reason = f"{judge.id} said {judge.label}; at {score.value:.2f} its fit {calibration.fit} asks for a human"
        return _build_open(score, "human", Finding("needs_human", reason, at), estimate=score.value)
    if calibration.status == "uncalibrated" and calibration.fit is None and not required:
        return score
    reason = f"{judge.id} said {judge.label}, but this does not count: {_WHY[calibration.status]}"
    return _build_open(score, "uncalibrated", Finding("not_calibrated", reason, at), estimate=None)


def _find_lacking(score: JudgedScore, guarantee: float) -> str:
    """Return why the guarantee of a judgement is missing or too low; empty if it suffices."""
    calibration, promise = score.calibration, score.calibration.guarantee
    if calibration.status != "calibrated":
        return _WHY[calibration.status]
    if promise is None or promise.share < guarantee:
        promised = "nothing" if promise is None else f"{promise.share:g}"
        return f"{guarantee:g} is to be promised of it, and its fit promises {promised}"
    return ""


def _build_open(score: JudgedScore, cause: SkipCause, why: Finding, *, estimate: float | None) -> OpenJudgement:
    return OpenJudgement(
        cause,
        why.message,
        (*score.findings, why),
        raw=score.raw,
        estimate=estimate,
        calibration=score.calibration,
        judge=score.judge,
        evidence=score.evidence,
    )
