"""What a check says of one thing it looked at: scored, skipped or errored. Never NaN, None or 0.0 for "could not tell"."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pydantic import JsonValue

from service.core.models.light import light

SkipCause = Literal[
    "not_applicable",
    "blocked",
    "not_captured",
    "out_of_scope",
    "unread",
    "not_asked",
    "too_long",
    "uncalibrated",
    "human",
]
"""not_applicable: nothing to score here; it leaves score and coverage alone. blocked: a blocking check failed first; it counts
as 0. All others lower coverage and never the score. not_captured: the sender left it out. out_of_scope: a judge would have to
say, and the caller said that none is asked. unread: it is there, in a form that could not be read. not_asked: a judge's answer
was wanted and is not there. too_long: over a documented cap. uncalibrated: a judge answered, and its calibration does not
apply or is required. human: a judge answered, and its calibration leaves that answer to a human."""

OPEN_CAUSES = frozenset({"unread", "not_asked", "too_long", "uncalibrated", "human"})
"""The causes that are always open. `not_captured` and `out_of_scope` are so where the outcome says it."""

Pointer = str
"""An RFC 6901 JSON pointer into the normalised trace (`/steps/0/call/arguments/amount`) or, below `/expected`, into
the expectation."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something a check noticed, and where. `code` is stable and meant for machines, `message` for people."""

    code: str
    message: str
    path: Pointer


@light
class Bounds:
    """What an outcome that is open in parts may come to, each number in [0, 1]: the open parts at 0, and at 1."""

    low: float
    high: float
    decided_low: float
    """As `low`, where what a judge scored counts 1 if it passed and 0 if not."""
    decided_high: float


ANYTHING = Bounds(0.0, 1.0, 0.0, 1.0)
"""The bounds of an outcome that is open as a whole."""


@light
class OpenPart:
    """A part of an outcome that nobody has decided, and why. `kind` tells a fault from a silence."""

    kind: Literal["skipped", "errored"]
    cause: str
    reason: str


@light
class Scored:
    """A measured value in [0, 1]. `passed` is the check's own verdict: a similarity of 0.85 may pass or not."""

    kind: Literal["scored"] = field(default="scored", init=False)
    value: float
    passed: bool
    findings: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        if not 0.0 <= self.value <= 1.0:
            raise ValueError(f"a score lies in [0, 1], not {self.value!r}")

    @property
    def decision(self) -> float:
        """What counts for a verdict: the value, for what code scored."""
        return self.value

    def add_findings(self, *findings: Finding) -> Scored:
        """The same score with more findings."""
        return Scored(self.value, self.passed, (*self.findings, *findings))


@light
class CriticRow:
    """What a published system made of one field of one call: whether it matches (None: it did not look), its weighted score."""

    name: str
    match: bool | None
    score: float
    weight: float


@light
class MethodScore(Scored):
    """A published system's own number: `raw` as that system gives it, bug included; `value` is `raw` clamped to [0, 1]."""

    raw: float = 0.0
    rows: tuple[CriticRow, ...] = ()
    """The number field by field, where the system reports it so."""


@light
class Skipped:
    """Not scored, for a cause that is nobody's fault."""

    kind: Literal["skipped"] = field(default="skipped", init=False)
    cause: SkipCause
    reason: str
    findings: tuple[Finding, ...] = ()
    open: bool = False
    """Whether an answer could still change what it counts for: 0 and not passed at worst, 1 and passed at best."""
    bounds: Bounds | None = None
    """Where code has decided a part of it: what the rest leaves. None: all of [0, 1], if it is open."""

    def __post_init__(self) -> None:
        if self.cause in OPEN_CAUSES:
            object.__setattr__(self, "open", True)


@light
class Errored:
    """Not scored because something broke: a provider, a tool schema that does not compile. Always open."""

    kind: Literal["errored"] = field(default="errored", init=False)
    cause: str
    reason: str
    bounds: Bounds | None = None
    """As that of `Skipped`."""


Outcome = Scored | Skipped | Errored

PERFECT = Scored(1.0, True)


@light
class PartlyOpenScore(Scored):
    """A score that has failed, whatever comes of parts of it that nobody has decided. `value` is that of the decided parts."""

    bounds: Bounds | None = field(default=None, kw_only=True)
    """What the open parts leave; None: none is open."""
    open_parts: tuple[OpenPart, ...] = field(default=(), kw_only=True)


def build_failure(value: float, *findings: Finding) -> Scored:
    """A value that did not pass, with the reasons."""
    return Scored(value, False, findings)


def is_open(outcome: Outcome) -> bool:
    """Whether the outcome as a whole is not decided, and an answer could still change what it counts for."""
    return isinstance(outcome, Errored) or (isinstance(outcome, Skipped) and outcome.open)


def build_open_part(outcome: Skipped | Errored) -> OpenPart:
    """Why an outcome is open."""
    return OpenPart(outcome.kind, outcome.cause, outcome.reason)


def list_open_parts(outcome: Outcome) -> tuple[OpenPart, ...]:
    """What of an outcome nobody has decided: all of it, or parts."""
    if isinstance(outcome, PartlyOpenScore):
        return outcome.open_parts
    return () if isinstance(outcome, Scored) or not is_open(outcome) else (build_open_part(outcome),)


class OpenValue(NamedTuple):
    """A value that words describe: whether it is what they ask for is for a judge to say."""

    words: str
    value: JsonValue
    place: Pointer
    weight: float = 1.0
    skipped: Skipped | None = None
    """Why it could not be compared, where no judge can help; None: one can."""


@light
class PartialOutcome:
    """What code has decided, and what it leaves open."""

    open: tuple[OpenValue, ...]
    """At least one."""
    weight: float = 0.0
    """What the decided part weighs."""
    gained: float = 0.0
    """How much of that weight it gained."""
    passed: bool = True
    """Whether all of the decided part passed."""
    findings: tuple[Finding, ...] = ()
    ban_finding: Finding | None = None
    """What is wrong where the words do fit; None where they should."""


def decide_without_judge(outcome: Outcome | PartialOutcome) -> Outcome:
    """The outcome as far as it goes without a judge: a failure stands, all else is not known."""
    if not isinstance(outcome, PartialOutcome):
        return outcome
    if not outcome.passed:
        value = outcome.gained / outcome.weight if outcome.weight else 1.0
        return Scored(min(1.0, value), False, outcome.findings)
    first = outcome.open[0]
    return first.skipped or Skipped("not_asked", f"no judge has said whether it is: {first.words}", outcome.findings)
