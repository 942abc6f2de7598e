"""What a check says about one thing: scored, skipped or errored. "Could not tell" is never NaN, None or 0.0."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pydantic import JsonValue

from service.core.models.light import light

SkipCause = Literal[
    "not_applicable", "blocked", "not_captured", "out_of_scope", "unread", "not_asked", "too_long", "uncalibrated",
    "human",
]  # fmt: skip
"""Why an outcome was skipped.

not_applicable: there is nothing to score; score and coverage ignore it. blocked: a blocking check failed first; it counts as 0.
All others lower coverage but not the score. not_captured: the sender left it out. out_of_scope: it needs a judge, and the
caller turned judges off. unread: it is there, but in a form that could not be read. not_asked: it needs a judge's answer, and
there is none. too_long: it exceeds a documented limit. uncalibrated: a judge answered, but its fit does not apply, or there is
none and one is required. human: a judge answered, and its fit leaves the decision to a human."""

OPEN_CAUSES = frozenset({"unread", "not_asked", "too_long", "uncalibrated", "human"})
"""The causes that are always open. `not_captured` and `out_of_scope` are open only if the outcome says so."""

Pointer = str
"""An RFC 6901 JSON pointer into the normalised trace (`/steps/0/call/arguments/amount`) or, below `/expected`, into
the expectation."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something a check noticed, and where. `code` is stable and for machines, `message` is for people."""

    code: str
    message: str
    path: Pointer


@light
class Bounds:
    """The range of a partly open outcome, each end in [0, 1]: with its open parts at 0 and at 1."""

    low: float
    high: float


ANYTHING = Bounds(0.0, 1.0)
"""The bounds of a fully open outcome."""


@light
class OpenPart:
    """An undecided part of an outcome, and why. `kind` tells whether it errored or was skipped."""

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
        """What scores and verdicts count: for outcomes of code, the value."""
        return self.value

    def add_findings(self, *findings: Finding) -> Scored:
        """Return the same score with more findings."""
        return Scored(self.value, self.passed, (*self.findings, *findings))


@light
class CriticRow:
    """How a published system scored one field of one call: whether it matches (None: not checked) and its weighted score."""

    name: str
    match: bool | None
    score: float
    weight: float


@light
class MethodScore(Scored):
    """A published system's own number: `raw` as that system computes it, bugs included; `value` is `raw` clamped to [0, 1]."""

    raw: float = 0.0
    rows: tuple[CriticRow, ...] = ()
    """The number for each field, if the system reports that."""


@light
class Skipped:
    """Not scored, without a fault."""

    kind: Literal["skipped"] = field(default="skipped", init=False)
    cause: SkipCause
    reason: str
    findings: tuple[Finding, ...] = ()
    open: bool = False
    """Whether an answer could still change it: at worst it counts as 0 and not passed, at best as 1 and passed."""
    bounds: Bounds | None = None
    """Its range if code has decided a part of it; None: if open, all of [0, 1]."""

    def __post_init__(self) -> None:
        if self.cause in OPEN_CAUSES:
            object.__setattr__(self, "open", True)


@light
class Errored:
    """Not scored because of a fault: a provider, a tool schema that does not compile. Always open."""

    kind: Literal["errored"] = field(default="errored", init=False)
    cause: str
    reason: str
    bounds: Bounds | None = None
    """As in `Skipped`."""


Outcome = Scored | Skipped | Errored

PERFECT = Scored(1.0, True)


@light
class PartlyOpenScore(Scored):
    """A score that may have undecided parts. If it has, it has already failed, and `value` covers the decided parts."""

    bounds: Bounds | None = field(default=None, kw_only=True)
    """The range that the open parts leave; None if no part is open."""
    open_parts: tuple[OpenPart, ...] = field(default=(), kw_only=True)


def build_failure(value: float, *findings: Finding) -> Scored:
    """Build a score that did not pass, with its findings."""
    return Scored(value, False, findings)


def is_open(outcome: Outcome) -> bool:
    """Whether the whole outcome is undecided and an answer could still change it."""
    return isinstance(outcome, Errored) or (isinstance(outcome, Skipped) and outcome.open)


def build_open_part(outcome: Skipped | Errored) -> OpenPart:
    """Build the open part that says why an outcome is open."""
    return OpenPart(outcome.kind, outcome.cause, outcome.reason)


def list_open_parts(outcome: Outcome) -> tuple[OpenPart, ...]:
    """List the undecided parts of an outcome; an open outcome is one such part."""
    if isinstance(outcome, PartlyOpenScore):
        return outcome.open_parts
    return () if isinstance(outcome, Scored) or not is_open(outcome) else (build_open_part(outcome),)


class OpenValue(NamedTuple):
    """A value that an expectation describes in words, so that only a judge can say whether it fits."""

    words: str
    value: JsonValue
    place: Pointer
    weight: float = 1.0
    skipped: Skipped | None = None
    """Why it could not be compared, if no judge can help; None if a judge can."""


@light
class PartialOutcome:
    """An outcome of which code has decided a part and left the rest open."""

    open: tuple[OpenValue, ...]
    """At least one."""
    weight: float = 0.0
    """The weight of the decided part."""
    gained: float = 0.0
    """How much of that weight it scored."""
    passed: bool = True
    """Whether the whole decided part passed."""
    findings: tuple[Finding, ...] = ()
    ban_finding: Finding | None = None
    """For a ban: the finding if the words do fit. None if they should fit."""


def decide_without_judge(outcome: Outcome | PartialOutcome) -> Outcome:
    """Return the outcome that stands without a judge: a failure stays, anything else is open."""
    if not isinstance(outcome, PartialOutcome):
        return outcome
    if not outcome.passed:
        value = outcome.gained / outcome.weight if outcome.weight else 1.0
        return Scored(min(1.0, value), False, outcome.findings)
    first = outcome.open[0]
    return first.skipped or Skipped("not_asked", f"needs a judge: whether it is {first.words}", outcome.findings)
