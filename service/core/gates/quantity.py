"""The number of calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from service.core.checks import WHOLE, Case, Check, Seen
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.outcome import PERFECT, Finding, failed


class QuantityGate(Check):
    """As many calls as expected: 1.0, else 0.0 with `wrong_quantity`. Source: Arcade evals, `fail_on_tool_call_quantity`."""

    kind: Literal["quantity"] = "quantity"

    def look(self, case: Case) -> Iterable[Seen]:
        """One outcome for the trace."""
        expected, made = case.expectation, len(case.trace.steps)
        if expected is None or not expected.says_calls or expected.calls == "some":
            yield WHOLE, NOTHING_EXPECTED
            return
        due = len(case.patterns)
        finding = Finding("wrong_quantity", f"{due} calls were expected, {made} made", "/steps")
        yield WHOLE, PERFECT if due == made else failed(0.0, finding)
