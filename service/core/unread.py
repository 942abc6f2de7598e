"""What could not be read, and what is open because of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from service.core.checks import Part, Subject
from service.core.outcome import Finding, Skipped
from service.core.trace import Unread

T = TypeVar("T")

UNREAD_RESULT = "unread_result"
"""The code of the finding that names such a result."""


def build_unread_result(path: str, findings: tuple[Finding, ...] = ()) -> Skipped:
    """The outcome where fields of a result at this pointer had to be looked up, and it is in no form that has any."""
    reason = "the result is text or media, and no JSON in which its fields could be looked up"
    return Skipped("unread", reason, (*findings, Finding(UNREAD_RESULT, reason, path)))


def build_missing_result(path: str) -> Skipped:
    """The outcome of a text that follows a call whose result, at this pointer, the trace does not tell."""
    reason = "a text follows a call, and the trace does not tell what that call returned"
    return Skipped("not_captured", reason, (Finding("missing_result", reason, path),), open=True)


class CheckReach(NamedTuple):
    """What a check looks at of a trace, and whether it holds the trace against an expectation."""

    parts: frozenset[Part]
    expects: bool
    lists_calls: bool = False
    """Whether it looks which calls are right, and something says so: one call more would be looked at."""


def leave_open(
    looks: CheckReach, outcomes: Sequence[tuple[Subject, T | Skipped]], unread: Iterable[Unread]
) -> Sequence[tuple[Subject, T | Skipped]]:
    """The outcomes of a check with those open that rest on a part that could not be read.

    A call that could not be read is one more step, whose outcome is open; and whatever is said of the trace or its turn as a
    whole (a call that is missing, too many calls, their order) may be due to it. A result leaves open all that is said of its
    step and of what follows. What does not apply whatever was called stays so.
    """
    for part in unread:
        if part.kind in looks.parts:
            outcomes = _open_outcomes(looks, outcomes, part)
    return outcomes


def _open_outcomes(
    looks: CheckReach, outcomes: Sequence[tuple[Subject, T | Skipped]], part: Unread
) -> Sequence[tuple[Subject, T | Skipped]]:
    outcome = Skipped("unread", part.reason, (Finding(f"unread_{part.kind}", part.reason, part.path),))
    if looks.expects and all(_is_free(outcome) for _, outcome in outcomes):
        return (
            [*outcomes, (Subject(turn=part.turn), outcome)] if looks.lists_calls and part.kind == "call" else outcomes
        )
    found = [
        (subject, outcome if _rests_on(looks, subject, part) and not (looks.expects and _is_free(one)) else one)
        for subject, one in outcomes
    ]
    return [*found, (Subject(turn=part.turn), outcome)] if part.kind == "call" else found


def _is_free(outcome: object) -> bool:
    return isinstance(outcome, Skipped) and outcome.cause == "not_applicable"


def _rests_on(looks: CheckReach, subject: Subject, part: Unread) -> bool:
    retells = "result" in looks.parts
    if subject.step is not None:
        if part.step is not None:
            return subject.step >= part.step
        return retells and subject.turn is not None and subject.turn >= part.turn
    if subject.turn is None:
        return True
    return subject.turn >= part.turn if retells and part.kind != "text" else subject.turn == part.turn
