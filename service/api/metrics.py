"""The Prometheus metrics. Labels are routes, statuses, verdicts, known rubrics and models: nothing a caller writes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import cache
from time import monotonic

import prometheus_client as prometheus
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from starlette.responses import Response

from service.asking.cache.guard import GuardedCache
from service.core.judging.prompts import Usage
from service.core.money import Cost
from service.reporting.breaks import ReportCounts
from service.store.jobs.backlog import Backlog

LOG = logging.getLogger("callgrade.store")

FRESH_S = 5.0
"""Seconds for which a reading holds, so that many scrapes cost no more than one."""

USED_TODAY: Mapping[str, str] = {
    "questions": "Requests to models",
    "cached": "Answers of judges that took no request",
    "tokens_in": "Tokens of prompts",
    "tokens_out": "Tokens of replies",
    "cost_usd": "Paid for judges, as far as replies said",
    "unpriced_calls": "Requests to models without a known price",
    "uncertain_usd": "The most that calls without a bill may have cost",
}
"""What each gauge of today's use counts, by its field of `DayUsage`."""

READ_TIMEOUT_S = 3.0
"""Seconds that the database has. Prometheus gives ten for the whole response."""


class BacklogCollector(Collector):
    """The backlog that `read` returns; only `callgrade_store_up 0` if it fails or is too slow, for unknown is not zero."""

    def __init__(
        self, read: Callable[[], Backlog], *, now: Callable[[], float] = monotonic, timeout: float = READ_TIMEOUT_S
    ) -> None:
        self._read = read
        self._now = now
        self._timeout = timeout
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="backlog")
        self._reading: asyncio.Future[None] | None = None
        self._backlog: Backlog | None = None
        self._read_at = float("-inf")

    async def refresh(self) -> None:
        """Read again, unless the reading is fresh or one is running. Wait for it up to the timeout."""
        if self._now() - self._read_at < FRESH_S:
            return
        if self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().run_in_executor(self._thread, self._read_again)
        await asyncio.wait([self._reading], timeout=self._timeout)

    def _read_again(self) -> None:
        try:
            self._backlog = self._read()
        except Exception as error:  # noqa: BLE001 (the other metrics must not fail with it)
            self._backlog = None
            LOG.warning("the backlog is unknown", extra={"fields": {"why": type(error).__name__}})
        self._read_at = self._now()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield the gauges for the registry."""
        backlog = self._backlog if self._now() - self._read_at <= FRESH_S + self._timeout else None
        yield _build_gauge("callgrade_store_up", "1 if the database answered, else 0", {"": float(backlog is not None)})
        if backlog is None:
            return
        yield _build_gauge("callgrade_batches", "Batches by their state", backlog.batches, label="status")
        items = {"open": backlog.open, "completed": backlog.completed, "failed": backlog.failed}
        yield _build_gauge("callgrade_batch_items", "Items of batches that have not ended", items, label="state")
        yield _build_gauge("callgrade_workers", "Workers with a recent heartbeat", {"": backlog.workers})
        help_text = "Items that crashed their workers and are not retried"
        yield _build_gauge("callgrade_quarantined_items", help_text, {"": backlog.quarantined})
        for name, meaning in USED_TODAY.items():
            used = {one.tenant: getattr(one, name) for one in backlog.usage if getattr(one, name) is not None}
            yield _build_gauge(f"callgrade_today_{name}", f"{meaning}, today (UTC)", used, label="tenant")


def _build_gauge(name: str, meaning: str, values: Mapping[str, float], *, label: str = "") -> GaugeMetricFamily:
    """Build a gauge with one sample for each value of its label, or with the sample of "" if it has no label."""
    family = GaugeMetricFamily(name, meaning, labels=[label] if label else [])
    for value, count in values.items():
        family.add_metric([value] if label else [], count)
    return family


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
        events = CounterMetricFamily("callgrade_judge_cache_events", "Hits, misses and failures", labels=["event"])
        for event, count in asdict(self._cache.counts).items():
            events.add_metric([event], count)
        yield events
        failing = self._cache.trouble is not None
        yield GaugeMetricFamily("callgrade_judge_cache_failing", "1 if the cache failed when last used", failing)


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
            "callgrade_unscored",
            "What applies and has no score, and requests refused for that",
            ["kind", "cause"],
            registry=registry,
        )
        replies = prometheus.Counter(
            "callgrade_judge_replies", "Replies of judges that went into reports", ["cache"], registry=registry
        )
        self._cost = prometheus.Counter(
            "callgrade_judge_cost_usd", "Paid for judges by requests, not batches, as far as known", registry=registry
        )
        self._unpriced = prometheus.Counter(
            "callgrade_judge_unpriced_calls", "Requests to models without a known price", registry=registry
        )
        judge_seconds = prometheus.Histogram(
            "callgrade_judge_request_seconds",
            "Time until a model's reply was complete, or failed",
            ["model"],
            registry=registry,
            buckets=JUDGE_BUCKETS_S,
        )
        self.in_flight = 0
        in_flight = prometheus.Gauge("callgrade_http_in_flight", "Requests being answered", registry=registry)
        in_flight.set_function(lambda: self.in_flight)
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
        if tally.cache_hits or tally.asked:
            self._hits.inc(tally.cache_hits)
            self._misses.inc(tally.asked)
        for (kind, cause), count in tally.unscored.items():
            self._unscored(kind, cause).inc(count)

    def count_refusal(self, cause: str) -> None:
        """Count a request without a report, because a judge had none and the request asked for that."""
        self._unscored("errored", cause).inc()

    async def render_exposition(self) -> Response:
        """Render the metrics as Prometheus reads them."""
        if self._backlog is not None:
            await self._backlog.refresh()
        return Response(generate_latest(self._registry), headers={"content-type": CONTENT_TYPE_LATEST})
