"""Verdicts of judges that a rubric does not take: it requires calibration, and they are not calibrated."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import JsonValue

from service.core.calibrate import Status
from service.core.judged import Calibration, Judged, JudgeNote
from service.core.outcome import Finding, Pointer, Skipped


@dataclass(frozen=True, slots=True)
class Withheld(Skipped):
    """A judge's verdict that does not count. `raw` is the judge's own value in [0, 1]."""

    raw: float = field(kw_only=True)
    calibration: Calibration = field(kw_only=True)
    judge: JudgeNote = field(kw_only=True)
    evidence: JsonValue = field(default=None, kw_only=True)
    """What code had found before, as the judge was shown it."""


_WHY: dict[Status, str] = {
    "stale": "its fit is too old, or was made with another snapshot of the model",
    "mismatched": "there are only fits of another version of it or another model",
    "out_of_domain": "its value, or the stratum of the trace, is none that was fitted",
    "uncalibrated": "there is no fit that may be used",
}


def withheld(found: Judged, at: Pointer) -> Judged | Withheld:
    """A verdict that is calibrated as it is; of another one what can be told of it, with a finding that says why.

    `at` is the place it is about. Its own findings stay.
    """
    status = found.calibration.status
    if status == "calibrated":
        return found
    reason = f"{found.judge.id} said {found.judge.label}, which does not count uncalibrated: {_WHY[status]}"
    return Withheld(
        "uncalibrated",
        reason,
        (*found.findings, Finding("not_calibrated", reason, at)),
        raw=found.raw,
        calibration=found.calibration,
        judge=found.judge,
        evidence=found.evidence,
    )
