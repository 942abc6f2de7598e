"""Calls that must not be made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from pydantic import JsonValue

from service.core.binding import bind
from service.core.budget import COST_OF_A_MATCHER, text_chars
from service.core.case import Case, call_path
from service.core.checks import WHOLE, Aspect, Check, Seen, Subject
from service.core.critics import Match, Uncompared, Unjudged
from service.core.expect import Ban
from service.core.outcome import PERFECT, Finding, Outcome, Skipped, failed
from service.core.partial import Open, Partial
from service.core.pointers import escaped
from service.core.shapes import cost_of, has_matcher
from service.core.trace import Step


class DisallowedGate(Check):
    """Each ban of `disallowed`: 1.0 where it was kept, 0.0 for each call that breaks it, with `disallowed_call`.

    A ban with `args` is broken by calls that match all of them. Where it names what to `prefer`, the finding says so: a
    cheaper tool would have done.
    """

    kind: Literal["disallowed"] = "disallowed"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"disallowed"})

    def look(self, case: Case) -> Iterable[Seen]:
        """One outcome for each ban that was kept, and one for each call that breaks one."""
        bans = [(ban, turn) for _, scope, turn in case.scopes for ban in scope.disallowed]
        if not bans:
            yield WHOLE, Skipped("not_applicable", "nothing is disallowed")
        for ban, turn in bans:
            yield from _kept(case, ban, turn)


def _kept(case: Case, ban: Ban, turn: int | None) -> Iterable[Seen]:
    absent = case.absent(turn)
    if absent is not None:
        yield Subject(turn=turn), absent
        return
    kept = True
    for step in _of_its_tool(case, ban, turn):
        outcome = _banned(case, ban, step)
        if outcome is not None:
            kept = False
            yield case.subjects[step.index], outcome
    if kept:
        yield Subject(turn=turn), PERFECT


def _of_its_tool(case: Case, ban: Ban, turn: int | None) -> list[Step]:
    made = [case.trace.steps[j] for j in case.worths.steps_of(case.name_key(ban.tool))]
    return [step for step in made if turn in (None, step.turn)]


def _banned(case: Case, ban: Ban, step: Step) -> Outcome | Partial | None:
    """What is wrong with a call under this ban; None where it is not banned."""
    if ban.args is not None and step.call.arguments is None and case.same_name(ban.tool, step.call.name):
        return _untold(step)
    matches = _matches(case, ban, step)
    if matches is None or any(isinstance(match, Match) and not match.passed for _, match in matches):
        return None
    over = next(
        (f"{n}: {m.reason}" for n, m in matches if isinstance(m, Uncompared) and not isinstance(m, Unjudged)), ""
    )
    if over:
        return Skipped("too_long", over)
    found = Finding("disallowed_call", _why(ban), call_path(step))
    path = f"{call_path(step)}/arguments"
    left = [Open(m.words, m.value, f"{path}/{escaped(name)}") for name, m in matches if isinstance(m, Unjudged)]
    if left:
        return Partial((left[0],), banned=found) if len(left) == 1 else _SEVERAL
    return failed(0.0, found)


def _untold(step: Step) -> Skipped:
    """A call of the banned tool whose arguments nobody can hold against the ban."""
    if not step.call.captured:
        return Skipped("not_captured", "the trace does not tell the arguments of the call")
    return Skipped("unread", f"the arguments are no JSON object: {step.call.problem}")


_SEVERAL = Skipped("not_asked", "a ban may leave one argument to a judge, not several")


def breaks(case: Case, ban: Ban, step: Step) -> bool:
    """Whether the call of this step is a banned one, as far as code can tell."""
    matches = _matches(case, ban, step)
    return matches is not None and all(isinstance(match, Match) and match.passed for _, match in matches)


def _matches(case: Case, ban: Ban, step: Step) -> list[tuple[str, Match | Uncompared]] | None:
    """The ban's arguments against the call's; None where the tool is another or an argument is not there."""
    if not case.same_name(ban.tool, step.call.name):
        return None
    case.meter.spend("comparisons", 12 + 2 * len(ban.args or ()))
    if ban.args is None:
        return []
    given = step.call.arguments
    if given is None or not ban.args.keys() <= given.keys():
        return None
    args = ban.args
    bound = case.once(("ban", id(ban)), lambda: [bind(name, value, critics={}) for name, value in args.items()])
    if case.once(("matchers", id(ban)), lambda: has_matcher(args)):
        case.meter.spend("comparisons", COST_OF_A_MATCHER * cost_of(args) * len(args))
        chars = text_chars([given, case.once(("texts", id(ban)), lambda: _texts(ban))])
        case.meter.spend("characters", cost_of(args) * chars)
    return [(one.name, one.match(given[one.name], explain=False)) for one in bound]


def _texts(ban: Ban) -> JsonValue:
    return ban.model_dump(mode="json", include={"args"})


def _why(ban: Ban) -> str:
    reason = f": {ban.reason}" if ban.reason else ""
    prefer = f"; {ban.prefer} would have done" if ban.prefer else ""
    return f"{ban.tool} is disallowed{reason}{prefer}"
