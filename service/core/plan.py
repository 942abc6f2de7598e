"""The first half of scoring: code decides what it can, and what is left becomes questions for a judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from service.core.case import Alignment, Case
from service.core.checks import WHOLE, Subject
from service.core.decisions import Decision, decisions, unexpected
from service.core.expect import Expectation
from service.core.judges import Ask, JudgeCheck
from service.core.outcome import Outcome, Scored, Skipped
from service.core.rubric import Column, Rubric
from service.core.trace import Trace

Cell = tuple[Subject, Outcome | Ask]
"""What one criterion says of one thing: an outcome, or the question whose reply will be one."""


class Filled(NamedTuple):
    """A criterion with its cells, at least one."""

    column: Column
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class NotAsked:
    """A question that was not put to a judge, and why."""

    criterion: str
    judge: str
    step: int | None
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
    blocked: tuple[NotAsked, ...]
    decisions: tuple[Decision, ...]
    unexpected: frozenset[int]
    """The steps that are a call too many."""

    @property
    def asks(self) -> tuple[Ask, ...]:
        """What a judge would be asked, in order."""
        return tuple(found for _, cells in self.filled for _, found in cells if isinstance(found, Ask))


NO_ALIGNMENT = Alignment((), (), ())
NOTHING_FOUND: Cell = (WHOLE, Skipped("not_applicable", "nothing to look at"))


def plan(trace: Trace, rubric: Rubric, expectation: Expectation | None = None) -> Plan:
    """Runs every deterministic check and lists the questions for judges. Pure; raises KeyError for an unknown judge."""
    case = Case(trace, expectation, rubric.matching)
    seen = tuple([Filled(column, _look(case, column, rubric)) for column in rubric.columns])
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
        blocked=tuple(_not_asked(seen, filled)) if blockers.by_rank else (),
        decisions=decisions(case),
        unexpected=unexpected(case),
    )


def _look(case: Case, column: Column, rubric: Rubric) -> list[Cell]:
    check = column.check
    found: Iterable[Cell]
    if isinstance(check, JudgeCheck):
        found = check.asks(case, criterion=column.id, judges=rubric.known_judges)
    else:
        found = check.look(case)
    return list(found) or [NOTHING_FOUND]


class _Blockers:
    """What failed at a blocking check, by stage and by what it leaves nothing to look at."""

    def __init__(self, seen: Iterable[Filled]) -> None:
        self.by_rank: dict[int, dict[Subject, str]] = {}
        for column, cells in seen:
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
    column, cells = filled
    active = blockers.before(column.rank + column.judged)
    alone = column.check.stands_alone
    return Filled(column, [_blocked_cell(cell, active, alone=alone) for cell in cells]) if active else filled


def _blocked_cell(cell: Cell, active: list[dict[Subject, str]], *, alone: bool) -> Cell:
    subject, outcome = cell
    if isinstance(outcome, Skipped) and outcome.cause == "not_applicable":
        return cell
    blocker = next((found[at] for found in active for at in _covering(subject, alone=alone) if at in found), None)
    if blocker is None:
        return cell
    findings = outcome.findings if isinstance(outcome, Scored) else ()
    return subject, Skipped("blocked", f"blocked by {blocker}", findings)


def _not_asked(seen: Iterable[Filled], filled: Iterable[Filled]) -> Iterator[NotAsked]:
    for (column, before), (_, after) in zip(seen, filled, strict=True):
        for (subject, ask), (_, outcome) in zip(before, after, strict=True):
            if isinstance(ask, Ask) and isinstance(outcome, Skipped):
                yield NotAsked(column.id, ask.judge.id, subject.step, outcome.reason)
