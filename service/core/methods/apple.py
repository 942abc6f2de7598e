"""Score Apple's trajectory expectations: whether every expectation was met, and the share that was.

Source: Apple's Evaluations framework (its documentation, and published results of its closed code). With `compat`, the same
counting starts from the calls that its forward scan finds. Nobody has published the rest; we assume that a failed ordered step
leaves the scan where it was, that the calls of an any-order group count one by one, that an unordered expectation may share a
call with an ordered one, that disallowed entries do not count in the percentage, and that 0 of 0 is 1.0.
"""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple

from service.core.alignment.chain import Pairs, find_fullest, list_positions
from service.core.case import Case, build_call_path
from service.core.checks import WHOLE, Aspect, SubjectOutcome
from service.core.expectations.templates import find_cost
from service.core.gates import published
from service.core.gates.disallowed import list_calls_of_ban, score_banned_call
from service.core.gates.trajectory import match_most
from service.core.outcome import Finding, Outcome, PartialOutcome, Scored, Skipped
from service.core.work_limits import COST_OF_A_VIOLATION

MAX_EXPLAINED_CALLS = 20
"""At most this many calls are examined to explain why an expected call is unmet."""

FitTable = list[list[tuple[int, Outcome]]]
"""For each expected call: the calls of its tool in its turn, and how each fits."""


class Bans(NamedTuple):
    """How many bans there are, how many were broken, by which calls, and why nobody can tell of one."""

    stated: int
    broken: int
    findings: list[Finding]
    open: Skipped | None


class Trajectory(NamedTuple):
    """How a trace meets a trajectory expectation."""

    required: int
    unmet: list[int]
    """The required calls that no actual call meets."""
    extra: list[Finding]
    """A finding for each call that meets no expectation where such calls are not allowed."""
    used: frozenset[int]
    """The steps that meet an expectation."""


class AppleTrajectoryGate(published.PublishedCheck):
    """Score `ordered`, `unordered` and `disallowed` as Apple's TrajectoryExpectation does, by one of its two metrics.

    `all_pass`: 1.0 if every expectation is met, no disallowed call was made and, where `allow_extra` is false, no unexpected
    one; else 0.0. `percentage`: the number of expectations met over their total: the expected calls (those of a group counted
    one by one), the disallowed entries (met if kept; left out with `percentage_mode: apple`), and the unexpected calls where
    these are not allowed. Each call meets at most one expectation, and as many expectations are met as can be. Arguments that
    an expectation does not name are free. 0 of 0 is 1.0, with the finding `vacuous`; a trace without messages and calls is
    not captured, not a pass. Findings: `unmet`, `disallowed_call`, `extra_call`. With `compat` in the rubric, Apple's forward
    scan finds the calls. Source: Apple's Evaluations framework, ToolsAllPass and ToolsPercentagePass.
    """

    kind: Literal["apple_trajectory"] = "apple_trajectory"
    system: ClassVar[str] = "Apple"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"args", "disallowed", "extra", "order", "tools"})
    metric: Literal["all_pass", "percentage"] = "percentage"
    percentage_mode: Literal["callgrade", "apple"] = "callgrade"
    """Whether disallowed entries count in the percentage: with `callgrade` they do, with `apple` they do not."""

    def look(self, case: Case) -> list[SubjectOutcome]:
        """Return one outcome for the trace."""
        if case.expectation is None:
            return [(WHOLE, Skipped("not_applicable", "no trajectory was expected"))]
        if not case.trace.messages and not case.trace.steps:
            reason = "the trace is empty: there is nothing to hold the expectation against"
            return [(WHOLE, Skipped("not_captured", reason))]
        bans = case.once("apple_bans", lambda: _check_bans(case))
        table = case.once("apple_table", lambda: [_fit_calls(case, n) for n in range(len(case.expected_calls))])
        ours = case.once("apple_trajectory", lambda: _match_calls(case, table, scan=False))
        value, all_pass = self._compute(ours, bans, counted=self.percentage_mode == "callgrade")
        open_parts = [fit for n in ours.unmet for _, fit in table[n] if isinstance(fit, Skipped)]
        if bans.open and (all_pass or self.metric == "percentage"):
            open_parts.append(bans.open)
        if open_parts:
            return [(WHOLE, open_parts[0])]
        if case.matching.compat:
            published.spend_on_pairs(case, each=2)
            raw, _ = self._compute(_match_calls(case, table, scan=True), bans, counted=False)
            why = "it scans forward greedily, and what is disallowed is no part of its percentage"
            return self.give_own_number(case, raw, why)
        findings = [*_explain_unmet(case, ours, table), *bans.findings, *ours.extra]
        if not (ours.required or ours.extra or (bans.stated and self.percentage_mode == "callgrade")):
            findings.append(Finding("vacuous", "nothing was expected that this could count: 0 of 0", "/expected"))
        return [(WHOLE, Scored(value, all_pass, tuple(findings)))]

    def _compute(self, found: Trajectory, bans: Bans, *, counted: bool) -> tuple[float, bool]:
        """Return the metric, and whether all passed. `counted`: bans are a part of the percentage."""
        all_pass = not (found.unmet or bans.broken or found.extra)
        if self.metric == "all_pass":
            return float(all_pass), all_pass
        total = found.required + len(found.extra) + bans.stated * counted
        met = found.required - len(found.unmet) + (bans.stated - bans.broken) * counted
        return met / total if total else 1.0, all_pass


