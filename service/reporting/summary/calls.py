"""Calls that their runtime refuses, and calls that it executes, so that a refusal does not blur how the executed calls did.

A call whose arguments break its tool's schema never reaches the tool. The refusal rate stands by itself, followed by the
share of executed calls that pass, and the share of all attempted calls that pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from service.core.outcome import Scored, is_open
from service.core.report import StepVerdict
from service.reporting.statements import PASSING
from service.reporting.summary.layers import LAYERS
from service.reporting.summary.samples import Sample
from service.stats.rates import CaseBounds, Estimate, IntervalMethod, estimate_with_bounds

SCHEMA_CRITERIA = dict(LAYERS)["schema"]


@dataclass(frozen=True, slots=True)
class CallRates:
    """The rates over all calls of a set."""

    calls: int
    refused: Estimate
    """The share of calls that break their tool's schema, among those that were checked against one."""
    executed: Estimate
    """The share of calls that pass, among those that do not break their schema."""
    attempted: Estimate
    """The share of all calls that pass."""


def summarize_calls(samples: Sequence[Sample], interval: IntervalMethod) -> CallRates:
    """Compute the rates over every call of the samples; calls of one case are resampled together."""
    return CallRates(
        sum(len(sample.report.steps) for sample in samples),
        *(
            estimate_with_bounds(list_call_bounds(samples, read), interval)
            for read in (read_refused, read_executed, read_pass)
        ),
    )


CallReader = Callable[[StepVerdict], tuple[float, float] | None]
"""Reads what a call adds to a rate, at worst and at best; None: nothing."""


def list_call_bounds(samples: Iterable[Sample], read: CallReader) -> Iterator[CaseBounds]:
    """Yield what each call adds to a rate."""
    for n, sample in enumerate(samples):
        group = sample.group or (f"case {n}" if len(sample.report.steps) > 1 else None)
        for step in sample.report.steps:
            bounds = read(step)
            if bounds is not None:
                yield CaseBounds(group, *bounds, bounds[0] if bounds[0] == bounds[1] else None)


def read_refused(step: StepVerdict) -> tuple[float, float] | None:
    """Read whether a call breaks the schema of its tool."""
    outcomes = [step.outcomes[name] for name in SCHEMA_CRITERIA if name in step.outcomes]
    scored = [one for one in outcomes if isinstance(one, Scored)]
    if scored:
        broken = float(any(not one.passed for one in scored))
        return broken, broken
    return (0.0, 1.0) if any(map(is_open, outcomes)) else None


def read_executed(step: StepVerdict) -> tuple[float, float] | None:
    """Read whether a call passes, unless it breaks its schema; where that is open, it may do either."""
    refused = read_refused(step)
    return None if refused == (1.0, 1.0) else refused if refused == (0.0, 1.0) else read_pass(step)


def read_pass(step: StepVerdict) -> tuple[float, float] | None:
    """Read whether a call passes."""
    if step.verdict == "not_applicable":
        return None
    passed = float(step.verdict in PASSING)
    return (0.0, 1.0) if step.verdict == "undecided" else (passed, passed)
