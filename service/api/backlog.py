"""The backlog as Prometheus gauges: read in a thread when somebody asks, then remembered for a few seconds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

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
    "uncertain_usd": "The most that calls may have cost besides",
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
        yield _build_gauge("callgrade_store_up", "Whether the database answered", {"": float(backlog is not None)})
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
