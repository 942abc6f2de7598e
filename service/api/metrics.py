"""What is counted, for Prometheus. Labels are routes, statuses, rubrics and verdicts: nothing a trace contains."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response

from service.core.outcome import Errored, Outcome, Skipped
from service.core.report import Report

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The counters of one application; each has its own registry, so two in a process do not mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "callgrade_http_requests", "Requests answered", ["route", "method", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "callgrade_http_request_seconds", "Time to answer", ["route"], registry=self.registry, buckets=BUCKETS
        )
        self.in_flight = Gauge("callgrade_http_in_flight", "Requests being answered", registry=self.registry)
        self.reports = Counter("callgrade_reports", "Reports given", ["rubric", "verdict"], registry=self.registry)
        self.unscored = Counter(
            "callgrade_unscored", "Outcomes without a score", ["kind", "cause"], registry=self.registry
        )

    def count(self, report: Report) -> None:
        """Counts one report and what it could not score."""
        self.reports.labels(report.rubric.id, report.verdict).inc()
        for outcome in _outcomes(report):
            if isinstance(outcome, Skipped | Errored):
                self.unscored.labels(outcome.kind, outcome.cause).inc()

    def exposition(self) -> Response:
        """The metrics as Prometheus reads them."""
        return Response(generate_latest(self.registry), headers={"content-type": CONTENT_TYPE_LATEST})


def _outcomes(report: Report) -> Iterable[Outcome]:
    for criterion in report.criteria:
        yield from (elsewhere.outcome for elsewhere in criterion.outcomes)
    for step in report.steps:
        yield from step.outcomes.values()
