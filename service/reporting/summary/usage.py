"""What calls and cases took, where their traces say: seconds, tokens, US dollars; by tool."""

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


_ENDS = {"min": 0.0, "max": 100.0}


@dataclass(frozen=True, slots=True)
class ToolUsage:
    """The calls of one tool whose durations their traces say."""

    tool: str
    calls: int
    """All calls of it."""
    timed: int
    """Those of which the duration is known."""
    p50_duration_s: float
    p95_duration_s: float


class UsageMetric(NamedTuple):
    """A number over what cases took or, where `tool` is named, over what calls of that tool took."""

    tool: str | None
    fold: str
    quantity: Quantity

    def compute(self, values: Sequence[float]) -> float:
        """The number over at least one value."""
        if self.fold in ("avg", "total"):
            return fsum(values) / (len(values) if self.fold == "avg" else 1)
        return compute_percentile(values, _ENDS[self.fold] if self.fold in _ENDS else float(self.fold[1:]))

    def list_values(self, samples: Iterable[Sample]) -> list[float | None]:
        """The quantity of each case, or of each call of the tool; None where its trace does not say."""
        return [usage and getattr(usage, self.quantity) for usage in self._list_usages(samples)]

    def _list_usages(self, samples: Iterable[Sample]) -> list[ResourceUsage | None]:
        if self.tool is None:
            return [sample.report.usage for sample in samples]
        return [step.usage for sample in samples for step in sample.report.steps if step.tool == self.tool]


def parse_usage_metric(name: str) -> UsageMetric | None:
    """The metric of a name; None for any other name.

    >>> parse_usage_metric("tool.get_order.p95_duration_s")
    UsageMetric(tool='get_order', fold='p95', quantity='duration_s')
    >>> parse_usage_metric("total_cost_usd"), parse_usage_metric("p95_score")
    (UsageMetric(tool=None, fold='total', quantity='cost_usd'), None)
    """
    found = _NAME.fullmatch(name)
    return found and UsageMetric(found["tool"], found["fold"], cast("Quantity", found["quantity"]))


def summarize_usage(samples: Iterable[Sample]) -> tuple[ToolUsage, ...]:
    """The tools of which any call's duration is known, by name."""
    durations: defaultdict[str, list[float | None]] = defaultdict(list)
    for sample in samples:
        for step in sample.report.steps:
            durations[step.tool].append(step.usage and step.usage.duration_s)
    known = {tool: [value for value in values if value is not None] for tool, values in durations.items()}
    return tuple(
        ToolUsage(
            tool, len(durations[tool]), len(values), compute_percentile(values, 50), compute_percentile(values, 95)
        )
        for tool, values in sorted(known.items())
        if values
    )
