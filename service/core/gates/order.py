"""The order of calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from service.core.case import Case
from service.core.chain import longest_chain
from service.core.checks import WHOLE, Aspect, Check, Seen
from service.core.outcome import PERFECT, Finding, Outcome, Skipped, failed


class OrderGate(Check):
    """The expected calls of `ordered` that were made in that order, as a share of all of them.

    Value: the longest chain of calls made that meet expected ones in their order, over the number of required calls in
    `ordered`; the calls of one `any_order` group share a place. Finding: `out_of_order` for each aligned call outside it.
    `mode: strict` also wants nothing in between: 1.0 only if the calls made are exactly the ordered ones, in order.
    """

    kind: Literal["order"] = "order"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"order"})
    mode: Literal["longest_run", "strict"] = "longest_run"

    def look(self, case: Case) -> Iterable[Seen]:
        """One outcome for the trace."""
        return [(WHOLE, self._ordered(case))]

    def _ordered(self, case: Case) -> Outcome:
        placed = [n for n, wanted in enumerate(case.wanted) if wanted.position is not None]
        if not placed:
            return Skipped("not_applicable", "no order was expected")
        chain = longest_chain(_places(case, placed), range(len(case.trace.steps)), lambda i, j: _fits(case, i, j))
        due = max(sum(case.wanted[n].required for n in placed), len(chain))
        exact = self.mode == "longest_run" or len(case.trace.steps) == len(chain)
        if len(chain) == due and exact:
            return PERFECT
        findings = [
            Finding("out_of_order", f"{pair.pattern.tool} came out of order", f"/steps/{pair.step}")
            for pair in case.alignment.pairs
            if pair.expected in placed and pair.expected not in chain and _fits(case, pair.expected, pair.step)
        ]
        return failed(len(chain) / due if self.mode == "longest_run" else 0.0, *findings)


def _places(case: Case, placed: list[int]) -> list[list[int]]:
    """The expected calls of each place, in order; those of one `any_order` group share theirs."""
    places: dict[tuple[int, int], list[int]] = {}
    for n in placed:
        wanted = case.wanted[n]
        places.setdefault((wanted.turn or 0, wanted.position or 0), []).append(n)
    return [places[place] for place in sorted(places)]


def _fits(case: Case, expected: int, step: int) -> bool:
    """Whether a call can stand for an expected one in the order: it does in the alignment, or would match as well."""
    wanted, made = case.wanted[expected], case.trace.steps[step]
    options = [
        pattern
        for _, pattern in wanted.options
        if case.same_name(pattern.tool, made.call.name) and wanted.in_turn(pattern, made.turn)
    ]
    if not options:
        return False
    aligned = any(pair.expected == expected and pair.step == step for pair in case.alignment.pairs)
    return aligned or any(case.agrees(pattern, made) for pattern in options)
