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
        fits, steps = _fitting(case, placed), range(len(case.trace.steps))
        chain = longest_chain(_places(case, placed), steps, lambda i, j: j in fits[i], meter=case.meter)
        due = max(sum(case.wanted[n].required for n in placed), len(chain))
        exact = self.mode == "longest_run" or len(case.trace.steps) == len(chain)
        if len(chain) == due and exact:
            return PERFECT
        findings = [
            Finding("out_of_order", f"{pair.pattern.tool} came out of order", f"/steps/{pair.step}")
            for pair in case.alignment.pairs
            if pair.expected in fits and pair.expected not in chain and pair.step in fits[pair.expected]
        ]
        return failed(len(chain) / due if self.mode == "longest_run" else 0.0, *findings)


def _places(case: Case, placed: list[int]) -> list[list[int]]:
    """The expected calls of each place, in order; those of one `any_order` group share theirs."""
    places: dict[tuple[int, int], list[int]] = {}
    for n in placed:
        wanted = case.wanted[n]
        places.setdefault((wanted.turn or 0, wanted.position or 0), []).append(n)
    return [places[place] for place in sorted(places)]


def _fitting(case: Case, placed: list[int]) -> dict[int, frozenset[int]]:
    """The calls that can stand for each expected one in the order: that of the alignment, and those that match as well."""
    aligned = {pair.expected: pair.step for pair in case.alignment.pairs}
    return {n: _with(case.meeting(n), aligned.get(n), case.naming(n)) for n in placed}


def _with(meeting: frozenset[int], aligned: int | None, naming: frozenset[int]) -> frozenset[int]:
    return meeting | {aligned} if aligned in naming and aligned not in meeting else meeting
