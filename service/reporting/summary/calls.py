"""Calls, whichever case they are of: how many their runtime refuses, how the others did, and what they took.

A call whose arguments break its tool's schema never reaches the tool. The refusal rate stands by itself, so that it does not
blur how the executed calls did: it is followed by the share of executed calls that pass, and of all attempted calls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from service.core.outcome import Scored, is_open
from service.core.report import StepVerdict
from service.core.scores import Range
from service.core.trace import ResourceUsage
from service.reporting.statements import PASSING
from service.reporting.summary.samples import Sample
from service.stats.intervals import choose_interval
from service.stats.rates import CaseBounds, Estimate, compute_percentile, estimate_with_bounds

SCHEMA = "schema"
"""The criterion that a refused call fails."""


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


@dataclass(frozen=True, slots=True)
class Percentiles:
    """The 50th, 95th and 99th percentile of the `known` values."""

    known: int
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class ToolUsage:
    """What the calls of one tool took, as far as their traces say; None where none says."""

    tool: str
    calls: int
    """How many calls of it were made."""
    duration_s: Percentiles | None
    cost_usd: Percentiles | None


def summarize_calls(samples: Sequence[Sample]) -> CallRates:
    """Compute the rates over every call of the samples."""
    rates = {name: estimate_calls(samples, name) for name in CALL_READERS}
    return CallRates(sum(len(sample.report.steps) for sample in samples), **rates)


def estimate_calls(samples: Iterable[Sample], rate: str) -> Estimate:
    """Estimate a rate in CALL_READERS; calls of one case are resampled together."""
    return estimate_with_bounds(_iter_bounds(samples, CALL_READERS[rate]), choose_interval)


def _iter_bounds(samples: Iterable[Sample], read: Callable[[StepVerdict], Range | None]) -> Iterator[CaseBounds]:
    for n, sample in enumerate(samples):
        group = sample.group or (f"case {n}" if len(sample.report.steps) > 1 else None)
        for step in sample.report.steps:
            bounds = read(step)
            if bounds is not None:
                yield CaseBounds(group, *bounds, bounds[0] if bounds[0] == bounds[1] else None)


def _read_refused(step: StepVerdict) -> Range | None:
    outcome = step.outcomes.get(SCHEMA)
    if isinstance(outcome, Scored):
        broken = float(not outcome.passed)
        return broken, broken
    return None if outcome is None or not is_open(outcome) else (0.0, 1.0)


def _read_executed(step: StepVerdict) -> Range | None:
    """Read whether a call passes, unless it breaks its schema; where that is open, it may do either."""
    refused = _read_refused(step)
    return None if refused == (1.0, 1.0) else refused if refused == (0.0, 1.0) else _read_attempted(step)


def _read_attempted(step: StepVerdict) -> Range | None:
    if step.verdict == "not_applicable":
        return None
    passed = float(step.verdict in PASSING)
    return (0.0, 1.0) if step.verdict == "undecided" else (passed, passed)


CALL_READERS: Mapping[str, Callable[[StepVerdict], Range | None]] = MappingProxyType(
    {"refused": _read_refused, "executed": _read_executed, "attempted": _read_attempted}
)
"""What a call adds to each rate, at worst and at best; None: nothing."""


def summarize_usage(samples: Iterable[Sample]) -> tuple[ToolUsage, ...]:
    """Summarize the tools with any call of known duration or cost, by name."""
    usages: defaultdict[str, list[ResourceUsage | None]] = defaultdict(list)
    for sample in samples:
        for step in sample.report.steps:
            usages[step.tool].append(step.usage)
    found: list[ToolUsage] = []
    for tool, taken in sorted(usages.items()):
        times = _compute_percentiles([one.duration_s for one in taken if one])
        costs = _compute_percentiles([one.cost_usd for one in taken if one])
        found += [ToolUsage(tool, len(taken), times, costs)] if times or costs else []
    return tuple(found)


def _compute_percentiles(values: Iterable[float | None]) -> Percentiles | None:
    known = [value for value in values if value is not None]
    return Percentiles(len(known), *[compute_percentile(known, q) for q in (50, 95, 99)]) if known else None
