"""Judgements that do not count: their calibration does not apply, is required and lacking, or leaves them to a human."""

from __future__ import annotations

from dataclasses import field, replace

from pydantic import JsonValue

from service.core.judging.fits import Status
from service.core.judging.judged_outcomes import EarlierJudgement, JudgeCalibration, JudgedScore
from service.core.judging.notes import JudgeNote
from service.core.models.light import light
from service.core.outcome import Finding, Pointer, SkipCause, Skipped


@light
class WithheldJudgement(Skipped):
    """A judgement that does not count, and is open. `raw` is the judge's own value in [0, 1]."""

    raw: float = field(kw_only=True)
    estimate: float | None = field(default=None, kw_only=True)
    """What its fit makes of that, where one applies."""
    calibration: JudgeCalibration = field(kw_only=True)
    judge: JudgeNote = field(kw_only=True)
    evidence: JsonValue = field(default=None, kw_only=True)
    """What code had found before, as the judge was shown it."""
    earlier: tuple[EarlierJudgement, ...] = field(default=(), kw_only=True)
    """Of a cascade, what was said before, first to last."""


_WHY: dict[Status, str] = {
    "stale": "its fit is too old, or was made with another snapshot of the model",
    "mismatched": "there are only fits of another version of it, another model or another way to it",
    "out_of_domain": "its value, or the stratum of the trace, is none that was fitted",
    "uncalibrated": "there is no fit that may be used",
}


def withhold(
    found: JudgedScore, at: Pointer, *, required: bool, guarantee: float | None = None
) -> JudgedScore | WithheldJudgement:
    """The judgement where it counts, else what can be told of it, with a finding that says why not.

    One that a fit calibrates counts, unless it lies in the band that the fit leaves to humans. One whose fit does not apply
    never does: a calibration that became invalid is no better than a valid one. One without any fit counts where calibration
    is not `required`. Where a `guarantee` is asked for, one counts only where its fit promises that share, or more, of judgements
    that come to this judge as this one did; where none is, no promise is told that was
    tested on others. `at` is the place it is about. Its own findings stay.
    """
    found = found if guarantee is not None else _drop_untested(found)
    calibration, judge = found.calibration, found.judge
    if guarantee is not None and (lacking := _find_lacking(found, guarantee)):
        reason = f"{judge.id} said {judge.label}, which does not count: {lacking}"
        return _build_withheld(found, "uncalibrated", Finding("not_guaranteed", reason, at), estimate=None)
    if calibration.status == "calibrated":
        if not calibration.ask_a_human:
            return found
        reason = f"{judge.id} said {judge.label}; at {found.value:.2f} its fit {calibration.fit} leaves it to a human"
        return _build_withheld(found, "human", Finding("ask_a_human", reason, at), estimate=found.value)
    if calibration.status == "uncalibrated" and calibration.fit is None and not required:
        return found
    reason = f"{judge.id} said {judge.label}, which does not count uncalibrated: {_WHY[calibration.status]}"
    return _build_withheld(found, "uncalibrated", Finding("not_calibrated", reason, at), estimate=None)


def _find_lacking(found: JudgedScore, guarantee: float) -> str:
    """Why nothing, or too little, is promised of a judgement; empty where enough is."""
    calibration, promise = found.calibration, found.calibration.guarantee
    if calibration.status != "calibrated":
        return _WHY[calibration.status]
    if promise is None or promise.share < guarantee:
        told = "nothing" if promise is None else f"{promise.share:g}"
        return f"{guarantee:g} is to be promised of it, and its fit promises {told}"
    if promise.after != _find_fit_before(found):
        return "what its fit promises was tested where other judges, or other fits of them, decided before"
    return ""


def _find_fit_before(found: JudgedScore) -> str | None:
    return found.earlier[-1].calibration.fit if found.earlier else None


def _drop_untested(found: JudgedScore) -> JudgedScore:
    promise = found.calibration.guarantee
    if promise is None or promise.after == _find_fit_before(found):
        return found
    return replace(found, calibration=replace(found.calibration, guarantee=None))


def _build_withheld(found: JudgedScore, cause: SkipCause, why: Finding, *, estimate: float | None) -> WithheldJudgement:
    return WithheldJudgement(
        cause,
        why.message,
        (*found.findings, why),
        raw=found.raw,
        estimate=estimate,
        calibration=found.calibration,
        judge=found.judge,
        evidence=found.evidence,
        earlier=found.earlier,
    )
