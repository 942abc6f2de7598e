"""Score Apple's trajectory expectations: whether every expectation was met, and the share that was.

`service.core.methods.apple_number` computes Apple's own number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations, islice
from typing import ClassVar, Literal, NamedTuple

from service.core.alignment.chain import Pairs, find_fullest, find_longest_chain, list_positions
from service.core.case import Case, build_call_path
from service.core.checks import WHOLE, Aspect, Check, SubjectOutcome
from service.core.expectations.expectation import Ban, CallPattern, ExpectedCall
from service.core.expectations.templates import find_cost
from service.core.gates.compat import PatternFit, build_method_score, fit_pattern, fits, spend_on_pairs
from service.core.gates.disallowed import explain_ban, list_calls_of_ban, score_banned_call
from service.core.methods.apple_number import compute_metrics
from service.core.outcome import PERFECT, Finding, Outcome, PartialOutcome, Scored, Skipped, build_failure
from service.core.trace import Step
from service.core.work_limits import COST_OF_A_VIOLATION

MAX_CONTESTED_CALLS = 6
"""Up to this many calls that could meet an ordered as well as an unordered expectation, every way to share them is tried."""

MAX_EXPLAINED_CALLS = 20
"""At most this many calls are examined to explain why an expected call is unmet."""

MeetingTable = list[frozenset[int]]
"""For each expected call, the steps that meet it."""


class TrajectoryResult(NamedTuple):
    """How a trace meets a trajectory expectation."""

    pairs: Pairs
    """Expected call -> the step that meets it."""
    required: tuple[int, ...]
    bans: int
    """The number of bans."""
    broken: tuple[Finding, ...]
    """A finding for each call that broke a ban, by ban and call."""
    bans_broken: int
    """The number of bans that were broken."""
    open: Skipped | None
    """Why nobody can tell whether a ban was kept."""
    extra: tuple[Step, ...]
    """Calls that meet no expectation where such calls are not allowed."""
    table: MeetingTable

    @property
    def unmet(self) -> tuple[int, ...]:
        """The required calls that no actual call meets."""
        return tuple(n for n in self.required if n not in self.pairs)

    @property
    def all_pass(self) -> bool:
        """Whether every expectation was met, every ban kept and no call unexpected."""
        return not (self.unmet or self.broken or self.extra)


class AppleTrajectoryGate(Check):
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
    has_own_number: ClassVar[bool] = True
    reads: ClassVar[frozenset[Aspect]] = frozenset({"args", "disallowed", "extra", "order", "tools"})
    metric: Literal["all_pass", "percentage"] = "percentage"
    percentage_mode: Literal["callgrade", "apple"] = "callgrade"
    """Whether disallowed entries count in the percentage: with `callgrade` they do, with `apple` they do not."""

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for the trace."""
        return [(WHOLE, self._score_trajectory(case))]

    def _score_trajectory(self, case: Case) -> Outcome:
        if case.expectation is None:
            return Skipped("not_applicable", "no trajectory was expected")
        if not case.trace.messages and not case.trace.steps:
            return Skipped("not_captured", "the trace is empty: there is nothing to hold the expectation against")
        result = case.once("apple_trajectory", lambda: _match_trajectory(case))
        open_part = next((f.open for n in result.unmet for f in _fit_calls(case, n) if f.open), None)
        if open_part is None and (result.all_pass or self.metric == "percentage"):
            open_part = result.open
        if open_part is not None:
            return open_part
        return self._score_upstream(case, result) if case.matching.compat else self._build_outcome(case, result)

    def _build_outcome(self, case: Case, result: TrajectoryResult) -> Outcome:
        bans = result.bans if self.percentage_mode == "callgrade" else 0
        total = len(result.required) + bans + len(result.extra)
        findings = tuple(_build_findings(case, result))
        if not total:
            findings += (Finding("vacuous", "nothing was expected that this could count: 0 of 0", "/expected"),)
        if result.all_pass:
            return PERFECT.add_findings(*findings)
        good = len(result.required) - len(result.unmet) + (result.bans - result.bans_broken if bans else 0)
        share = good / total if total else 1.0
        return build_failure(0.0 if self.metric == "all_pass" else share, *findings)

    def _score_upstream(self, case: Case, result: TrajectoryResult) -> Outcome:
        spend_on_pairs(case, each=2)
        ordered, unordered = _split_by_order(case, result.required)
        numbers = compute_metrics(
            ordered,
            unordered,
            range(len(case.trace.steps)),
            lambda expected, call: call in result.table[expected],
            broken=bool(result.broken),
            unlisted=[step.index for step in _list_unlisted(case, case.trace.steps)],
        )
        raw = float(numbers.all_pass) if self.metric == "all_pass" else numbers.percentage
        why = "it scans forward greedily, and what is disallowed is no part of its percentage"
        return build_method_score(self, case, raw, system="Apple", why=why)


