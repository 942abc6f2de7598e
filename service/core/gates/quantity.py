"""The number of calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from service.core.case import Case
from service.core.checks import WHOLE, Aspect, Check, SubjectOutcome
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.outcome import PERFECT, Finding, build_failure


class QuantityGate(Check):
    """Compare the number of calls with the expected number: 1.0, or 0.0 with the finding `wrong_quantity`.

    Source: Arcade evals, `fail_on_tool_call_quantity`.
    """

    kind: Literal["quantity"] = "quantity"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"none"})

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for the trace."""
        if not case.lists_calls:
            return [(WHOLE, NOTHING_EXPECTED)]
        made = len(case.trace.steps)
        due = sum(wanted.required for wanted in case.expected_calls)
        if due <= made <= len(case.expected_calls):
            return [(WHOLE, PERFECT)]
        finding = Finding("wrong_quantity", f"{due} calls were expected, {made} made", "/steps")
        return [(WHOLE, build_failure(0.0, finding))]
