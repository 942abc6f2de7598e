"""What scoring a run of records gives: a report or a refusal for each, and a tally of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import fsum

from service.cli.console import number, plural
from service.cli.inputs import Asked, Inputs, Refused
from service.core.outcome import Errored, Outcome, Scored
from service.core.report import Report, Verdict
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

    def add(self, result: Result) -> None:
        """Count one more."""
        if isinstance(result, Refused):
            self.refused += 1
            return
        report = result.report
        self.verdicts[report.verdict] += 1
        self.rubrics.add(f"{report.rubric.id}@{report.rubric.version}")
        self.skipped.update(cause for outcome in outcomes_of(report) if (cause := _cause(outcome)))
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
            yield "not measured: " + ", ".join(f"{count} {cause}" for cause, count in sorted(self.skipped.items()))
        if self.refused:
            yield f"not scored: {plural(self.refused, 'record')}"


def outcomes_of(report: Report) -> Iterable[Outcome]:
    """Every outcome of a report: what belongs to no step first."""
    for criterion in report.criteria:
        yield from (elsewhere.outcome for elsewhere in criterion.outcomes)
    for step in report.steps:
        yield from step.outcomes.values()


def _cause(outcome: Outcome) -> str | None:
    if isinstance(outcome, Scored):
        return None
    return f"errored ({outcome.cause})" if isinstance(outcome, Errored) else outcome.cause
