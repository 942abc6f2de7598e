"""Step 1 of the contract: was it right to call a tool at all?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from service.core.case import Case, build_call_path
from service.core.checks import WHOLE, Aspect, Check, Subject, SubjectOutcome
from service.core.expectations.expectation import Scope
from service.core.outcome import PERFECT, Finding, Outcome, Skipped, build_failure
from service.core.trace import Step

NOTHING_EXPECTED = Skipped("not_applicable", "no expectation about calls")


class DecideGate(Check):
    """Check whether to call at all: 1.0 where trace and expectation agree (also on no call), else 0.0.

    There is one outcome for the trace, if the expectation speaks of it as a whole, and one for each turn it speaks of.
    Findings: `over_call` for each call made where none was due, `under_call` where one was due and none was made.
    """

    kind: Literal["decide"] = "decide"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"none", "some"})

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for the trace and one for each turn that the expectation speaks of."""
        outcomes = [
            (WHOLE if turn is None else Subject(turn=turn), _score_scope(case, path, scope, turn))
            for path, scope, turn in case.scopes
            if scope.says_calls
        ]
        return outcomes or [(WHOLE, NOTHING_EXPECTED)]


def _score_scope(case: Case, path: str, scope: Scope, turn: int | None) -> Outcome:
    absence = None if turn is None else case.explain_missing_turn(turn)
    if absence is not None:
        return absence
    steps = case.find_steps(turn)
    if scope.no_calls:
        return score_idle(steps)
    if steps:
        return PERFECT
    required = [wanted for wanted in scope.list_expected_calls(path, turn) if wanted.required]
    if not required and scope.calls != "some":
        return PERFECT  # every listed call is optional
    due = ", ".join(wanted.tools for wanted in required) or "a call"
    return build_failure(0.0, Finding("under_call", f"{due} was due and nothing was called", path))


def score_idle(steps: Iterable[Step]) -> Outcome:
    """Score the calls made where none was due: 1.0 where there are none, else 0.0."""
    message = "was called where no call was due"
    findings = [Finding("over_call", f"{step.call.name} {message}", build_call_path(step)) for step in steps]
    return build_failure(0.0, *findings) if findings else PERFECT
