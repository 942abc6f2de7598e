"""The first half of scoring: code decides what it can, and what is left becomes questions for a judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from service.core.case import Alignment, Case
from service.core.checks import WHOLE, Subject
from service.core.decisions import Decision, decisions, unexpected
from service.core.expect import Expectation
from service.core.judges import WORDS, Ask, JudgeCheck
from service.core.outcome import Outcome, Scored, Skipped
from service.core.partial import Partial, decided
from service.core.rubric import Column, Rubric
from service.core.trace import Trace


class Awaiting(NamedTuple):
    """An outcome that code has begun, and the questions whose replies complete it."""

    partial: Partial
    asks: tuple[Ask, ...]
    """One for each part that is open."""


Cell = tuple[Subject, Outcome | Ask | Awaiting]
"""What one criterion says of one thing: an outcome, or the questions whose replies will make one."""


class Filled(NamedTuple):
    """A criterion with its cells, at least one."""

    column: Column
    cells: Sequence[Cell]
    open: bool
    """Whether a cell waits for a judge."""


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
    seen = _settled(tuple([_look(case, column, rubric) for column in rubric.columns]))
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
        decisions=decisions(case),
        unexpected=unexpected(case),
    )


def _look(case: Case, column: Column, rubric: Rubric) -> Filled:
    check = column.check
    if isinstance(check, JudgeCheck):
        asked = list(check.asks(case, criterion=column.id, judges=rubric.known_judges))
        return Filled(column, asked, any(isinstance(found, Ask) for _, found in asked))
    seen = list(check.look(case)) or [NOTHING_SEEN]
    if all([not isinstance(found, Partial) for _, found in seen]):  # noqa: C419 (a list is quicker, and short)
        return Filled(column, seen, False)  # pyright: ignore[reportArgumentType] (it holds outcomes alone)
    cells = [(subject, _awaiting(found, column, subject, case, rubric)) for subject, found in seen]
    return Filled(column, cells, any(isinstance(found, Awaiting) for _, found in cells))


def _awaiting(
    found: Outcome | Partial, column: Column, subject: Subject, case: Case, rubric: Rubric
) -> Outcome | Awaiting:
    judge = rubric.known_judges.get(WORDS)
    if judge is None or not isinstance(found, Partial):
        return decided(found, Skipped("not_asked", f"no judge {WORDS} is known here"))
    tool = None if subject.step is None else case.trace.steps[subject.step].call.name
    asks = [
        Ask(column.id, judge, subject.step, tool, subject.turn, one.place, one.words, one.value) for one in found.open
    ]
    return Awaiting(found, tuple(asks))


def _settled(seen: tuple[Filled, ...]) -> tuple[Filled, ...]:
    """The same without the questions that another criterion has answered."""
    by_id = {filled.column.id: filled.cells for filled in seen}
    return tuple([_unless(filled, by_id) if filled.open else filled for filled in seen])


def _unless(filled: Filled, by_id: Mapping[str, Sequence[Cell]]) -> Filled:
    check = filled.column.check
    if not isinstance(check, JudgeCheck) or check.unless is None:
        return filled
    scored = {subject for subject, found in by_id.get(check.unless, ()) if isinstance(found, Scored)}
    answered = Skipped("not_applicable", f"{check.unless} has decided it")
    cells = [
        (subject, answered if isinstance(found, Ask) and not scored.isdisjoint(_around(subject)) else found)
        for subject, found in filled.cells
    ]
    return Filled(filled.column, cells, any(isinstance(found, Ask) for _, found in cells))


def _around(subject: Subject) -> tuple[Subject, ...]:
    """Itself and what holds it: its turn, and the whole."""
    return (WHOLE, Subject(turn=subject.turn), subject)


class _Blockers:
    """What failed at a blocking check, by stage and by what it leaves nothing to look at."""

    def __init__(self, seen: Iterable[Filled]) -> None:
        self.by_rank: dict[int, dict[Subject, str]] = {}
        for column, cells, _ in seen:
            if column.blocking:
                for subject, outcome in cells:
                    if isinstance(outcome, Scored) and not outcome.passed:
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
    return Filled(column, cells, filled.open and any(asks_of(found) for _, found in cells))


def _blocked_cell(cell: Cell, active: list[dict[Subject, str]], *, alone: bool) -> Cell:
    subject, outcome = cell
    if isinstance(outcome, Skipped) and outcome.cause == "not_applicable":
        return cell
    blocker = next((found[at] for found in active for at in _covering(subject, alone=alone) if at in found), None)
    if blocker is None:
        return cell
    findings = outcome.findings if isinstance(outcome, Scored) else ()
    return subject, Skipped("blocked", f"blocked by {blocker}", findings)


def _held(seen: Iterable[Filled], filled: Iterable[Filled]) -> Iterator[Held]:
    for before, after in zip(seen, filled, strict=True):
        for (_, open_one), (_, outcome) in zip(before.cells, after.cells, strict=True):
            if isinstance(outcome, Skipped):
                yield from [Held(ask, outcome.reason) for ask in asks_of(open_one)]
