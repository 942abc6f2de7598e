"""The first half of scoring: code decides what it can, and what is left becomes questions for a judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from service.core.case import Alignment, Case
from service.core.checks import WHOLE, Subject, outcomes_within
from service.core.decisions import Decision, decisions, unexpected
from service.core.expect import Expectation
from service.core.judges import WORDS, Ask, JudgeCheck, is_answered
from service.core.outcome import Outcome, Scored, Skipped
from service.core.partial import Partial
from service.core.rubric import Column, Rubric
from service.core.trace import Trace
from service.core.unread import Looks, leave_open


class Awaiting(NamedTuple):
    """An outcome that code has begun, and the questions whose replies complete it."""

    partial: Partial
    parts: tuple[Ask | Skipped, ...]
    """For each part that is open its question, or why there is none."""

    @property
    def asks(self) -> tuple[Ask, ...]:
        """The questions."""
        return tuple([part for part in self.parts if isinstance(part, Ask)])


Cell = tuple[Subject, Outcome | Ask | Awaiting]
"""What one criterion says of one thing: an outcome, or the questions whose replies will make one."""


class Filled(NamedTuple):
    """A criterion with its cells, at least one."""

    column: Column
    cells: Sequence[Cell]
    open: bool
    """Whether a cell waits for a judge."""
    saved: int = 0
    """How many questions code has answered in the judge's place."""


class Held(NamedTuple):
    """A question that is not put to a judge, and why."""

    ask: Ask
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is known before a judge is asked: the criteria by stage, each with its cells."""

    trace: Trace
    rubric: Rubric
    expectation: Expectation | None
    alignment: Alignment
    wanted: tuple[str, ...]
    """The pointers of the expected calls."""
    due: tuple[str, ...]
    """The tools of the expected calls; of alternatives the first."""
    filled: tuple[Filled, ...]
    blocked: tuple[Held, ...]
    """Questions that a failed check makes needless."""
    saved: int
    """How many questions code has answered in a judge's place."""
    decisions: tuple[Decision, ...]
    unexpected: frozenset[int]
    """The steps that are a call too many."""

    @property
    def asks(self) -> tuple[Ask, ...]:
        """What a judge would be asked, in order."""
        return tuple(
            [ask for filled in self.filled if filled.open for _, found in filled.cells for ask in asks_of(found)]
        )


def asks_of(found: Outcome | Ask | Awaiting) -> tuple[Ask, ...]:
    """The questions of a cell."""
    if isinstance(found, Ask):
        return (found,)
    return found.asks if isinstance(found, Awaiting) else ()


NO_ALIGNMENT = Alignment((), (), ())
NOTHING_SEEN: tuple[Subject, Skipped] = (WHOLE, Skipped("not_applicable", "nothing to look at"))


def plan(trace: Trace, rubric: Rubric, expectation: Expectation | None = None) -> Plan:
    """Runs every deterministic check and lists the questions for judges. Pure; raises KeyError for an unknown judge."""
    case = Case(trace, expectation, rubric.matching)
    seen = _all_seen(case, rubric)
    blockers = _Blockers(seen)
    filled = tuple([_blocked(one, blockers) for one in seen]) if blockers.by_rank else seen
    return Plan(
        trace=trace,
        rubric=rubric,
        expectation=expectation,
        alignment=case.alignment if case.wanted else NO_ALIGNMENT,
        wanted=tuple([wanted.path for wanted in case.wanted]),
        due=tuple([wanted.options[0][1].tool for wanted in case.wanted]),
        filled=filled,
        blocked=tuple(_held(seen, filled)) if blockers.by_rank else (),
        saved=sum([one.saved + _decided(one) for one in filled if one.column.judged]),
        decisions=decisions(case),
        unexpected=unexpected(case),
    )


def _all_seen(case: Case, rubric: Rubric) -> tuple[Filled, ...]:
    """Every criterion with its cells. Code looks first: what it has answered need not be asked."""
    checked = {column.id: _look(case, column, rubric) for column in rubric.columns if not column.judged}
    return tuple([checked.get(column.id) or _ask(case, column, rubric, checked) for column in rubric.columns])


def _look(case: Case, column: Column, rubric: Rubric) -> Filled:
    seen = outcomes_within(case, lambda: column.check.look(case)) or [NOTHING_SEEN]
    if case.trace.unread:
        seen = leave_open(Looks(column.check.looks_at, bool(column.check.aspects())), seen, case.trace.unread)
    if all([not isinstance(found, Partial) for _, found in seen]):  # noqa: C419 (a list is quicker, and short)
        return Filled(column, seen, False)  # pyright: ignore[reportArgumentType] (it holds outcomes alone)
    cells = [(subject, _awaiting(found, column, subject, case, rubric)) for subject, found in seen]
    return Filled(column, cells, any(isinstance(found, Awaiting) for _, found in cells))


