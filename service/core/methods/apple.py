"""Apple's trajectory expectations: every expectation met, and the share of them that was.

Their own number is that of `service.core.methods.apple_number`.
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
from service.core.gates.disallowed import list_calls_of_ban, score_banned_call
from service.core.methods.apple_number import compute_metrics
from service.core.outcome import PERFECT, Finding, Outcome, PartialOutcome, Scored, Skipped, build_failure
from service.core.trace import Step
from service.core.work_limits import COST_OF_A_VIOLATION

MOST_CONTESTED = 6
"""Up to so many calls that could meet an ordered as well as an unordered expectation, every way to share them is tried."""

MOST_TRIES = 20
"""So many calls are looked at to say what is wrong with an expected one."""

Table = list[frozenset[int]]
"""By expected call the calls made that meet it."""


class TrajectoryResult(NamedTuple):
    """What became of a trajectory expectation."""

    taken: Pairs
    """Expected call -> call made."""
    required: tuple[int, ...]
    bans: int
    broken: tuple[Finding, ...]
    """What broke a ban, by ban and call."""
    bans_broken: int
    open: Skipped | None
    """Why nobody can tell whether a ban was kept."""
    extra: tuple[Step, ...]
    """Calls that meet no expectation where such calls are not allowed."""
    table: Table

    @property
    def unmet(self) -> tuple[int, ...]:
        """Required calls that no call meets."""
        return tuple(n for n in self.required if n not in self.taken)

    @property
    def all_pass(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.unmet or self.broken or self.extra)


class AppleTrajectoryGate(Check):
    """`ordered`, `unordered` and `disallowed` as Apple's TrajectoryExpectation; `metric` names which of its two metrics.

    `all_pass`: every expectation met, no disallowed call, no unexpected one where `allow_extra` is false; 1.0 or 0.0.
    `percentage`: what was met over what there was to meet: the expected calls (those of a group one by one), the disallowed
    entries (met if kept; none with `percentage_mode: apple`), and the unexpected calls where these are not allowed. Each call
    meets at most one expectation, and the most are met that can be. Arguments that an expectation does not name are free.
    Nothing out of nothing is 1.0, with the finding `vacuous`; a trace without messages and calls is not captured, not a pass.
    Findings: `unmet`, `disallowed_call`, `extra_call`. With `compat` in the rubric: found by Apple's forward scan. Source:
    Apple's Evaluations framework, ToolsAllPass and ToolsPercentagePass.
    """

    kind: Literal["apple_trajectory"] = "apple_trajectory"
    has_own_number: ClassVar[bool] = True
    reads: ClassVar[frozenset[Aspect]] = frozenset({"args", "disallowed", "extra", "order", "tools"})
    metric: Literal["all_pass", "percentage"] = "percentage"
    percentage_mode: Literal["callgrade", "apple"] = "callgrade"
    """Whether disallowed entries are part of the percentage."""

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """One outcome for the trace."""
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
    steps, wanted = case.trace.steps, case.expected_calls
    table: Table = [_find_meeting(case, one) for one in wanted]
    required = tuple([n for n, one in enumerate(wanted) if one.required])
    taken = _match_most(case, required, table)
    taken_calls = set(taken.values())
    free = [n for n in range(len(steps)) if n not in taken_calls]
    optional = [n for n, one in enumerate(wanted) if not one.required]
    taken = taken | find_fullest(optional, free, lambda expected, call: call in table[expected], meter=case.meter)
    used = set(taken.values())
    bans = [(ban, turn) for _, scope, turn in case.scopes for ban in scope.disallowed]
    looks = [_look_at_calls(case, ban, turn) for ban, turn in bans]
    broken_by = [[step for step, outcome in of_ban if isinstance(outcome, Scored)] for of_ban in looks]
    each = zip(bans, broken_by, strict=True)
    findings = [one for (ban, _), breaking in each for one in _build_ban_findings(ban, breaking)]
    return TrajectoryResult(
        taken=taken,
        required=required,
        bans=len(bans),
        broken=tuple(findings),
        bans_broken=sum(map(bool, broken_by)),
        open=next((_keep_open(outcome) for of_ban in looks for _, outcome in of_ban if _is_open(outcome)), None),
        extra=tuple(_list_unlisted(case, [step for step in steps if step.index not in used])),
        table=table,
    )


def _is_open(outcome: Outcome | PartialOutcome | None) -> bool:
    return isinstance(outcome, Skipped | PartialOutcome)


def _look_at_calls(case: Case, ban: Ban, turn: int | None) -> list[tuple[Step, Outcome | PartialOutcome | None]]:
    """What of each call of its tool a ban says. What it finds is dear, and may be as much as bans times calls."""
    found = [(step, score_banned_call(case, ban, step)) for step in list_calls_of_ban(case, ban, turn)]
    case.meter.spend("comparisons", COST_OF_A_VIOLATION * sum([outcome is not None for _, outcome in found]))
    return found


def _keep_open(outcome: Outcome | PartialOutcome | None) -> Skipped:
    return (
        outcome if isinstance(outcome, Skipped) else Skipped("not_asked", "no judge is asked for a ban in words here")
    )


def _find_meeting(case: Case, wanted: ExpectedCall) -> frozenset[int]:
    return frozenset([step.index for step in _find_same_tool(case, wanted) if _meets(case, wanted, step)])


def _find_same_tool(case: Case, wanted: ExpectedCall) -> list[Step]:
    keys = dict.fromkeys([case.make_name_key(pattern.tool) for _, pattern in wanted.options])
    return [case.trace.steps[j] for j in sorted([j for key in keys for j in case.worths.find_steps(key)])]


def _meets(case: Case, wanted: ExpectedCall, step: Step) -> bool:
    patterns = _list_patterns(case, wanted, step)
    case.meter.spend("comparisons", sum([_find_price(case, pattern) for pattern in patterns]))
    return any(fits(case, p, step, extra=p.extra_args in (None, "allow")) for p in patterns)


def _find_price(case: Case, pattern: CallPattern) -> int:
    """The comparisons that a look at one call with this pattern counts as."""
    key = ("price", id(pattern))
    return case.once(key, lambda: 16 + 2 * len(pattern.args or ()) * find_cost(pattern.args))


def _list_patterns(case: Case, wanted: ExpectedCall, step: Step) -> list[CallPattern]:
    """The patterns of an expected call that are of this call's tool and turn."""
    if wanted.turn not in (None, step.turn) or (wanted.turn is None and _is_idle(case, step.turn)):
        return []
    return [pattern for _, pattern in wanted.options if case.is_same_name(pattern.tool, step.call.name)]


