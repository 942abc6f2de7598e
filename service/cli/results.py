"""What scoring a run of records gives: a report or a refusal for each, and a tally of all."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import fsum
from typing import NamedTuple

from service.cli.console import number, plural
from service.cli.inputs import Asked, Inputs, Refused
from service.core.judged import cost
from service.core.outcome import Errored, Finding, Outcome, Scored
from service.core.report import Report
from service.core.rubric import Stage
from service.core.scores import Verdict
from service.errors import InputError
from service.io.engine import Engine
from service.io.traces import Place

VERDICTS: tuple[Verdict, ...] = ("pass", "warn", "fail", "abstain", "not_applicable")


@dataclass(frozen=True, slots=True)
class Graded:
    """A record that was scored; `number` is its position in the run, from 1."""

    number: int
    place: Place
    request: Asked
    report: Report

    @property
    def name(self) -> str:
        """What the trace is called: as the line of a batch says, else its id, else its number."""
        return self.request.name or self.report.trace_id or f"#{self.number}"


Result = Graded | Refused


TOGETHER = 64
"""How many records that somebody must be waited for are worked on at once."""


def graded(inputs: Inputs) -> Iterator[Result]:
    """The result of every record, in order."""
    with asyncio.Runner() as loop:  # one for all: connections to judges and to their cache belong to it
        for group in _grouped(enumerate(inputs, start=1), inputs.engine):
            if len(group) == 1 and not _waits(group[0][1], inputs.engine):
                yield _grade(*group[0], inputs)
                continue
            yield from loop.run(_grade_all(group, inputs))
        loop.run(inputs.engine.close())


Numbered = tuple[int, Asked | Refused]


def _grouped(records: Iterable[Numbered], engine: Engine) -> Iterator[list[Numbered]]:
    """One by one what code scores alone, together what waits for others."""
    group: list[Numbered] = []
    for record in records:
        waits = _waits(record[1], engine)
        if group and (not waits or len(group) == TOGETHER):
            yield group
            group = []
        if waits:
            group.append(record)
        else:
            yield [record]
    if group:
        yield group


def _waits(record: Asked | Refused, engine: Engine) -> bool:
    if isinstance(record, Refused):
        return False
    try:
        return engine.waits(record.request)
    except InputError:
        return False  # told where it is scored


async def _grade_all(group: Iterable[Numbered], inputs: Inputs) -> list[Result]:
    return list(await asyncio.gather(*[grade_later(number, asked, inputs) for number, asked in group]))


async def grade_later(position: int, asked: Asked | Refused, inputs: Inputs) -> Result:
    """The result of a record that somebody must be waited for."""
    if isinstance(asked, Refused):
        return asked
    with _placed(asked):
        try:
            return Graded(position, asked.place, asked, await inputs.engine.answer_async(asked.request))
        except InputError as error:
            return asked.refused(error)


def _grade(position: int, asked: Asked | Refused, inputs: Inputs) -> Result:
    if isinstance(asked, Refused):
        return asked
    with _placed(asked):
        try:
            return Graded(position, asked.place, asked, inputs.engine.answer(asked.request))
        except InputError as error:
            return asked.refused(error)


@contextmanager
def _placed(asked: Asked) -> Generator[None]:
    """Says of an error of ours at which record it came."""
    try:
        yield
    except Exception as error:
        error.add_note(f"at {asked.place}{asked.place.pointer}")
        raise


@dataclass
class Tally:
    """What a run came to. `scores` are those that were measured."""

    verdicts: Counter[Verdict] = field(default_factory=Counter["Verdict"])
    skipped: Counter[str] = field(default_factory=Counter[str])
    rubrics: set[str] = field(default_factory=set[str])
    total: float = 0.0
    measured: int = 0
    refused: int = 0
    not_asked: int = 0
    replies: int = 0
    hits: int = 0
    costs: list[float | None] = field(default_factory=list["float | None"])
    locked: str | None = None
    """What a provider said that refused the key, or had none."""

    def add(self, result: Result) -> None:
        """Count one more."""
        if isinstance(result, Refused):
            self.refused += 1
            return
        report = result.report
        self.verdicts[report.verdict] += 1
        self.rubrics.add(f"{report.rubric.id}@{report.rubric.version}")
        self.skipped.update(cause for one in seen(report) if (cause := _cause(one.outcome)))
        self.locked = self.locked or next(filter(None, (_refused_key(one.outcome) for one in seen(report))), None)
        self.not_asked += len(report.not_asked)
        self.replies += report.provenance.replies
        self.hits += report.provenance.cache_hits
        if report.provenance.replies:
            self.costs.append(report.provenance.cost_usd)
        if report.score is not None:
            self.total = fsum((self.total, report.score))
            self.measured += 1

    @property
    def mean(self) -> float | None:
        """The mean of the scores; None where none was measured."""
        return self.total / self.measured if self.measured else None

    def lines(self) -> Iterator[str]:
        """The tally in words."""
        scored = self.verdicts.total()
        counts = ", ".join(f"{self.verdicts[v]} {v}" for v in VERDICTS if self.verdicts[v])
        if scored:
            yield f"{plural(scored, 'trace')} scored with {', '.join(sorted(self.rubrics))}: {counts}"
            yield f"mean score {number(self.mean)}"
        if self.skipped:
            yield "skipped: " + ", ".join(f"{count} {cause}" for cause, count in sorted(self.skipped.items()))
        if self.replies:
            yield f"judged: {plural(self.replies, 'reply', 'replies')}, {self.hits} from the cache, {_paid(self.costs)}"
        if self.not_asked:
            yield f"no judge was asked: {plural(self.not_asked, 'question')} (callgrade plan shows them)"
        if self.refused:
            yield f"not scored: {plural(self.refused, 'record')}"


def _paid(costs: Iterable[float | None]) -> str:
    paid = cost(costs)
    return "at an unknown price" if paid is None else f"for ${paid:.4f}"


class Seen(NamedTuple):
    """One outcome of a report, with its criterion and stage; `step` is None for what belongs to no step."""

    criterion: str
    stage: Stage
    step: int | None
    outcome: Outcome


def seen(report: Report) -> Iterator[Seen]:
    """Every outcome by criterion, in the order of the contract."""
    for scored in report.criteria:
        yield from (Seen(scored.id, scored.stage, None, elsewhere.outcome) for elsewhere in scored.outcomes)
        for step in report.steps:
            if scored.id in step.outcomes:
                yield Seen(scored.id, scored.stage, step.index, step.outcomes[scored.id])


def found(report: Report) -> list[Finding]:
    """Every finding once, the first broken step of the contract first."""
    outcomes = (one.outcome for one in seen(report))
    return list(dict.fromkeys(f for o in outcomes if not isinstance(o, Errored) for f in o.findings))


def said(finding: Finding) -> str:
    """The message of a finding, with the argument it is about where the message does not begin with it.

    >>> said(Finding("schema_required", "required, and missing", "/steps/0/call/arguments/order_id"))
    'order_id: required, and missing'
    """
    _, _, argument = finding.path.partition("/call/arguments/")
    return finding.message if finding.message.startswith(argument) else f"{argument}: {finding.message}"


def _refused_key(outcome: Outcome) -> str | None:
    return outcome.reason if isinstance(outcome, Errored) and outcome.cause == "unauthorized" else None


def _cause(outcome: Outcome) -> str | None:
    if isinstance(outcome, Scored):
        return None
    return f"errored ({outcome.cause})" if isinstance(outcome, Errored) else outcome.cause