def _match_trajectory(case: Case) -> TrajectoryResult:
    steps, expected_calls = case.trace.steps, case.expected_calls
    table: MeetingTable = [_find_meeting(case, one) for one in expected_calls]
    required = tuple([n for n, one in enumerate(expected_calls) if one.required])
    pairs = _match_most(case, required, table)
    paired_steps = set(pairs.values())
    free = [n for n in range(len(steps)) if n not in paired_steps]
    optional = [n for n, one in enumerate(expected_calls) if not one.required]
    pairs = pairs | find_fullest(optional, free, lambda expected, call: call in table[expected], meter=case.meter)
    used = set(pairs.values())
    bans = [(ban, turn) for _, scope, turn in case.scopes for _, ban in scope.bans]
    outcomes = [_score_ban(case, ban, turn) for ban, turn in bans]
    broken_by = [[step for step, outcome in of_ban if isinstance(outcome, Scored)] for of_ban in outcomes]
    each = zip(bans, broken_by, strict=True)
    findings = [one for (ban, _), breaking in each for one in _build_ban_findings(ban, breaking)]
    return TrajectoryResult(
        pairs=pairs,
        required=required,
        bans=len(bans),
        broken=tuple(findings),
        bans_broken=sum(map(bool, broken_by)),
        open=next((_keep_open(outcome) for of_ban in outcomes for _, outcome in of_ban if _is_open(outcome)), None),
        extra=tuple(_list_unlisted(case, [step for step in steps if step.index not in used])),
        table=table,
    )


def _is_open(outcome: Outcome | PartialOutcome | None) -> bool:
    return isinstance(outcome, Skipped | PartialOutcome)


def _score_ban(case: Case, ban: Ban, turn: int | None) -> list[tuple[Step, Outcome | PartialOutcome | None]]:
    """Score each call of a ban's tool. Violations are charged for: there may be as many as bans times calls."""
    outcomes = [(step, score_banned_call(case, ban, step)) for step in list_calls_of_ban(case, ban, turn)]
    case.meter.spend("comparisons", COST_OF_A_VIOLATION * sum([outcome is not None for _, outcome in outcomes]))
    return outcomes


def _keep_open(outcome: Outcome | PartialOutcome | None) -> Skipped:
    return (
        outcome if isinstance(outcome, Skipped) else Skipped("not_asked", "no judge is asked for a ban in words here")
    )


def _find_meeting(case: Case, expected_call: ExpectedCall) -> frozenset[int]:
    return frozenset([step.index for step in _find_same_tool(case, expected_call) if _meets(case, expected_call, step)])


def _find_same_tool(case: Case, expected_call: ExpectedCall) -> list[Step]:
    keys = dict.fromkeys([case.make_name_key(pattern.tool) for _, pattern in expected_call.options])
    return [case.trace.steps[j] for j in sorted([j for key in keys for j in case.worths.find_steps(key)])]


def _meets(case: Case, expected_call: ExpectedCall, step: Step) -> bool:
    patterns = _list_patterns(case, expected_call, step)
    case.meter.spend("comparisons", sum([_find_cost(case, pattern) for pattern in patterns]))
    return any(fits(case, p, step, extra=p.extra_args in (None, "allow")) for p in patterns)


def _find_cost(case: Case, pattern: CallPattern) -> int:
    """Return how many comparisons it counts as to compare one call with this pattern."""
    key = ("price", id(pattern))
    return case.once(key, lambda: 16 + 2 * len(pattern.args or ()) * find_cost(pattern.args))


def _list_patterns(case: Case, expected_call: ExpectedCall, step: Step) -> list[CallPattern]:
    """List the patterns of an expected call that are for this call's tool and turn."""
    if expected_call.turn not in (None, step.turn) or (expected_call.turn is None and _is_idle(case, step.turn)):
        return []
    return [pattern for _, pattern in expected_call.options if case.is_same_name(pattern.tool, step.call.name)]