def _fit_calls(case: Case, n: int, taken: Collection[int] = ()) -> Iterator[PatternFit]:
    """How the calls of its tool meet an expected call, those aside that are taken."""
    for step in _find_same_tool(case, case.expected_calls[n]):
        if step.index not in taken:
            for pattern in _list_patterns(case, case.expected_calls[n], step):
                case.meter.spend("comparisons", _find_price(case, pattern))
                yield fit_pattern(case, pattern, step, extra=pattern.extra_args in (None, "allow"))


def _is_idle(case: Case, turn: int) -> bool:
    """Whether nothing is to be called in this turn."""
    return any(scope.no_calls for _, scope, of in case.scopes if of == turn)


def _match_most(case: Case, required: Sequence[int], table: Table) -> Pairs:
    """The most required calls that can be met at once, the ordered ones in order, each by a call of its own.

    Ordered and unordered calls compete only for calls that could meet either. Where these are few, every way to share them
    is tried, which is exact; where they are many, all for the one side or all for the other.
    """
    ordered, unordered = _split_by_order(case, required)
    calls = range(len(case.trace.steps))
    places = [n for place in ordered for n in place]
    contested = sorted(_find_any_meeting(table, places) & _find_any_meeting(table, unordered))
    disputed = set(contested)
    best: Pairs = {}
    for ours in map(frozenset, _list_shares(contested)):
        free = [c for c in calls if c not in disputed or c in ours]
        chain = find_longest_chain(ordered, free, lambda e, c: c in table[e], meter=case.meter)
        used = set(chain.values())
        left = [c for c in calls if c not in used]
        others = find_fullest(unordered, left, lambda e, c: c in table[e], meter=case.meter)
        if len(chain) + len(others) > len(best):
            best = chain | others
        if len(best) == len(required):
            break
    return best


def _find_any_meeting(table: Table, expected: Iterable[int]) -> frozenset[int]:
    """The calls that meet any of these."""
    return frozenset[int]().union(*[table[n] for n in expected])


def _list_shares(contested: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Which of the contested calls the ordered side may have."""
    if len(contested) > MOST_CONTESTED:
        yield from (tuple(contested), ())
        return
    for size in range(len(contested), -1, -1):
        yield from combinations(contested, size)


def _split_by_order(case: Case, required: Sequence[int]) -> tuple[list[list[int]], list[int]]:
    """The ordered calls by place, and the unordered ones."""
    unordered = [n for n in required if case.expected_calls[n].position is None]
    apart = set(unordered)
    return list_positions(case.expected_calls, [n for n in required if n not in apart]), unordered


def _list_unlisted(case: Case, steps: Iterable[Step]) -> list[Step]:
    """Those of these calls, each meeting no expectation, that are not fine.

    The turn's word goes before the trace's, the rubric's comes last.
    """
    words: dict[int | None, tuple[int, bool]] = {None: (-1, case.matching.extra_calls == "allow")}
    for n, (_, scope, turn) in enumerate(case.scopes):
        word = False if scope.no_calls and not scope.allow_extra else scope.allow_extra
        if word is not None:
            words[turn] = n, word
    return [step for step in steps if not max(words[None], words.get(step.turn, words[None]))[1]]


def _build_findings(case: Case, result: TrajectoryResult) -> Iterator[Finding]:
    taken = set(result.taken.values())
    for n in result.unmet:
        yield _explain_unmet(case.expected_calls[n], list(islice(_fit_calls(case, n, taken), MOST_TRIES)))
    yield from result.broken
    for step in result.extra:
        yield Finding("extra_call", f"{step.call.name} was not expected", build_call_path(step))


def _explain_unmet(wanted: ExpectedCall, tries: list[PatternFit]) -> Finding:
    """What is wrong with an expected call: not made, made wrongly, or made out of order."""
    if not tries:
        return Finding("unmet", f"{wanted.tools} was expected and not called", wanted.path)
    if any(one.ok for one in tries):
        return Finding("unmet", f"{wanted.tools} was called, but out of order", wanted.path)
    return Finding("unmet", f"{wanted.tools} was called, but {tries[0].findings[0].message}", wanted.path)


def _build_ban_findings(ban: Ban, steps: Iterable[Step]) -> list[Finding]:
    """One text for all, for a reason may be long."""
    said = f"{ban.tool} is disallowed" + (f": {ban.reason}" if ban.reason else "")
    return [Finding("disallowed_call", said, build_call_path(step)) for step in steps]
