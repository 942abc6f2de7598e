"""What calls and cases took, where their traces say so: seconds, tokens, US dollars; by tool."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal, NamedTuple, cast

from service.core.trace import ResourceUsage
from service.reporting.summary.samples import Sample
from service.stats.rates import compute_percentile

Quantity = Literal["duration_s", "input_tokens", "output_tokens", "cost_usd"]

_NAME = re.compile(
    r"(?:tool\.(?P<tool>.+)\.)?(?P<fold>avg|min|max|total|p\d{1,2}|p100)_"
    r"(?P<quantity>duration_s|input_tokens|output_tokens|cost_usd)"
)


_EXTREME_PERCENTILES = {"min": 0.0, "max": 100.0}


@dataclass(frozen=True, slots=True)
class ToolUsage:
    """What the calls of one tool took, as far as their traces say; None where none says."""

    tool: str
    calls: int
    """How many calls of it were made."""
    timed: int
    """How many of them have a known duration."""
    p50_duration_s: float | None
    p95_duration_s: float | None
    p99_duration_s: float | None = None
    priced: int = 0
    """How many of them have a known cost."""
    p50_cost_usd: float | None = None
    p95_cost_usd: float | None = None
    p99_cost_usd: float | None = None


class UsageMetric(NamedTuple):
    """A number over what cases took or, where `tool` is named, over what calls of that tool took."""

    tool: str | None
    fold: str
    quantity: Quantity

    def compute(self, values: Sequence[float]) -> float:
        """Compute the number over one or more values."""
        if self.fold in ("avg", "total"):
            return fsum(values) / (len(values) if self.fold == "avg" else 1)
        return compute_percentile(
            values, _EXTREME_PERCENTILES[self.fold] if self.fold in _EXTREME_PERCENTILES else float(self.fold[1:])
        )

    def list_values(self, samples: Iterable[Sample]) -> list[float | None]:
        """List the quantity of each case, or of each call of the tool; None where its trace does not say."""
        return [usage and getattr(usage, self.quantity) for usage in self._list_usages(samples)]

    def _list_usages(self, samples: Iterable[Sample]) -> list[ResourceUsage | None]:
        if self.tool is None:
            return [sample.report.usage for sample in samples]
        return [step.usage for sample in samples for step in sample.report.steps if step.tool == self.tool]


def parse_usage_metric(name: str) -> UsageMetric | None:
    """Parse the name of a usage metric; None for any other name.

    >>> parse_usage_metric("tool.get_order.p95_duration_s")
    UsageMetric(tool='get_order', fold='p95', quantity='duration_s')
    >>> parse_usage_metric("total_cost_usd"), parse_usage_metric("p95_score")
    (UsageMetric(tool=None, fold='total', quantity='cost_usd'), None)
    """
    found = _NAME.fullmatch(name)
    return found and UsageMetric(found["tool"], found["fold"], cast("Quantity", found["quantity"]))


def summarize_usage(samples: Iterable[Sample]) -> tuple[ToolUsage, ...]:
    """Summarize the tools with any call of known duration or cost, by name."""
    usages: defaultdict[str, list[ResourceUsage | None]] = defaultdict(list)
    for sample in samples:
        for step in sample.report.steps:
            usages[step.tool].append(step.usage)
    summaries = [_summarize_tool(tool, tool_usages) for tool, tool_usages in sorted(usages.items())]
    return tuple(one for one in summaries if one.timed or one.priced)


def _summarize_tool(tool: str, usages: Sequence[ResourceUsage | None]) -> ToolUsage:
    durations = [one.duration_s for one in usages if one is not None and one.duration_s is not None]
    costs = [one.cost_usd for one in usages if one is not None and one.cost_usd is not None]
    return ToolUsage(
        tool, len(usages), len(durations), *_compute_percentiles(durations), len(costs), *_compute_percentiles(costs)
    )


def _compute_percentiles(values: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """Return the 50th, 95th and 99th percentile."""
    if not values:
        return None, None, None
    return compute_percentile(values, 50), compute_percentile(values, 95), compute_percentile(values, 99)
