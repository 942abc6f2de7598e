"""Calls that must not be made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from service.core.alignment.binding import bind
from service.core.case import Case, build_call_path, is_name_pattern
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
    """Check each ban of `disallowed`, and `allowed`: 1.0 where it was kept, 0.0 for each call that breaks it.

    Only a call that matches all `args` of a ban breaks it; an absent argument has the default of the tool's schema. Where the
    ban names a tool to `prefer`, the finding says so: a cheaper tool would have done. A ban that no tool on offer could break
    does not apply. Findings: `disallowed_call`, and `ban_matches`, which lists the tools that a pattern matches.
    """

    kind: Literal["disallowed"] = "disallowed"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"disallowed"})
    idle_outcome: ClassVar[Skipped | None] = NOTHING_DISALLOWED

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Yield one outcome for each ban that was kept, and one for each call that breaks one."""
        bans = [(f"{path}{below}", ban, turn) for path, scope, turn in case.scopes for below, ban in scope.bans]
        if not bans:
            yield WHOLE, NOTHING_DISALLOWED
        for path, ban, turn in bans:
            yield from _check_ban(case, path, ban, turn)


def _check_ban(case: Case, path: str, ban: Ban, turn: int | None) -> Iterable[SubjectOutcome]:
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
        yield Subject(turn=turn), case.once(("kept", id(ban)), lambda: _score_kept(case, path, ban))


def _score_kept(case: Case, path: str, ban: Ban) -> Outcome:
    """Score a ban that was kept, unless nothing on offer could break it."""
    offered = case.trace.tools
    if offered is None or case.trace.unread or case.find_named_steps(ban.tool, ban.but):
        return PERFECT
    case.meter.spend("comparisons", 4 * len(offered) * (1 + len(ban.but)))
    matched = [tool.name for tool in offered if case.is_named(ban.tool, tool.name, ban.but)]
    if not matched:
        return Skipped("not_applicable", f"{_name_ban(ban)}: nothing that the trace offers could break it")
    if not is_name_pattern(ban.tool):
        return PERFECT
    return PERFECT.add_findings(Finding("ban_matches", f"{_name_ban(ban)}: bans {join_names(matched)}", path))


def list_calls_of_ban(case: Case, ban: Ban, turn: int | None) -> list[Step]:
    """List the calls of the tools that the ban names: only these can break it."""
    made = [case.trace.steps[j] for j in case.find_named_steps(ban.tool, ban.but)]
    return [step for step in made if turn in (None, step.turn)]


def score_banned_call(case: Case, ban: Ban, step: Step) -> Outcome | PartialOutcome | None:
    """Score a call of a banned tool: a failure if it breaks the ban, open if nobody can tell; None if it is not banned."""
    if ban.args is not None and step.call.arguments is None:
        if not step.call.captured:
            return Skipped("not_captured", "the trace does not record the arguments of the call", open=True)
        return Skipped("unread", f"the arguments are no JSON object: {step.call.problem}")
    matches = _match_arguments(case, ban, step)
    if matches is None or any(isinstance(match, Match) and not match.passed for _, match in matches):
        return None
    for name, match in matches:
        if isinstance(match, OpenComparison) and not isinstance(match, WordsComparison):
            return Skipped("too_long", f"{name}: {match.reason}")
    name = step.call.name
    message = case.once(("why", id(ban), name), lambda: explain_ban(ban, name))
    finding = Finding("disallowed_call", message, build_call_path(step))
    path = f"{build_call_path(step)}/arguments"
    open_values = [
        OpenValue(m.words, m.value, f"{path}/{escape_token(name)}")
        for name, m in matches
        if isinstance(m, WordsComparison)
    ]
    if open_values:
        return PartialOutcome((open_values[0],), ban_finding=finding) if len(open_values) == 1 else _SEVERAL_OPEN
    return build_failure(0.0, finding)


_SEVERAL_OPEN = Skipped("not_asked", "a ban may leave one argument to a judge, not several")


def _match_arguments(case: Case, ban: Ban, step: Step) -> list[tuple[str, Match | OpenComparison]] | None:
    """Compare the ban's arguments with the call's; None where the call lacks an argument."""
    case.meter.spend("comparisons", 12 + 2 * len(ban.args or ()))
    if ban.args is None:
        return []
    args, schema = ban.args, case.find_validator(step)
    actual = {**(schema.defaults if schema else {}), **(step.call.arguments or {})}
    if step.call.arguments is None or not args.keys() <= actual.keys():
        return None
    bound = case.once(("ban", id(ban)), lambda: [bind(name, value, critics={}) for name, value in args.items()])
    if case.once(("matchers", id(ban)), lambda: has_matcher(args)):
        case.meter.spend("comparisons", COST_OF_A_MATCHER * find_cost(args) * len(args))
        plain = case.once(("texts", id(ban)), lambda: ban.model_dump(mode="json", include={"args"}))
        case.meter.spend("characters", find_cost(args) * count_text_chars([actual, plain]))
    return [(one.name, one.match(actual[one.name])) for one in bound]


def explain_ban(ban: Ban, name: str) -> str:
    """Explain why a call of this tool breaks the ban."""
    why = f" by {ban.tool}" if is_name_pattern(ban.tool) else ""
    if ban.but:
        why = f": only {join_names(ban.but)} may be called" if ban.tool == "*" else f" by {_name_ban(ban)}"
    reason = f": {ban.reason}" if ban.reason else ""
    prefer = f"; {ban.prefer} would have done" if ban.prefer else ""
    return f"{name} is disallowed{why}{reason}{prefer}"


def _name_ban(ban: Ban) -> str:
    return f"{ban.tool} but {join_names(ban.but)}" if ban.but else ban.tool


MAX_NAMES_LISTED = 5


def join_names(names: Sequence[str]) -> str:
    """Join the first few names, and say how many there are beyond them."""
    more = len(names) - MAX_NAMES_LISTED
    return ", ".join(names[:MAX_NAMES_LISTED]) + (f" and {more} more" if more > 0 else "")
