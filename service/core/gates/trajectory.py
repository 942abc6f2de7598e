"""The calls as a sequence, under the names the field uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from service.core.alignment.chain import Fits, Pairs, find_fullest, find_longest_chain, list_positions
from service.core.case import Case
from service.core.checks import WHOLE, Aspect, Check, SubjectOutcome
from service.core.expectations.expectation import ExpectedCall
from service.core.expectations.templates import find_cost, has_matcher
from service.core.gates.compat import fit_pattern
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.outcome import PERFECT, Finding, Outcome, Scored, Skipped
from service.core.trace import Step
from service.core.work_limits import COST_OF_A_MATCHER

Mode = Literal["strict", "unordered", "subset", "superset", "in_order", "any_order", "precision", "recall", "f1"]

ORDERED = ("strict", "in_order")
"""Modes that look at the order."""
SPARING = ("strict", "unordered", "subset", "precision", "f1")
"""Modes to which a call too many matters."""
DEMANDING = ("strict", "unordered", "superset", "in_order", "any_order", "recall", "f1")
"""Modes to which a call too few matters."""


MATCHES = ""
"""Nothing stands in the way of taking the call for the expected one."""


class TrajectoryGate(Check):
    """The calls made against the calls expected, as many as can be met, each at most once.

    `strict`: the same calls in the same order; `unordered`: the same calls; `subset`: none that was not expected;
    `superset` (also `any_order`): all that were expected; `in_order`: all that were expected, in their order; each 1.0 or
    0.0. `precision`: matches over calls made, `recall`: over calls expected, `f1`: their harmonic mean, in [0, 1]; no call
    expected and none made is 1.0 for all. The order is that of `ordered` (whose groups have none, and beside which other calls
    may stand anywhere), else that of writing. A mode that passes because there was nothing to count says so: `vacuous`. Where
    a matcher that is left to a judge would decide, nothing is scored. Findings: `unmatched_expected`, `unmatched_call`,
    `out_of_order`. Sources: agentevals (strict, unordered, subset, superset), Google ADK (in_order, any_order), Vertex AI
    (precision, recall).
    """

    kind: Literal["trajectory"] = "trajectory"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"args", "extra", "order", "tools"})
    mode: Mode = "unordered"
    arguments: Literal["compare", "ignore"] = "compare"
    """Whether the arguments must match too, or the tool's name is enough."""

    def aspects(self) -> frozenset[Aspect]:
        """As the mode has it."""
        found = set(self.reads)
        found -= {"args"} if self.arguments == "ignore" else set[Aspect]()
        found -= {"order"} if self.mode not in ORDERED else set[Aspect]()
        found -= {"extra"} if self.mode not in SPARING else set[Aspect]()
        return frozenset(found - {"tools"} if self.mode not in DEMANDING else found)

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """One outcome for the trace."""
        if not case.lists_calls:
            return [(WHOLE, NOTHING_EXPECTED)]
        return [(WHOLE, self._score_trajectory(case))]

    def _score_trajectory(self, case: Case) -> Outcome:
        fitting = [self._find_fitting(case, i) for i in range(len(case.expected_calls))]
        certain = [self._find_certain(case, i, calls) for i, calls in enumerate(fitting)]
        met = _match_calls(case, lambda i, j: j in certain[i])
        value = _compute_value(self.mode, met)
        if value == 1.0:
            return PERFECT.add_findings(*_find_vacuous(self.mode, met))
        if certain != fitting and value < _compute_value(self.mode, _match_calls(case, lambda i, j: j in fitting[i])):
            return Skipped("not_asked", self._find_first_open(case))
        return Scored(value, False, tuple(_build_findings(self.mode, case, met)))

    def _find_first_open(self, case: Case) -> str:
        pairs = [(i, j) for i in range(len(case.expected_calls)) for j in sorted(self._find_fitting(case, i))]
        return next(reason for i, j in pairs if (reason := self._get_reason(case, i, j)))

    def _find_fitting(self, case: Case, expected: int) -> frozenset[int]:
        """The calls that are the expected one, as far as can be told."""
        return case.find_naming(expected) if self.arguments == "ignore" else case.find_meeting(expected)

    def _find_certain(self, case: Case, expected: int, calls: frozenset[int]) -> frozenset[int]:
        """Those of the fitting calls of which it can be told."""
        if self.arguments == "ignore" or not _has_matchers(case.expected_calls[expected]):
            return calls
        return frozenset([j for j in calls if self._get_reason(case, expected, j) == MATCHES])

    def _get_reason(self, case: Case, expected: int, step: int) -> str:
        """MATCHES: this fitting call is the expected one. Else: why that cannot be told here."""
        wanted = case.expected_calls[expected]
        if self.arguments == "ignore" or not _has_matchers(wanted):
            return MATCHES
        return case.once((id(self), expected, step), lambda: self._compute_reason(case, wanted, step))

    def _compute_reason(self, case: Case, wanted: ExpectedCall, step: int) -> str:
        made = case.trace.steps[step]
        named = [
            pattern
            for _, pattern in wanted.options
            if case.is_same_name(pattern.tool, made.call.name) and wanted.is_in_turn(pattern, made.turn)
        ]
        case.meter.spend("comparisons", COST_OF_A_MATCHER * sum([find_cost(pattern.args) for pattern in named]))
        fitting = [fit_pattern(case, pattern, made, extra=True) for pattern in named if case.agrees(pattern, made)]
        return min([one.open.reason if one.open else MATCHES for one in fitting])


