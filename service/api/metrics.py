"""The Prometheus metrics. Labels are routes, statuses, verdicts, known rubrics and models: nothing a caller writes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from functools import cache

import prometheus_client as prometheus
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from starlette.responses import Response

from service.api.backlog import BacklogCollector
from service.asking.cache.guard import GuardedCache
from service.core.judging.prompts import Usage
from service.core.money import Cost
from service.reporting.breaks import ReportCounts

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

JUDGE_BUCKETS_S = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0, 45.0, 60.0, 120.0)

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

OTHER = "other"
"""The label of anything without a name of ours, so that no caller can add a label."""


class _CacheCollector(Collector):
    """What this process saw of the cache of judgements."""

    def __init__(self, cache: GuardedCache) -> None:
        self._cache = cache

    def collect(self) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
        """Yield the counters and whether the cache fails, for the registry."""
        events = CounterMetricFamily("callgrade_judge_cache_events", "What happened in the cache", labels=["event"])
        for event, count in asdict(self._cache.counts).items():
            events.add_metric([event], count)
        yield events
        failing = self._cache.trouble is not None
        yield GaugeMetricFamily("callgrade_judge_cache_failing", "Whether the cache failed when last used", failing)


class ServiceMetrics:
    """The counters of one application; each has its own registry, so two in a process do not mix.

    `rubrics`: the ids of the known rubrics by their hash; a rubric that came with a request counts as `other`.
    `backlog`: the gauges of batches and workers; None without a store. `models`: those that the settings and the known
    rubrics name; any other counts as `other`.
    """

    def __init__(
        self, rubrics: Mapping[str, str], *, backlog: BacklogCollector | None = None, models: Collection[str] = ()
    ) -> None:
        self._rubrics = rubrics
        self._models = frozenset(models)
        self._backlog = backlog
        self._registry = registry = prometheus.CollectorRegistry()
        requests = prometheus.Counter(
            "callgrade_http_requests", "Requests answered", ["route", "method", "status"], registry=registry
        )
        seconds = prometheus.Histogram(
            "callgrade_http_request_seconds", "Time to answer", ["route"], registry=registry, buckets=BUCKETS
        )
        reports = prometheus.Counter("callgrade_reports", "Reports given", ["rubric", "verdict"], registry=registry)
        unscored = prometheus.Counter(
            "callgrade_unscored", "Outcomes that apply and have no score", ["kind", "cause"], registry=registry
        )
        replies = prometheus.Counter(
            "callgrade_judge_replies", "Replies of judges that went into reports", ["cache"], registry=registry
        )
        self._cost = prometheus.Counter(
            "callgrade_judge_cost_usd", "Paid for judges, as far as prices are known", registry=registry
        )
        self._unpriced = prometheus.Counter(
            "callgrade_judge_unpriced_calls",
            "Requests to models that callgrade_judge_cost_usd lacks",
            registry=registry,
        )
        judge_seconds = prometheus.Histogram(
            "callgrade_judge_request_seconds",
            "Time until a model's reply was complete, or failed",
            ["model"],
            registry=registry,
            buckets=JUDGE_BUCKETS_S,
        )
        self.in_flight = prometheus.Gauge("callgrade_http_in_flight", "Requests being answered", registry=registry)
        if backlog is not None:
            registry.register(backlog)
        # Finding the child of some labels costs more than counting. There are few labels, so the children are cached.
        self._requests = cache(requests.labels)
        self._seconds = cache(seconds.labels)
        self._reports = cache(reports.labels)
        self._unscored = cache(unscored.labels)
        self._judge_seconds = cache(judge_seconds.labels)
        self._hits, self._misses = replies.labels("hit"), replies.labels("miss")

    def watch_cache(self, cache: GuardedCache) -> None:
        """Show the state of the cache of judgements."""
        self._registry.register(_CacheCollector(cache))

    def count_answer(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count one HTTP request."""
        self._requests(route, method if method in METHODS else OTHER, status).inc()
        self._seconds(route).observe(seconds)

    def count_ask(self, model: str, seconds: float, usage: Usage | None) -> None:
        """Count one request to a model, whatever became of its reply."""
        if usage is not None:
            cost = Cost.of(usage.cost_usd)
            self._cost.inc(cost.usd)
            self._unpriced.inc(cost.unpriced)
        self._judge_seconds(model if model in self._models else OTHER).observe(seconds)

    def count(self, tally: ReportCounts) -> None:
        """Count one report, and the outcomes in it that have no score."""
        self._reports(self._rubrics.get(tally.rubric, OTHER), tally.verdict).inc()
        self._hits.inc(tally.cache_hits)
        self._misses.inc(tally.asked)
        for (kind, cause), count in tally.unscored.items():
            self._unscored(kind, cause).inc(count)

    async def render_exposition(self) -> Response:
        """Render the metrics as Prometheus reads them."""
        if self._backlog is not None:
            await self._backlog.refresh()
        return Response(generate_latest(self._registry), headers={"content-type": CONTENT_TYPE_LATEST})
