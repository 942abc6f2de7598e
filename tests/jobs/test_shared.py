"""Two workers that share a Redis: a limit of calls for each of them, and one cache."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
import sqlalchemy as sa
from redis import Redis

from service.store.tables import BATCH_USAGE
from tests.faults.provider import Provider, Reply, serving
from tests.jobs.process import Service, request, service

pytestmark = [pytest.mark.needs_postgres, pytest.mark.needs_redis]

DAY = 86_400
MOST = 8
ITEMS = 120


@pytest.fixture
def own_redis(redis_url: str) -> Iterator[str]:
    """A database of the Redis that was empty, and is so again afterwards; what a killed test leaves is gone in a day."""
    for number in range(15, 0, -1):
        url = urlunsplit(urlsplit(redis_url)._replace(path=f"/{number}"))
        with Redis.from_url(url) as client:
            if client.dbsize() or not client.set("callgrade:test", "taken", nx=True, ex=DAY):
                continue
            try:
                yield url
            finally:
                client.flushdb()
            return
    pytest.skip("no database of the Redis is empty")


class Counting(Provider):
    """A provider that knows how many calls were under way at once. It counts none that it has answered."""

    under_way = 0
    most = 0

    def reply(self, script: str | None, headers: Mapping[str, str], body: Any) -> Reply:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        asyncio.get_running_loop().call_later(self.latency, self._answered)
        return super().reply(script, headers, body)

    def _answered(self) -> None:
        self.under_way -= 1


def at_work(run: Service, batch: str = "") -> int:
    """How many workers have had chunks: of one batch, or of any."""
    chosen = sa.select(BATCH_USAGE.c.owner).where(BATCH_USAGE.c.batch.startswith(batch))
    with run.database.read() as connection:
        found = set(connection.execute(chosen).scalars())
    return sum(any(f'"{name}"' in run.log(number) for name in found) for number in range(len(run.workers)))


def test_each_worker_keeps_to_the_limit_and_finds_what_the_other_has_paid_for(
    postgres_url: str, own_redis: str, tmp_path: Path
) -> None:
    provider = Counting(latency=0.1)
    settings = {
        "CALLGRADE_CACHE_URL": own_redis,
        "CALLGRADE_CACHE_TTL_DAYS": "1",
        "CALLGRADE_JUDGE_IN_FLIGHT": str(MOST),
        "CALLGRADE_BATCH_IN_FLIGHT": str(2 * MOST),
        "CALLGRADE_BATCH_CHUNK": str(MOST),
    }
    numbers = count()
    with serving(provider), service(postgres_url, tmp_path, provider, **settings) as run:
        gone, _ = run.start("worker"), run.start("worker")
        run.until(lambda: run.logs().count('"working"') == 2)
        while (
            at_work(run) < 2
        ):  # what is loaded and connected to at first may keep them longer than they wait for Redis
            run.ended(run.submit([request(next(numbers)) for _ in range(2 * MOST)], size=1))
        before, provider.most = len(provider.requests), 0
        requests = [request(next(numbers)) for _ in range(ITEMS)]
        first = run.ended(run.submit(requests, size=MOST))
        assert (first.status, first.request_counts.completed, first.cache_hits) == ("completed", ITEMS, 0)
        assert at_work(run, first.id) == 2
        assert (len(provider.requests), set(run.paid().values())) == (before + ITEMS, {1})
        assert provider.most <= 2 * MOST, run.logs()
        run.until(run.is_idle)
        gone.kill()
        gone.wait()
        second = run.ended(run.submit(requests, size=MOST))
        assert (second.status, second.request_counts.completed) == ("completed", ITEMS)
        assert (second.cache_hits, len(provider.requests)) == (ITEMS, before + ITEMS), run.logs()
        run.until(run.is_idle)
