"""The order of calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from service.core.checks import WHOLE, Case, Check, Seen
from service.core.match import longest_run
from service.core.outcome import PERFECT, Finding, Outcome, Skipped, failed


class OrderGate(Check):
    """The expected calls of `ordered` that were made in that order, as a share of all of them.

    Value: length of the longest run of aligned steps in expected order, over the number of ordered patterns. Findings:
    `out_of_order` for each aligned call outside the run.
    """

    kind: Literal["order"] = "order"

    def look(self, case: Case) -> Iterable[Seen]:
        """One outcome for the trace."""
        yield WHOLE, self._ordered(case)

    def _ordered(self, case: Case) -> Outcome:
        wanted = len(case.expectation.ordered) if case.expectation else 0
        if not wanted:
            return Skipped("not_applicable", "no order was expected")
        pairs = [
            (i, j)
            for i, j in case.alignment.pairs
            if i < wanted and case.same_name(case.patterns[i][1].tool, case.trace.steps[j].call.name)
        ]
        run = set(longest_run([j for _, j in pairs]))
        if len(run) == wanted:
            return PERFECT
        findings = [
            Finding("out_of_order", f"{case.patterns[i][1].tool} came out of order", f"/steps/{j}")
            for n, (i, j) in enumerate(pairs)
            if n not in run
        ]
        return failed(len(run) / wanted, *findings)
