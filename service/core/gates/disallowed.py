"""Calls that must not be made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from service.core.binding import bind
from service.core.case import Case, call_path
from service.core.checks import WHOLE, Check, Seen, Subject
from service.core.critics import Match
from service.core.expect import Ban
from service.core.outcome import PERFECT, Finding, Skipped, failed
from service.core.trace import Step


class DisallowedGate(Check):
    """Each ban of `disallowed`: 1.0 where it was kept, 0.0 for each call that breaks it, with `disallowed_call`.

    A ban with `args` is broken by calls that match all of them. Where it names what to `prefer`, the finding says so: a
    cheaper tool would have done.
    """

    kind: Literal["disallowed"] = "disallowed"

    def look(self, case: Case) -> Iterable[Seen]:
        """One outcome for each ban that was kept, and one for each call that breaks one."""
        bans = [(ban, turn) for _, scope, turn in case.scopes for ban in scope.disallowed]
        seen = [found for ban, turn in bans for found in _kept(case, ban, turn)]
        return seen or [(WHOLE, Skipped("not_applicable", "nothing is disallowed"))]


def _kept(case: Case, ban: Ban, turn: int | None) -> Iterable[Seen]:
    absent = case.absent(turn)
    if absent is not None:
        yield Subject(turn=turn), absent
        return
    broken = [step for step in case.steps_of(turn) if breaks(case, ban, step)]
    if not broken:
        yield Subject(turn=turn), PERFECT
    for step in broken:
        yield case.subjects[step.index], failed(0.0, Finding("disallowed_call", _why(ban), call_path(step)))


def breaks(case: Case, ban: Ban, step: Step) -> bool:
    """Whether the call of this step is a banned one."""
    if not case.same_name(ban.tool, step.call.name):
        return False
    if ban.args is None:
        return True
    given = step.call.arguments
    if given is None:
        return False
    bound = [bind(name, value, critics={}) for name, value in ban.args.items()]
    matches = [b.match(given[b.name], explain=False) for b in bound if b.name in given]
    return len(matches) == len(bound) and all(isinstance(match, Match) and match.passed for match in matches)


def _why(ban: Ban) -> str:
    reason = f": {ban.reason}" if ban.reason else ""
    prefer = f"; {ban.prefer} would have done" if ban.prefer else ""
    return f"{ban.tool} is disallowed{reason}{prefer}"
