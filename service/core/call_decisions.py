"""Whether calls were expected and made, and which calls were unexpected: what summaries count in each report."""

from __future__ import annotations

from typing import Literal

from service.core.case import Case
from service.core.expectations.expectation import Scope
from service.core.models.light import light
from service.core.outcome import Scored

CallClass = Literal["call", "no_call"]


@light
class Decision:
    """Whether a call was expected and whether one was made, in a turn or (`turn` None) in the whole trace."""

    turn: int | None
    expected: CallClass
    made: bool

    @property
    def right(self) -> bool:
        """Whether a call was made if and only if one was expected."""
        return self.made == (self.expected == "call")


def find_decisions(case: Case) -> tuple[Decision, ...]:
    """Return a decision for the trace and for each turn, wherever the expectation says whether there should be calls."""
    found: list[Decision] = []
    for path, scope, turn in case.scopes:
        expected = _find_expected_class(case, scope, path, turn)
        if expected is not None:
            made = (case.trace.steps if turn is None else case.find_steps(turn)) != ()
            found.append(_OF_TRACE[expected, made] if turn is None else Decision(turn, expected, made))
    return tuple(found)


def _find_expected_class(case: Case, scope: Scope, path: str, turn: int | None) -> CallClass | None:
    """Return None if the scope does not say, or if every call it lists is optional."""
    if not scope.says_calls:
        return None
    if scope.no_calls:
        return "no_call"
    # A single scope holds all the calls that the case has listed already.
    listed = scope.list_expected_calls(path, turn) if case.scopes[1:] else case.expected_calls
    for wanted in listed:
        if wanted.required:
            return "call"
    return "call" if scope.calls == "some" else None


def find_unexpected_steps(case: Case) -> frozenset[int]:
    """Return the steps that match no expected call and count as unexpected."""
    if not case.lists_calls:
        return NONE
    steps = case.trace.steps
    extra = case.alignment.extra if case.expected_calls else range(len(steps))
    possible = case.alignment.possible_tries if extra and case.expected_calls else ()
    counted = [n for n in extra if n not in possible and isinstance(case.score_unexpected(steps[n]), Scored)]
    return frozenset(counted) if counted else NONE


NONE: frozenset[int] = frozenset()

_CLASSES: tuple[CallClass, ...] = ("call", "no_call")
_OF_TRACE = {(expected, made): Decision(None, expected, made) for expected in _CLASSES for made in (True, False)}
"""All four decisions on a whole trace, made once."""