def _check_bans(case: Case) -> Bans:
    """Look for calls that break a ban. Violations are charged for: there may be as many as bans times calls."""
    count, broken, findings, open_part = 0, 0, list[Finding](), None
    for ban, turn in [(ban, turn) for _, scope, turn in case.scopes for _, ban in scope.bans]:
        outcomes = [score_banned_call(case, ban, step) for step in list_calls_of_ban(case, ban, turn)]
        case.meter.spend("comparisons", COST_OF_A_VIOLATION * sum([outcome is not None for outcome in outcomes]))
        breaking = [finding for one in outcomes if isinstance(one, Scored) for finding in one.findings]
        count, broken, findings = count + 1, broken + bool(breaking), findings + breaking
        for one in outcomes:
            if isinstance(one, PartialOutcome):
                open_part = open_part or Skipped("not_asked", "no judge is asked for a ban in words here")
            open_part = open_part or (one if isinstance(one, Skipped) else None)
    return Bans(count, broken, findings, open_part)


def _fit_calls(case: Case, n: int) -> list[tuple[int, Outcome]]:
    """List the calls of an expected call's tool, in its turn, and how each fits. Charges for their comparison."""
    expected, found = case.expected_calls[n], list[tuple[int, Outcome]]()
    options = [(one, 16 + 2 * len(one.args or ()) * find_cost(one.args)) for _, one in expected.options]
    idle = {turn for _, scope, turn in case.scopes if scope.no_calls} if expected.turn is None else ()
    keys = {case.make_name_key(pattern.tool) for pattern, _ in options}
    for j in sorted([j for key in keys for j in case.comparisons.steps_by_tool.get(key, ())]):
        step = case.trace.steps[j]
        for pattern, cost in options if expected.turn in (None, step.turn) and step.turn not in idle else ():
            if case.is_same_name(pattern.tool, step.call.name):
                case.meter.spend("comparisons", cost)
                extra = pattern.extra_args in (None, "allow")
                found.append((j, published.fit_pattern(case, pattern, step, extra=extra)))
    return found


def _match_calls(case: Case, table: FitTable, *, scan: bool) -> Trajectory:
    """Match calls: as many as can be, each with one expectation, or as Apple's forward scan finds them.

    In the scan, each position takes the first calls that fit after those of the position before.
    """
    expected, calls = case.expected_calls, range(len(case.trace.steps))
    required = [n for n, one in enumerate(expected) if one.required]
    unordered = [n for n in required if expected[n].position is None]
    positions = list_positions(expected, [n for n in required if expected[n].position is not None])
    meeting = [frozenset([j for j, fit in fits if isinstance(fit, Scored) and fit.passed]) for fits in table]
    pairs, last = Pairs(), -1
    if scan:
        for position in positions:
            here = published.pair_greedily(position, calls[last + 1 :], lambda n, call: call in meeting[n])
            pairs, last = pairs | here, max([last, *here.values()])
        for n in unordered:
            pairs |= published.pair_greedily([n], calls, lambda n, call: call in meeting[n])
    else:
        pairs = match_most(case, positions, unordered, meeting)
        optional = [n for n, one in enumerate(expected) if not one.required]
        taken = frozenset(pairs.values())
        free = [call for call in calls if call not in taken]
        pairs |= find_fullest(optional, free, lambda n, call: call in meeting[n], meter=case.meter)
    used = frozenset(pairs.values())
    extra = [
        Finding("extra_call", f"{step.call.name} was not expected", build_call_path(step))
        for step in case.trace.steps
        if step.index not in used and not _allows_others(case, step.turn)
    ]
    return Trajectory(len(required), [n for n in required if n not in pairs], extra, used)


def _allows_others(case: Case, turn: int) -> bool:
    """Whether calls that meet no expectation are allowed in a turn: the turn decides, else the trace, else the rubric."""
    said = [bool(one.allow_extra) for one in case.find_scopes(turn) if one.no_calls or one.allow_extra is not None]
    return said[-1] if said else case.matching.extra_calls == "allow"


def _explain_unmet(case: Case, found: Trajectory, table: FitTable) -> list[Finding]:
    """Explain why expected calls are unmet: not made, made wrongly, or made out of order."""
    findings: list[Finding] = []
    for n in found.unmet:
        unused = [fit for j, fit in table[n] if j not in found.used and isinstance(fit, Scored)][:MAX_EXPLAINED_CALLS]
        why = "was called, but out of order" if unused else "was expected and not called"
        if unused and not any(fit.passed for fit in unused):
            why = f"was called, but {unused[0].findings[0].message}"
        findings.append(Finding("unmet", f"{case.expected_calls[n].tools} {why}", case.expected_calls[n].path))
    return findings