def _fit_calls(case: Case, n: int, used: Collection[int] = ()) -> Iterator[PatternFit]:
    """Yield how each call of its tool fits an expected call, except for calls that are already used."""
    for step in _find_same_tool(case, case.expected_calls[n]):
        if step.index not in used:
            for pattern in _list_patterns(case, case.expected_calls[n], step):
                case.meter.spend("comparisons", _find_cost(case, pattern))
                yield fit_pattern(case, pattern, step, extra=pattern.extra_args in (None, "allow"))


def _is_idle(case: Case, turn: int) -> bool:
    """Whether no call is expected in this turn."""
    return any(scope.no_calls for _, scope, own_turn in case.scopes if own_turn == turn)


def _match_most(case: Case, required: Sequence[int], table: MeetingTable) -> Pairs:
    """Return the most required calls that can be met at once, the ordered ones in order, each by a call of its own.

    Ordered and unordered expectations compete only for calls that could meet either. If these are few, every way to share
    them is tried, which is exact; if they are many, all go to the one side, then all to the other.
    """
    ordered, unordered = _split_by_order(case, required)
    calls = range(len(case.trace.steps))
    in_order = [n for position in ordered for n in position]
    contested = sorted(_find_any_meeting(table, in_order) & _find_any_meeting(table, unordered))
    contested_set = set(contested)
    best: Pairs = {}
    for share in map(frozenset, _list_shares(contested)):
        free = [c for c in calls if c not in contested_set or c in share]
        chain = find_longest_chain(ordered, free, lambda e, c: c in table[e], meter=case.meter)
        used = set(chain.values())
        rest = [c for c in calls if c not in used]
        others = find_fullest(unordered, rest, lambda e, c: c in table[e], meter=case.meter)
        if len(chain) + len(others) > len(best):
            best = chain | others
        if len(best) == len(required):
            break
    return best


def _find_any_meeting(table: MeetingTable, expected: Iterable[int]) -> frozenset[int]:
    """Return the calls that meet any of these expected calls."""
    return frozenset[int]().union(*[table[n] for n in expected])


def _list_shares(contested: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the sets of contested calls that the ordered side may have."""
    if len(contested) > MAX_CONTESTED_CALLS:
        yield from (tuple(contested), ())
        return
    for size in range(len(contested), -1, -1):
        yield from combinations(contested, size)


def _split_by_order(case: Case, required: Sequence[int]) -> tuple[list[list[int]], list[int]]:
    """Split the required calls into the ordered ones, by position, and the unordered ones."""
    unordered = [n for n in required if case.expected_calls[n].position is None]
    unordered_set = set(unordered)
    return list_positions(case.expected_calls, [n for n in required if n not in unordered_set]), unordered


def _list_unlisted(case: Case, steps: Iterable[Step]) -> list[Step]:
    """List the calls that are not allowed, of these that meet no expectation.

    What the turn says takes precedence over what the trace says, and that over the rubric.
    """
    allows: dict[int | None, tuple[int, bool]] = {None: (-1, case.matching.extra_calls == "allow")}
    for n, (_, scope, turn) in enumerate(case.scopes):
        allowed = False if scope.no_calls and not scope.allow_extra else scope.allow_extra
        if allowed is not None:
            allows[turn] = n, allowed
    return [step for step in steps if not max(allows[None], allows.get(step.turn, allows[None]))[1]]


def _build_findings(case: Case, result: TrajectoryResult) -> Iterator[Finding]:
    used = set(result.pairs.values())
    for n in result.unmet:
        yield _explain_unmet(case.expected_calls[n], list(islice(_fit_calls(case, n, used), MAX_EXPLAINED_CALLS)))
    yield from result.broken
    for step in result.extra:
        yield Finding("extra_call", f"{step.call.name} was not expected", build_call_path(step))


def _explain_unmet(expected_call: ExpectedCall, candidate_fits: list[PatternFit]) -> Finding:
    """Explain why an expected call is unmet: not made, made wrongly, or made out of order."""
    if not candidate_fits:
        return Finding("unmet", f"{expected_call.tools} was expected and not called", expected_call.path)
    if any(one.ok for one in candidate_fits):
        return Finding("unmet", f"{expected_call.tools} was called, but out of order", expected_call.path)
    return Finding(
        "unmet", f"{expected_call.tools} was called, but {candidate_fits[0].findings[0].message}", expected_call.path
    )


def _build_ban_findings(ban: Ban, steps: Sequence[Step]) -> list[Finding]:
    """Build a finding for each call that breaks a ban. Those of one tool share one text, since a reason may be long."""
    messages = {name: explain_ban(ban, name) for name in {step.call.name for step in steps}}
    return [Finding("disallowed_call", messages[step.call.name], build_call_path(step)) for step in steps]
