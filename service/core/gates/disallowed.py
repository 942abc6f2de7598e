"""Calls that must not be made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from pydantic import JsonValue

from service.core.alignment.binding import bind
from service.core.case import Case, build_call_path
from service.core.checks import WHOLE, Aspect, Check, Subject, SubjectOutcome
from service.core.critics import Match, OpenComparison, WordsComparison
from service.core.expectations.expectation import Ban
from service.core.expectations.templates import find_cost, has_matcher
from service.core.json.pointers import escape_token
from service.core.outcome import PERFECT, Finding, OpenValue, Outcome, PartialOutcome, Skipped, build_failure
from service.core.trace import Step
from service.core.work_limits import COST_OF_A_MATCHER, count_text_chars

NOTHING_DISALLOWED = Skipped("not_applicable", "nothing is disallowed")


class DisallowedGate(Check):
    """Check each ban of `disallowed`: 1.0 where it was kept, 0.0 for each call that breaks it, with `disallowed_call`.

    Only a call that matches all `args` of a ban breaks it. Where the ban names a tool to `prefer`, the finding says so: a
    cheaper tool would have done.
    """

    kind: Literal["disallowed"] = "disallowed"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"disallowed"})
    idle_outcome: ClassVar[Skipped | None] = NOTHING_DISALLOWED

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Yield one outcome for each ban that was kept, and one for each call that breaks one."""
        bans = [(ban, turn) for _, scope, turn in case.scopes for ban in scope.disallowed]
        if not bans:
            yield WHOLE, NOTHING_DISALLOWED
        for ban, turn in bans:
            yield from _check_ban(case, ban, turn)


def _check_ban(case: Case, ban: Ban, turn: int | None) -> Iterable[SubjectOutcome]:
    absent = case.explain_missing_turn(turn)
    if absent is not None:
        yield Subject(turn=turn), absent
        return
    is_kept = True
    for step in list_calls_of_ban(case, ban, turn):
        outcome = score_banned_call(case, ban, step)
        if outcome is not None:
            is_kept = False
            yield case.subjects[step.index], outcome
    if is_kept:
        yield Subject(turn=turn), PERFECT


def list_calls_of_ban(case: Case, ban: Ban, turn: int | None) -> list[Step]:
    """List the calls of the ban's tool: only these can break it."""
    made = [case.trace.steps[j] for j in case.worths.find_steps(case.make_name_key(ban.tool))]
    return [step for step in made if turn in (None, step.turn)]


def score_banned_call(case: Case, ban: Ban, step: Step) -> Outcome | PartialOutcome | None:
    """Score a call under a ban: a failure if it breaks the ban, open if nobody can tell; None if it is not banned."""
    if ban.args is not None and step.call.arguments is None and case.is_same_name(ban.tool, step.call.name):
        return _leave_open(step)
    matches = _match_arguments(case, ban, step)
    if matches is None or any(isinstance(match, Match) and not match.passed for _, match in matches):
        return None
    over_budget = next(
        (
            f"{n}: {m.reason}"
            for n, m in matches
            if isinstance(m, OpenComparison) and not isinstance(m, WordsComparison)
        ),
        "",
    )
    if over_budget:
        return Skipped("too_long", over_budget)
    finding = Finding("disallowed_call", case.once(("why", id(ban)), lambda: _explain_ban(ban)), build_call_path(step))
    path = f"{build_call_path(step)}/arguments"
    open_values = [
        OpenValue(m.words, m.value, f"{path}/{escape_token(name)}")
        for name, m in matches
        if isinstance(m, WordsComparison)
    ]
    if open_values:
        return PartialOutcome((open_values[0],), ban_finding=finding) if len(open_values) == 1 else _SEVERAL_OPEN
    return build_failure(0.0, finding)


def _leave_open(step: Step) -> Skipped:
    """Leave open a call of the banned tool whose arguments nobody can compare with the ban."""
    if not step.call.captured:
        return Skipped("not_captured", "the trace does not record the arguments of the call", open=True)
    return Skipped("unread", f"the arguments are no JSON object: {step.call.problem}")


_SEVERAL_OPEN = Skipped("not_asked", "a ban may leave one argument to a judge, not several")


def _match_arguments(case: Case, ban: Ban, step: Step) -> list[tuple[str, Match | OpenComparison]] | None:
    """Compare the ban's arguments with the call's; None where the tool differs or the call lacks an argument."""
    if not case.is_same_name(ban.tool, step.call.name):
        return None
    case.meter.spend("comparisons", 12 + 2 * len(ban.args or ()))
    if ban.args is None:
        return []
    actual = step.call.arguments
    if actual is None or not ban.args.keys() <= actual.keys():
        return None
    args = ban.args
    bound = case.once(("ban", id(ban)), lambda: [bind(name, value, critics={}) for name, value in args.items()])
    if case.once(("matchers", id(ban)), lambda: has_matcher(args)):
        case.meter.spend("comparisons", COST_OF_A_MATCHER * find_cost(args) * len(args))
        chars = count_text_chars([actual, case.once(("texts", id(ban)), lambda: _render_ban(ban))])
        case.meter.spend("characters", find_cost(args) * chars)
    return [(one.name, one.match(actual[one.name])) for one in bound]


def _render_ban(ban: Ban) -> JsonValue:
    return ban.model_dump(mode="json", include={"args"})


def _explain_ban(ban: Ban) -> str:
    reason = f": {ban.reason}" if ban.reason else ""
    prefer = f"; {ban.prefer} would have done" if ban.prefer else ""
    return f"{ban.tool} is disallowed{reason}{prefer}"
