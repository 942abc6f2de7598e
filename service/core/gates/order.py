"""The order of calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from service.core.case import Case, Pair
from service.core.checks import WHOLE, Check, Seen
from service.core.match import longest_run
from service.core.outcome import PERFECT, Finding, Outcome, Skipped, failed


class OrderGate(Check):
    """The expected calls of `ordered` that were made in that order, as a share of all of them.

    Value: the longest run of aligned calls whose positions never go down, over the number of required calls in `ordered`;
    the calls of one `any_order` group share a position. Finding: `out_of_order` for each aligned call outside the run.
    `mode: strict` also wants nothing in between: 1.0 only if the calls made are exactly the ordered ones, in order.
    """

    kind: Literal["order"] = "order"
    mode: Literal["longest_run", "strict"] = "longest_run"

    def look(self, case: Case) -> Iterable[Seen]:
        """One outcome for the trace."""
        return [(WHOLE, self._ordered(case))]

    def _ordered(self, case: Case) -> Outcome:
        placed = [wanted for wanted in case.wanted if wanted.position is not None]
        if not placed:
            return Skipped("not_applicable", "no order was expected")
        in_place = [pair for pair in case.alignment.pairs if _is_placed(case, pair)]
        pairs = sorted(in_place, key=lambda pair: pair.step)
        run = set(longest_run(_rising([_place(case, pair) for pair in pairs])))
        due = max(sum(wanted.required for wanted in placed), len(run))
        findings = [
            Finding("out_of_order", f"{pair.pattern.tool} came out of order", f"/steps/{pair.step}")
            for n, pair in enumerate(pairs)
            if n not in run
        ]
        exact = self.mode == "longest_run" or len(case.trace.steps) == len(run)
        if len(run) == due and not findings and exact:
            return PERFECT
        return failed(len(run) / due if self.mode == "longest_run" else 0.0, *findings)


def _is_placed(case: Case, pair: Pair) -> bool:
    wanted = case.wanted[pair.expected]
    return wanted.position is not None and case.same_name(pair.pattern.tool, case.trace.steps[pair.step].call.name)


def _place(case: Case, pair: Pair) -> tuple[int, int]:
    """The turn and the position in it: later turns come after all of an earlier one."""
    wanted = case.wanted[pair.expected]
    return (wanted.turn or 0, wanted.position or 0)


def _rising(places: list[tuple[int, int]]) -> list[int]:
    """Numbers that rise strictly exactly where the places do not fall.

    >>> _rising([(0, 1), (0, 0), (0, 1)])
    [1, 0, 2]
    """
    order = sorted(range(len(places)), key=lambda n: (places[n], n))
    ranks = [0] * len(places)
    for rank, n in enumerate(order):
        ranks[n] = rank
    return ranks