def _has_matchers(wanted: ExpectedCall) -> bool:
    return any(has_matcher(pattern.args or {}) for _, pattern in wanted.options)


@dataclass(frozen=True, slots=True)
class TrajectoryMatch:
    """Which expected calls are met by which calls made."""

    steps: tuple[Step, ...]
    required: tuple[int, ...]
    pairs: Pairs
    """As many required calls as can be met."""
    whole: Pairs
    """As many calls as can meet something, optional or not."""
    ordered: Pairs
    """As many required calls as can be met in their order."""
    in_order: bool
    """Whether all calls made meet something, and in order."""

    @property
    def all_met(self) -> bool:
        """Whether no required call is left over."""
        return len(self.pairs) == len(self.required)

    @property
    def none_extra(self) -> bool:
        """Whether no call made is left over."""
        return len(self.whole) == len(self.steps)


def _match_calls(case: Case, fits: Fits) -> TrajectoryMatch:
    calls = range(len(case.trace.steps))
    everything = range(len(case.expected_calls))
    required = [n for n in everything if case.expected_calls[n].required]
    pairs = find_fullest(required, calls, fits, meter=case.meter)
    ordered = _match_in_order(case, required, calls, fits)
    whole, all_ordered = pairs, ordered
    if len(required) < len(everything):
        whole = find_fullest(everything, calls, fits, meter=case.meter)
        all_ordered = _match_in_order(case, everything, calls, fits)
    in_order = len(all_ordered) == len(calls)
    return TrajectoryMatch(case.trace.steps, tuple(required), pairs, whole, ordered, in_order)


def _match_in_order(case: Case, of: Sequence[int], calls: Sequence[int], fits: Fits) -> Pairs:
    """As many of these as can be met in order. Those that may stand anywhere are served before the others or after them."""
    mixed = any(wanted.position is not None for wanted in case.expected_calls)
    free = [n for n in of if _stands_anywhere(case.expected_calls[n], mixed=mixed)]
    apart = set(free)
    places = list_positions(case.expected_calls, [n for n in of if n not in apart])
    chain = find_longest_chain(places, calls, fits, meter=case.meter)
    if not free:
        return chain
    chain_first = chain | find_fullest(free, _list_left(calls, chain), fits, meter=case.meter)
    loose = find_fullest(free, calls, fits, meter=case.meter)
    return max(
        chain_first, loose | find_longest_chain(places, _list_left(calls, loose), fits, meter=case.meter), key=len
    )


def _stands_anywhere(wanted: ExpectedCall, *, mixed: bool) -> bool:
    return (mixed and wanted.position is None) or wanted.path.split("/")[-2] == "optional"


def _list_left(calls: Sequence[int], taken: Pairs) -> list[int]:
    used = set(taken.values())
    return [call for call in calls if call not in used]


def _compute_value(mode: Mode, met: TrajectoryMatch) -> float:
    if mode in ("precision", "recall", "f1"):
        made, due = len(met.steps), len(met.required)
        precision = len(met.whole) / made if made else float(not due)
        recall = len(met.pairs) / due if due else 1.0
        if mode == "f1":
            return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return precision if mode == "precision" else recall
    order_kept = len(met.ordered) == len(met.required)
    holds = {
        "strict": order_kept and met.in_order,
        "unordered": met.none_extra and met.all_met,
        "subset": met.none_extra,
        "superset": met.all_met,
        "any_order": met.all_met,
        "in_order": order_kept,
    }
    return float(holds[mode])


def _build_findings(mode: Mode, case: Case, met: TrajectoryMatch) -> Iterable[Finding]:
    unmet = [case.expected_calls[n] for n in met.required if n not in met.pairs]
    for one in unmet if mode in DEMANDING else ():
        yield Finding("unmatched_expected", f"{one.tools} was expected and has no match", one.path)
    used = set(met.whole.values())
    for step in [step for step in met.steps if step.index not in used] if mode in SPARING else ():
        yield Finding("unmatched_call", f"{step.call.name} matches nothing expected", f"/steps/{step.index}/call")
    for n, step in sorted(met.pairs.items()) if mode in ORDERED else ():
        if n not in met.ordered:
            yield Finding("out_of_order", f"{case.expected_calls[n].tools} came out of order", f"/steps/{step}")


def _find_vacuous(mode: Mode, met: TrajectoryMatch) -> Iterable[Finding]:
    """What makes a pass say nothing. No call expected and none made is a pass in earnest."""
    if met.steps and not met.required and mode in DEMANDING and mode not in SPARING:
        yield Finding("vacuous", "no call had to be made, so none could be missing", "/expected")
    if met.required and not met.steps and mode == "subset":
        yield Finding("vacuous", "no call was made, so none could be one too many", "/steps")
