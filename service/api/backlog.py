"""The backlog as it is told to Prometheus: looked up in a thread when somebody asks, and then known for a few seconds."""

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

FRESH = 5.0
"""Seconds for which what was found holds, so that many who ask cost no more than one."""

USED_TODAY: Mapping[str, str] = {
    "questions": "Requests to models",
    "cached": "Answers of judges that took no request",
    "tokens_in": "Tokens of prompts",
    "tokens_out": "Tokens of replies",
    "cost_usd": "Paid for judges, as far as replies said",
    "uncertain_usd": "The most that calls may have cost besides",
}
"""What is told of each tenant, by its field of a `DayUsage`."""

PATIENCE = 3.0
"""Seconds that the database has. Prometheus gives ten for the whole answer."""


class BacklogCollector(Collector):
    """What `look` finds; nothing but `callgrade_store_up 0` where it fails or takes too long, for unknown is not zero."""

    def __init__(
        self, look: Callable[[], Backlog], *, now: Callable[[], float] = monotonic, patience: float = PATIENCE
    ) -> None:
        self._look = look
        self._now = now
        self._patience = patience
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="stock")
        self._looking: asyncio.Future[None] | None = None
        self._found: Backlog | None = None
        self._at = float("-inf")

    async def refresh(self) -> None:
        """Looks again, unless that was done just now or still goes on. Waits for it a while."""
        if self._now() - self._at < FRESH:
            return
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().run_in_executor(self._thread, self._look_again)
        await asyncio.wait([self._looking], timeout=self._patience)

    def _look_again(self) -> None:
        try:
            self._found = self._look()
        except Exception as error:  # noqa: BLE001 (whatever it is, the other metrics are still wanted)
            self._found = None
            LOG.warning("the backlog is unknown", extra={"fields": {"why": type(error).__name__}})
        self._at = self._now()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """The gauges, for the registry."""
        found = self._found if self._now() - self._at <= FRESH + self._patience else None
        yield _build_gauge("callgrade_store_up", "Whether the database answered", {"": float(found is not None)})
        if found is None:
            return
        yield _build_gauge("callgrade_batches", "Batches by their state", found.batches, label="status")
        items = {"open": found.open, "completed": found.completed, "failed": found.failed}
        yield _build_gauge("callgrade_batch_items", "Items of batches that have not ended", items, label="state")
        yield _build_gauge("callgrade_workers", "Workers that gave a sign of life just now", {"": found.workers})
        told = "Items that took their workers down and are not tried any more"
        yield _build_gauge("callgrade_quarantined_items", told, {"": found.quarantined})
        for name, meaning in USED_TODAY.items():
            used = {one.tenant: float(getattr(one, name)) for one in found.usage}
            yield _build_gauge(f"callgrade_today_{name}", f"{meaning}, today (UTC)", used, label="tenant")


def _build_gauge(name: str, meaning: str, values: Mapping[str, float], *, label: str = "") -> GaugeMetricFamily:
    """A gauge with a value for each value of its label, or with the one of "" where it has none."""
    family = GaugeMetricFamily(name, meaning, labels=[label] if label else [])
    for value, count in values.items():
        family.add_metric([value] if label else [], count)
    return family
