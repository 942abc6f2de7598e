"""Step 1 of the contract: was it right to call a tool at all?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from service.core.checks import WHOLE, Case, Check, Seen, call_path
from service.core.outcome import PERFECT, Finding, Outcome, Skipped, failed

NOTHING_EXPECTED = Skipped("not_applicable", "no expectation about calls")


class DecideGate(Check):
    """Call or no call, against the expectation: 1.0 where both agree (no call expected and none made included), else 0.0.

    Findings: `over_call` for each call made where none was due, `under_call` where one was due and none was made.
    """

    kind: Literal["decide"] = "decide"

    def look(self, case: Case) -> Iterable[Seen]:
        """One outcome for the trace."""
        yield WHOLE, self._decided(case)

    def _decided(self, case: Case) -> Outcome:
        expected, steps = case.expectation, case.trace.steps
        if expected is None or not expected.says_calls:
            return NOTHING_EXPECTED
        if expected.no_calls:
            over = [
                Finding("over_call", f"{s.call.name} was called where no call was due", call_path(s)) for s in steps
            ]
            return failed(0.0, *over) if over else PERFECT
        if steps:
            return PERFECT
        due = ", ".join(pattern.tool for _, pattern in case.patterns) or "a call"
        return failed(0.0, Finding("under_call", f"{due} was due and nothing was called", "/expected"))
