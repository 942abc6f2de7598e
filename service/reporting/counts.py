"""What is counted about a report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from service.core.outcome import Outcome, Scored
from service.core.report import Report


@dataclass(frozen=True, slots=True)
class ReportCounts:
    """What is counted about a report."""

    rubric: str
    """The digest of its rubric."""
    verdict: str
    unscored: Counter[tuple[str, str]]
    """Outcomes that apply and have no score, by kind and cause."""
    cache_hits: int = 0
    asked: int = 0
    """Replies that were not in the cache."""


def count_report(report: Report) -> ReportCounts:
    """Count a report."""
    outcomes: list[Outcome] = [
        trace_outcome.outcome for criterion in report.criteria for trace_outcome in criterion.outcomes
    ]
    for step in report.steps:
        outcomes += step.outcomes.values()
    others = [one for one in outcomes if type(one) is not Scored]
    unscored = [(o.kind, o.cause) for o in others if not isinstance(o, Scored) and o.cause != "not_applicable"]
    source = report.provenance
    return ReportCounts(
        report.rubric.hash,
        report.verdict,
        Counter(unscored),
        source.cache_hits,
        source.replies - source.cache_hits,
    )
