"""Calls that their runtime refuses, and those that it makes: what the second came to does not blame the model for the first.

A call whose arguments break the schema of its tool never reaches the tool. Its rate stands by itself; beside it stands how many
of the calls that were made are right, and how many of all that were attempted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from service.core.outcome import Scored, is_open
from service.core.report import StepVerdict
from service.reporting.summary.layers import LAYERS
from service.reporting.summary.samples import PASSING, Sample
from service.stats.rates import CaseBounds, Estimate, IntervalMethod, estimate_with_bounds

SCHEMA_CRITERIA = dict(LAYERS)["schema"]


@dataclass(frozen=True, slots=True)
class CallRates:
    """All calls of a set."""

    calls: int
    refused: Estimate
    """The share of calls that break the schema of their tool, of those that were held against one."""
    executed: Estimate
    """The share of calls that pass, of those that do not break their schema."""
    attempted: Estimate
    """The share of all calls that pass."""


def summarize_calls(samples: Sequence[Sample], interval: IntervalMethod) -> CallRates:
    """The rates over every call of the samples; those of one case are resampled together."""
    return CallRates(
        sum(len(sample.report.steps) for sample in samples),
        *(
            estimate_with_bounds(list_call_ends(samples, read), interval)
            for read in (read_refused, read_executed, read_pass)
        ),
    )


CallReader = Callable[[StepVerdict], tuple[float, float] | None]
"""What a call adds to a rate, at worst and at best; None: nothing."""


def list_call_ends(samples: Iterable[Sample], read: CallReader) -> Iterator[CaseBounds]:
    """What each call adds to a rate."""
    for n, sample in enumerate(samples):
        group = sample.group or (f"case {n}" if len(sample.report.steps) > 1 else None)
        for step in sample.report.steps:
            found = read(step)
            if found is not None:
                yield CaseBounds(group, *found, found[0] if found[0] == found[1] else None)


def read_refused(step: StepVerdict) -> tuple[float, float] | None:
    """Whether a call breaks the schema of its tool."""
    outcomes = [step.outcomes[name] for name in SCHEMA_CRITERIA if name in step.outcomes]
    scored = [one for one in outcomes if isinstance(one, Scored)]
    if scored:
        broken = float(any(not one.passed for one in scored))
        return broken, broken
    return (0.0, 1.0) if any(map(is_open, outcomes)) else None


def read_executed(step: StepVerdict) -> tuple[float, float] | None:
    """Whether a call passes that does not break its schema; one of which that is not known is made, for all one knows."""
    return None if read_refused(step) == (1.0, 1.0) else read_pass(step)


def read_pass(step: StepVerdict) -> tuple[float, float] | None:
    """Whether a call passes."""
    if step.verdict == "not_applicable":
        return None
    passed = float(step.verdict in PASSING)
    return (0.0, 1.0) if step.verdict == "abstain" else (passed, passed)
