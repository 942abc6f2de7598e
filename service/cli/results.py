"""What scoring a run of records gives: a report or a refusal for each, and a tally of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import fsum
from typing import NamedTuple

from service.cli.console import number, plural
from service.cli.inputs import Asked, Inputs, Refused
from service.core.outcome import Errored, Finding, Outcome, Scored
from service.core.report import Report, Verdict
from service.core.rubric import Stage
from service.errors import InputError
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
        """What the trace is called: its id, else its number."""
        return self.report.trace_id or f"#{self.number}"


Result = Graded | Refused


def graded(inputs: Inputs) -> Iterator[Result]:
    """The result of every record, in order."""
    for position, asked in enumerate(inputs, start=1):
        yield asked if isinstance(asked, Refused) else _grade(asked, position, inputs)


def _grade(asked: Asked, position: int, inputs: Inputs) -> Result:
    try:
        return Graded(position, asked.place, asked, inputs.engine.answer(asked.request))
    except InputError as error:
        return asked.refused(error)
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

    def add(self, result: Result) -> None:
        """Count one more."""
        if isinstance(result, Refused):
            self.refused += 1
            return
        report = result.report
        self.verdicts[report.verdict] += 1
        self.rubrics.add(f"{report.rubric.id}@{report.rubric.version}")
        self.skipped.update(cause for one in seen(report) if (cause := _cause(one.outcome)))
        self.not_asked += len(report.not_asked)
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
        if self.not_asked:
            yield f"no judge was asked: {plural(self.not_asked, 'question')} (callgrade plan shows them)"
        if self.refused:
            yield f"not scored: {plural(self.refused, 'record')}"


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


def _cause(outcome: Outcome) -> str | None:
    if isinstance(outcome, Scored):
        return None
    return f"errored ({outcome.cause})" if isinstance(outcome, Errored) else outcome.cause
