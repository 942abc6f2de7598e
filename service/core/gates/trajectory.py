"""Match the calls as a sequence, in the modes and under the names that the field uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Literal

from service.core.alignment.chain import Pairs, find_fullest, find_longest_chain, list_positions
from service.core.case import Case
from service.core.checks import WHOLE, Aspect, Check, SubjectOutcome
from service.core.expectations.templates import find_cost, has_matcher
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.gates.published import fit_pattern
from service.core.outcome import PERFECT, Finding, Outcome, Scored, Skipped
from service.core.trace import Step
from service.core.work_limits import COST_OF_A_MATCHER

Mode = Literal["strict", "unordered", "subset", "superset", "in_order", "any_order", "precision", "recall", "f1"]

ORDER_MODES = ("strict", "in_order")
"""Modes in which the order matters."""
EXTRA_MODES = ("strict", "unordered", "subset", "precision", "f1")
"""Modes in which an extra call matters."""
MISSING_MODES = ("strict", "unordered", "superset", "in_order", "any_order", "recall", "f1")
"""Modes in which a missing call matters."""

MAX_CONTESTED_CALLS = 6
"""Up to this many calls that could meet an ordered as well as an unordered expectation, every way to share them is tried."""

MeetingTable = Sequence[frozenset[int]]
"""For each expected call, the steps that meet it."""


class TrajectoryGate(Check):
    """Match the actual calls with the expected calls: as many as possible, each at most once.

    Each of these is 1.0 or 0.0: `strict` (the same calls in the same order), `unordered` (the same calls), `subset` (no
    unexpected call), `superset`, also `any_order` (all expected calls), `in_order` (all expected calls, in their order). These
    lie in [0, 1]: `precision` (matches over actual calls), `recall` (matches over expected calls), `f1` (their harmonic mean).
    No call expected and none made is 1.0 in every mode. The order is that of `ordered` (groups in it have no order, and calls
    outside it may stand anywhere), else the order of writing. A mode that passes because there was nothing to count says so:
    `vacuous`. Where a matcher that is left to a judge would decide, nothing is scored. Findings: `unmatched_expected`,
    `unmatched_call`, `out_of_order`. Sources: agentevals (strict, unordered, subset, superset), Google ADK (in_order,
    any_order), Vertex AI (precision, recall).
    """

    kind: Literal["trajectory"] = "trajectory"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"args", "extra", "order", "tools"})
    mode: Mode = "unordered"
    arguments: Literal["compare", "ignore"] = "compare"
    """Whether the arguments must match too, or the tool's name alone is enough."""

    def aspects(self) -> frozenset[Aspect]:
        """Return the aspects that matter in this mode."""
        aspects = set(self.reads)
        aspects -= {"args"} if self.arguments == "ignore" else set[Aspect]()
        aspects -= {"order"} if self.mode not in ORDER_MODES else set[Aspect]()
        aspects -= {"extra"} if self.mode not in EXTRA_MODES else set[Aspect]()
        return frozenset(aspects - {"tools"} if self.mode not in MISSING_MODES else aspects)

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for the trace."""
        if not case.lists_calls:
            return [(WHOLE, NOTHING_EXPECTED)]
        return [(WHOLE, self._score_trajectory(case))]

    def _score_trajectory(self, case: Case) -> Outcome:
        reasons = [self._find_reasons(case, n) for n in range(len(case.expected_calls))]
        match = _match_calls(case, [frozenset([j for j, why in row.items() if not why]) for row in reasons])
        value = _compute_value(self.mode, match)
        if value == 1.0:
            return PERFECT.add_findings(*_find_vacuous(self.mode, match))
        open_reasons = [row[j] for row in reasons for j in sorted(row) if row[j]]
        if open_reasons and value < _compute_value(self.mode, _match_calls(case, [frozenset(row) for row in reasons])):
            return Skipped("not_asked", open_reasons[0])
        return Scored(value, False, tuple(_build_findings(self.mode, case, match)))

    def _find_reasons(self, case: Case, n: int) -> Mapping[int, str]:
        """Return the steps that meet an expected call as far as code can tell, each with why not for certain ("" if it is)."""
        if self.arguments == "ignore":
            return dict.fromkeys(case.find_candidate_steps(n), "")
        expected, found = case.expected_calls[n], case.find_matching_steps(n)
        if not any(has_matcher(pattern.args or {}) for _, pattern in expected.options):
            return dict.fromkeys(found, "")
        reasons: dict[int, str] = {}
        for step in [case.trace.steps[j] for j in found]:
            same_name = [
                pattern
                for _, pattern in expected.options
                if case.is_same_name(pattern.tool, step.call.name) and expected.is_in_turn(pattern, step.turn)
            ]
            case.meter.spend("comparisons", COST_OF_A_MATCHER * sum([find_cost(pattern.args) for pattern in same_name]))
            fitting = [fit_pattern(case, one, step, extra=True) for one in same_name if case.agrees(one, step)]
            reasons[step.index] = min([one.reason if isinstance(one, Skipped) else "" for one in fitting])
        return reasons


@dataclass(frozen=True, slots=True)
class TrajectoryMatch:
    """Which expected calls are met by which steps."""

    steps: tuple[Step, ...]
    required: tuple[int, ...]
    pairs: Pairs
    """The most required calls that can be met."""
    whole: Pairs
    """The most expected calls, required or optional, that can be met."""
    ordered: Pairs
    """The most required calls that can be met in their order."""
    in_order: bool
    """Whether every step meets an expected call, in order."""


def _match_calls(case: Case, table: MeetingTable) -> TrajectoryMatch:
    tries: Mapping[int, int] = case.alignment.tries if any(step.failed for step in case.trace.steps) else {}
    steps = tuple([step for step in case.trace.steps if step.index not in tries])
    calls, table = [step.index for step in steps], [row - tries.keys() for row in table]
    everything = range(len(case.expected_calls))
    required = [n for n in everything if case.expected_calls[n].required]
    pairs = find_fullest(required, calls, lambda n, call: call in table[n], meter=case.meter)
    ordered = _match_in_order(case, required, table)
    whole, all_ordered = pairs, ordered
    if len(required) < len(everything):
        whole = find_fullest(everything, calls, lambda n, call: call in table[n], meter=case.meter)
        all_ordered = _match_in_order(case, everything, table)
    in_order = len(all_ordered) == len(calls)
    return TrajectoryMatch(steps, tuple(required), pairs, whole, ordered, in_order)


def _match_in_order(case: Case, expected: Sequence[int], table: MeetingTable) -> Pairs:
    """Return the most of these expected calls that can be met in order, and others among them that may stand anywhere."""
    mixed, calls = any(one.position is not None for one in case.expected_calls), case.expected_calls
    beside = {n for n in expected if mixed and calls[n].position is None}
    free = [n for n in expected if n in beside or calls[n].path.split("/")[-2] == "optional"]
    positions = list_positions(case.expected_calls, sorted({*expected} - {*free}))
    return match_most(case, positions, free, table)


def match_most(case: Case, positions: Sequence[Sequence[int]], free: Sequence[int], table: MeetingTable) -> Pairs:
    """Return the most expected calls that can be met at once, each by a call of its own: those at positions in order.

    The two compete only for calls that could meet either. If these are few, every way to share them is tried, which is exact;
    if they are many, all go to the one side, then all to the other.
    """
    steps, due = range(len(case.trace.steps)), [n for position in positions for n in position]
    contested = frozenset[int]().union(*[table[n] for n in due]) & frozenset[int]().union(*[table[n] for n in free])
    sizes = range(len(contested), -1, -1 if len(contested) <= MAX_CONTESTED_CALLS else -len(contested))
    best: Pairs = {}
    for share in (share for size in sizes for share in combinations(sorted(contested), size)):
        calls = [call for call in steps if call not in contested or call in share]
        chain = find_longest_chain(positions, calls, lambda n, call: call in table[n], meter=case.meter)
        used = frozenset(chain.values())
        rest = [call for call in steps if call not in used]
        pairs = chain | find_fullest(free, rest, lambda n, call: call in table[n], meter=case.meter)
        best = max(best, pairs, key=len)
        if len(best) == len(due) + len(free):
            break
    return best


def _compute_value(mode: Mode, match: TrajectoryMatch) -> float:
    if mode in ("precision", "recall", "f1"):
        made, due = len(match.steps), len(match.required)
        precision = len(match.whole) / made if made else float(not due)
        recall = len(match.pairs) / due if due else 1.0
        if mode == "f1":
            return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return precision if mode == "precision" else recall
    order_kept, all_met = len(match.ordered) == len(match.required), len(match.pairs) == len(match.required)
    none_extra = len(match.whole) == len(match.steps)
    holds = {
        "strict": order_kept and match.in_order,
        "unordered": none_extra and all_met,
        "subset": none_extra,
        "superset": all_met,
        "any_order": all_met,
        "in_order": order_kept,
    }
    return float(holds[mode])


def _build_findings(mode: Mode, case: Case, match: TrajectoryMatch) -> Iterable[Finding]:
    unmet = [case.expected_calls[n] for n in match.required if n not in match.pairs]
    for one in unmet if mode in MISSING_MODES else ():
        yield Finding("unmatched_expected", f"{one.tools} was expected and has no match", one.path)
    used = set(match.whole.values())
    for step in [step for step in match.steps if step.index not in used] if mode in EXTRA_MODES else ():
        yield Finding("unmatched_call", f"{step.call.name} matches nothing expected", f"/steps/{step.index}/call")
    for n, step in sorted(match.pairs.items()) if mode in ORDER_MODES else ():
        if n not in match.ordered:
            yield Finding("out_of_order", f"{case.expected_calls[n].tools} came out of order", f"/steps/{step}")


def _find_vacuous(mode: Mode, match: TrajectoryMatch) -> Iterable[Finding]:
    """Yield a finding if the pass means nothing. No call expected and none made is a real pass."""
    if match.steps and not match.required and mode in MISSING_MODES and mode not in EXTRA_MODES:
        yield Finding("vacuous", "no call had to be made, so none could be missing", "/expected")
    if match.required and not match.steps and mode == "subset":
        yield Finding("vacuous", "no call was made, so none could be one too many", "/steps")
