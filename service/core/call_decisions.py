"""What a summary of many reports needs to know of each: where a call was due, and which calls were one too many."""

from __future__ import annotations

from typing import Literal

from service.core.case import Case
from service.core.expectations.expectation import Scope
from service.core.models.light import light
from service.core.outcome import Scored

CallClass = Literal["call", "no_call"]


@light
class Decision:
    """Whether a call was due, in a turn or (None) in the trace as a whole, and whether one was made."""

    turn: int | None
    expected: CallClass
    made: bool

    @property
    def right(self) -> bool:
        """Whether what was done is what was due."""
        return self.made == (self.expected == "call")


def find_decisions(case: Case) -> tuple[Decision, ...]:
    """One for the trace and for each turn of which the expectation says whether there should be calls."""
    found: list[Decision] = []
    for path, scope, turn in case.scopes:
        expected = _find_due(case, scope, path, turn)
        if expected is not None:
            made = (case.trace.steps if turn is None else case.find_steps(turn)) != ()
            found.append(_OF_TRACE[expected, made] if turn is None else Decision(turn, expected, made))
    return tuple(found)


def _find_due(case: Case, scope: Scope, path: str, turn: int | None) -> CallClass | None:
    """None where nothing is said, or where every call that is listed may be left out."""
    if not scope.says_calls:
        return None
    if scope.no_calls:
        return "no_call"
    # A single scope has the case's own calls, which are listed already.
    listed = scope.list_expected_calls(path, turn) if case.scopes[1:] else case.expected_calls
    for wanted in listed:
        if wanted.required:
            return "call"
    return "call" if scope.calls == "some" else None


def find_unexpected_steps(case: Case) -> frozenset[int]:
    """The steps that stand for no expected call and are not free either."""
    if not case.lists_calls:
        return NONE
    steps = case.trace.steps
    extra = case.alignment.extra if case.expected_calls else range(len(steps))
    return frozenset([n for n in extra if isinstance(case.score_unexpected(steps[n]), Scored)]) if extra else NONE


NONE: frozenset[int] = frozenset()

_CLASSES: tuple[CallClass, ...] = ("call", "no_call")
_OF_TRACE = {(expected, made): Decision(None, expected, made) for expected in _CLASSES for made in (True, False)}
"""The four there are."""
