"""The order of calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from service.core.alignment.chain import find_longest_chain, list_positions
from service.core.case import Case
from service.core.checks import WHOLE, Aspect, Check, SubjectOutcome
from service.core.outcome import PERFECT, Finding, Outcome, Skipped, build_failure

NO_ORDER_EXPECTED = Skipped("not_applicable", "no order was expected")


class OrderGate(Check):
    """Score the share of the expected calls of `ordered` that were made in that order.

    Value: the length of the longest chain of actual calls that meet expected ones in their order, over the number of required
    calls in `ordered`; the calls of one `any_order` group share a position. A failed try has no place.
    Finding: `out_of_order` for each aligned call outside the chain. `mode: strict` allows nothing in between: 1.0 only if the
    actual calls are exactly the ordered ones, in order.
    """

    kind: Literal["order"] = "order"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"order"})
    idle_outcome: ClassVar[Skipped | None] = NO_ORDER_EXPECTED
    mode: Literal["longest_run", "strict"] = "longest_run"

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for the trace."""
        return [(WHOLE, self._score_order(case))]

    def _score_order(self, case: Case) -> Outcome:
        placed = [n for n, wanted in enumerate(case.expected_calls) if wanted.position is not None]
        if not placed:
            return NO_ORDER_EXPECTED
        tries = case.alignment.tries
        steps = [j for j in range(len(case.trace.steps)) if j not in tries]
        aligned = {pair.expected: pair.step for pair in case.alignment.pairs}
        fits: dict[int, frozenset[int]] = {}
        for n in placed:
            fits[n] = case.find_matching_steps(n) | ({aligned.get(n, -1)} & case.find_candidate_steps(n))
        positions = list_positions(case.expected_calls, placed)
        chain = find_longest_chain(positions, steps, lambda i, j: j in fits[i], meter=case.meter)
        due = max(sum(case.expected_calls[n].required for n in placed), len(chain))
        exact = self.mode == "longest_run" or len(steps) == len(chain)
        if len(chain) == due and exact:
            return PERFECT
        findings = [
            Finding("out_of_order", f"{pair.pattern.tool} came out of order", f"/steps/{pair.step}")
            for pair in case.alignment.pairs
            if pair.expected in fits and pair.expected not in chain and pair.step in fits[pair.expected]
        ]
        return build_failure(len(chain) / due if self.mode == "longest_run" else 0.0, *findings)
