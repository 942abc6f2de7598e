"""The calls as a sequence, under the names the field uses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from service.core.case import Case, Pair
from service.core.checks import WHOLE, Check, Seen
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.match import longest_run
from service.core.outcome import PERFECT, Finding, Outcome, Scored

Mode = Literal["strict", "unordered", "subset", "superset", "in_order", "any_order", "precision", "recall", "f1"]


class TrajectoryGate(Check):
    """The calls made against the calls expected, each at most once.

    `strict`: the same calls in the same order; `unordered`: the same calls; `subset`: none that was not expected;
    `superset` (also `any_order`): all that were expected; `in_order`: all that were expected, in their order; each 1.0 or
    0.0. `precision`: matches over calls made, `recall`: over calls expected, `f1`: their harmonic mean, in [0, 1]; no call
    expected and none made is 1.0 for all. Sources: agentevals (strict, unordered, subset, superset), Google ADK (in_order,
    any_order), Vertex AI (precision, recall).
    """

    kind: Literal["trajectory"] = "trajectory"
    mode: Mode = "unordered"
    arguments: Literal["compare", "ignore"] = "compare"
    """Whether the arguments must match too, or the tool's name is enough."""

    def look(self, case: Case) -> Iterable[Seen]:
        """One outcome for the trace."""
        if not case.lists_calls:
            return [(WHOLE, NOTHING_EXPECTED)]
        return [(WHOLE, self._compared(case))]

    def _compared(self, case: Case) -> Outcome:
        agreed = [pair for pair in case.alignment.pairs if self._agrees(case, pair)]
        value = _value(self.mode, case, agreed)
        if value == 1.0:
            return PERFECT
        return Scored(value, False, tuple(_findings(case, agreed)))

    def _agrees(self, case: Case, pair: Pair) -> bool:
        step = case.trace.steps[pair.step]
        if not case.same_name(pair.pattern.tool, step.call.name):
            return False
        return self.arguments == "ignore" or case.agrees(pair.pattern, step)


def _value(mode: Mode, case: Case, agreed: list[Pair]) -> float:
    made, due = len(case.trace.steps), sum(wanted.required for wanted in case.wanted)
    met = sum(case.wanted[pair.expected].required for pair in agreed)
    if mode in ("precision", "recall", "f1"):
        precision = len(agreed) / made if made else float(not due)
        recall = met / due if due else 1.0
        if mode == "f1":
            return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return precision if mode == "precision" else recall
    none_extra, all_met = len(agreed) == made, met == due
    in_order = len(longest_run([pair.step for pair in agreed])) == len(agreed)
    holds = {
        "strict": none_extra and all_met and in_order,
        "unordered": none_extra and all_met,
        "subset": none_extra,
        "superset": all_met,
        "any_order": all_met,
        "in_order": all_met and in_order,
    }
    return float(holds[mode])


def _findings(case: Case, agreed: list[Pair]) -> Iterable[Finding]:
    steps, wanted = {pair.step for pair in agreed}, {pair.expected for pair in agreed}
    for i, one in enumerate(case.wanted):
        if one.required and i not in wanted:
            yield Finding("unmatched_expected", f"{one.tools} was expected and has no match", one.path)
    for step in case.trace.steps:
        if step.index not in steps:
            yield Finding("unmatched_call", f"{step.call.name} matches nothing expected", f"/steps/{step.index}/call")