def _ask(case: Case, column: Column, rubric: Rubric, checked: Mapping[str, Filled]) -> Filled:
    check = column.check
    if not isinstance(check, JudgeCheck):
        return _look(case, column, rubric)
    before = checked.get(check.unless or "")
    answered = {subject for subject, found in before.cells if isinstance(found, Scored)} if before else set[Subject]()
    judges = rubric.known_judges
    asked = outcomes_within(case, lambda: check.asks(case, criterion=column.id, judges=judges, answered=answered))
    asked = leave_open(Looks(check.parts(rubric.known_judges), False), asked, case.trace.unread)
    if not answered:
        return Filled(column, asked, any(isinstance(found, Ask) for _, found in asked))
    needless = Skipped("not_applicable", f"{check.unless} has decided it")
    cells = [
        (subject, needless if _is_question(found) and is_answered(subject, answered) else found)
        for subject, found in asked
    ]
    saved = sum([found is needless for _, found in cells])
    return Filled(column, cells, any(isinstance(found, Ask) for _, found in cells), saved)


def _is_question(found: Outcome | Ask) -> bool:
    return isinstance(found, Ask | Scored) or (isinstance(found, Skipped) and found.cause == "unread")


def _awaiting(
    found: Outcome | Partial, column: Column, subject: Subject, case: Case, rubric: Rubric
) -> Outcome | Awaiting:
    if not isinstance(found, Partial):
        return found
    judge = rubric.known_judges.get(WORDS)
    tool = None if subject.step is None else case.trace.steps[subject.step].call.name
    parts = [
        one.skipped
        or (
            NO_WORDS
            if judge is None
            else Ask(column.id, judge, subject.step, tool, subject.turn, one.place, one.words, one.value)
        )
        for one in found.open
    ]
    return Awaiting(found, tuple(parts))


NO_WORDS = Skipped("not_asked", f"no judge {WORDS} is known here")


def _decided(filled: Filled) -> int:
    """How many of its questions code has answered."""
    return sum([isinstance(found, Scored) for _, found in filled.cells])


class _Blockers:
    """What failed at a blocking check, by stage and by what it leaves nothing to look at."""

    def __init__(self, seen: Iterable[Filled]) -> None:
        self.by_rank: dict[int, dict[Subject, str]] = {}
        for column, cells, _, _ in seen:
            if column.blocking:
                for subject, outcome in cells:
                    decided_part = outcome.partial if isinstance(outcome, Awaiting) else outcome
                    if isinstance(decided_part, Scored | Partial) and not decided_part.passed:
                        self.by_rank.setdefault(column.rank, {}).setdefault(_reach(subject), column.id)

    def before(self, rank: int) -> list[dict[Subject, str]]:
        """Those of earlier stages."""
        return [found for at, found in sorted(self.by_rank.items()) if at < rank]


def _reach(subject: Subject) -> Subject:
    """What a failure here covers: its step or expected call alone, else its turn, else everything."""
    return (
        Subject(subject.step, subject.expected) if subject.step is not None or subject.expected is not None else subject
    )


def _covering(subject: Subject, *, alone: bool) -> tuple[Subject, ...]:
    """Whatever would cover this, widest first; `alone`: but for a failure at its own step."""
    wide = (WHOLE, Subject(turn=subject.turn))
    return wide if alone else (*wide, _reach(subject))


def _blocked(filled: Filled, blockers: _Blockers) -> Filled:
    """Code is blocked by earlier stages, a judge by its own stage too: asking costs."""
    column = filled.column
    active = blockers.before(column.rank + column.judged)
    if not active:
        return filled
    cells = [_blocked_cell(cell, active, alone=column.check.stands_alone) for cell in filled.cells]
    return Filled(column, cells, filled.open and any(asks_of(found) for _, found in cells), filled.saved)


def _blocked_cell(cell: Cell, active: list[dict[Subject, str]], *, alone: bool) -> Cell:
    subject, outcome = cell
    if isinstance(outcome, Skipped) and outcome.cause == "not_applicable":
        return cell
    blocker = next((found[at] for found in active for at in _covering(subject, alone=alone) if at in found), None)
    if blocker is None:
        return cell
    told = outcome.partial if isinstance(outcome, Awaiting) else outcome
    findings = told.findings if isinstance(told, Scored | Partial) else ()
    return subject, Skipped("blocked", f"blocked by {blocker}", findings)


def _held(seen: Iterable[Filled], filled: Iterable[Filled]) -> Iterator[Held]:
    for before, after in zip(seen, filled, strict=True):
        for (_, open_one), (_, outcome) in zip(before.cells, after.cells, strict=True):
            if isinstance(outcome, Skipped):
                yield from [Held(ask, outcome.reason) for ask in asks_of(open_one)]
