"""The first half of scoring: code decides what it can, and what is left becomes questions for a judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from service.core.checks import WHOLE, Alignment, Case, Subject
from service.core.expect import Expectation
from service.core.judges import Ask, JudgeCheck
from service.core.outcome import Outcome, Scored, Skipped
from service.core.rubric import STAGES, Criterion, Rubric
from service.core.trace import Trace


@dataclass(frozen=True, slots=True)
class Cell:
    """One criterion looking at one thing: an outcome, or the question whose reply will be one."""

    criterion: Criterion
    subject: Subject
    outcome: Outcome | Ask


@dataclass(frozen=True, slots=True)
class NotAsked:
    """A question that was not put to a judge, and why."""

    criterion: str
    judge: str
    step: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is known before a judge is asked. `asks` are the open questions, in order."""

    trace: Trace
    rubric: Rubric
    expectation: Expectation | None
    alignment: Alignment
    patterns: tuple[str, ...]
    cells: tuple[Cell, ...]
    blocked: tuple[NotAsked, ...]

    @property
    def asks(self) -> tuple[Ask, ...]:
        """What a judge would be asked."""
        return tuple(cell.outcome for cell in self.cells if isinstance(cell.outcome, Ask))


@dataclass(frozen=True, slots=True)
class _Blocker:
    criterion: str
    rank: int
    subject: Subject


NO_ALIGNMENT = Alignment((), (), ())


def plan(trace: Trace, rubric: Rubric, expectation: Expectation | None = None) -> Plan:
    """Runs every deterministic check and lists the questions for judges. Pure; raises KeyError for an unknown judge."""
    case = Case(trace, expectation, rubric.matching)
    seen = [Cell(criterion, *found) for criterion in rubric.by_stage for found in _look(case, criterion, rubric)]
    blockers = list(_blockers(seen))
    cells = tuple(_blocked(cell, blockers) for cell in seen) if blockers else tuple(seen)
    return Plan(
        trace=trace,
        rubric=rubric,
        expectation=expectation,
        alignment=case.alignment if case.patterns else NO_ALIGNMENT,
        patterns=tuple(path for path, _ in case.patterns),
        cells=cells,
        blocked=tuple(_not_asked(seen, cells)) if blockers else (),
    )


Found = tuple[Subject, Outcome | Ask]
NOTHING_FOUND: list[Found] = [(WHOLE, Skipped("not_applicable", "nothing to look at"))]


def _look(case: Case, criterion: Criterion, rubric: Rubric) -> list[Found]:
    check = criterion.check
    found: list[Found]
    if isinstance(check, JudgeCheck):
        found = list(check.asks(case, criterion=criterion.id, judges=rubric.known_judges))
    else:
        found = list(check.look(case))
    return found or NOTHING_FOUND


def _blockers(cells: Iterable[Cell]) -> Iterator[_Blocker]:
    for cell in cells:
        if cell.criterion.blocking and isinstance(cell.outcome, Scored) and not cell.outcome.passed:
            yield _Blocker(cell.criterion.id, STAGES.index(cell.criterion.stage), cell.subject)


def _blocked(cell: Cell, blockers: list[_Blocker]) -> Cell:
    """The cell, or a blocked one. Code is blocked by earlier stages, a judge by its own stage too: asking costs."""
    outcome = cell.outcome
    if isinstance(outcome, Skipped) and outcome.cause == "not_applicable":
        return cell
    rank = STAGES.index(cell.criterion.stage) + isinstance(outcome, Ask)
    for blocker in blockers:
        if blocker.rank < rank and blocker.subject.covers(cell.subject):
            findings = outcome.findings if isinstance(outcome, Scored) else ()
            return Cell(cell.criterion, cell.subject, Skipped("blocked", f"blocked by {blocker.criterion}", findings))
    return cell


def _not_asked(seen: Iterable[Cell], cells: Iterable[Cell]) -> Iterator[NotAsked]:
    for before, after in zip(seen, cells, strict=True):
        if isinstance(before.outcome, Ask) and isinstance(after.outcome, Skipped):
            yield NotAsked(before.criterion.id, before.outcome.judge, before.subject.step, after.outcome.reason)
