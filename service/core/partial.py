"""An outcome of which a judge must still say a part."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import JsonValue

from service.core.models.light import light
from service.core.outcome import Finding, Outcome, Pointer, Scored, Skipped


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
    banned: Finding | None = None
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
