"""What a check says of one thing it looked at: scored, skipped or errored. Never NaN, None or 0.0 for "could not tell"."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

SkipCause = Literal["not_applicable", "blocked", "not_captured", "too_long", "not_asked", "uncalibrated"]
"""not_applicable: nothing to score here, leaves score and coverage alone. blocked: a blocking check failed first, counts
as 0. not_captured (the trace lacks the content), too_long (over a documented cap), not_asked (a judge's answer was wanted
and is not there) and uncalibrated (it is there, and the rubric does not take it without calibration): lower coverage, never
the score."""

Pointer = str
"""An RFC 6901 JSON pointer into the normalised trace (`/steps/0/call/arguments/amount`) or, below `/expected`, into
the expectation."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something a check noticed, and where. `code` is stable and meant for machines, `message` for people."""

    code: str
    message: str
    path: Pointer


@dataclass(frozen=True, slots=True)
class Scored:
    """A measured value in [0, 1]. `passed` is the check's own verdict: a similarity of 0.85 may pass or not."""

    kind: Literal["scored"] = field(default="scored", init=False)
    value: float
    passed: bool
    findings: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        if not 0.0 <= self.value <= 1.0:
            raise ValueError(f"a score lies in [0, 1], not {self.value!r}")

    def noting(self, *findings: Finding) -> Scored:
        """The same score with more findings."""
        return Scored(self.value, self.passed, (*self.findings, *findings))


@dataclass(frozen=True, slots=True)
class Carried(Scored):
    """A published system's own number: `raw` as that system gives it, bug included; `value` is `raw` clamped to [0, 1]."""

    raw: float = 0.0


@dataclass(frozen=True, slots=True)
class Skipped:
    """Not scored, for a cause that is nobody's fault."""

    kind: Literal["skipped"] = field(default="skipped", init=False)
    cause: SkipCause
    reason: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Errored:
    """Not scored because something broke: a provider, a tool schema that does not compile. Lowers coverage only."""

    kind: Literal["errored"] = field(default="errored", init=False)
    cause: str
    reason: str


Outcome = Scored | Skipped | Errored

PERFECT = Scored(1.0, True)


def failed(value: float, *findings: Finding) -> Scored:
    """A value that did not pass, with the reasons."""
    return Scored(value, False, findings)
