"""One runner that works by a test's clock: what a worker does, without its process."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from service.asking.budget.days import Days
from service.asking.cache.disk import DiskCache
from service.asking.cache.guard import Cache
from service.asking.calls import ModelCaller, RetryPolicy
from service.asking.judging import Judges, Judging
from service.asking.limits import ProviderGate
from service.asking.model import LiteLLM, disconnect
from service.engine import Engine
from service.jobs.items import ItemScorer, widen_limits
from service.jobs.runner import Runner
from service.reading.strict_json import Limits
from service.registry import Registry
from service.store.access.usage import Caps, UsageStore
from service.store.database import Database
from service.store.jobs.chunks import Chunks
from service.store.jobs.duties import claim_duty, end_job
from service.store.jobs.jobs import Batch, Batches
from service.store.jobs.leases import ClaimedChunk
from service.store.jobs.submission import JobSubmission
from service.store.tables import CHUNKS
from tests.faults.clock import Clock
from tests.faults.provider import Provider
from tests.jobs.process import chunks
from tests.stores import open_new_store


class Clocked(Database):
    """A store that goes by a test's clock."""

    clock: Clock

    def now(self) -> sa.ColumnElement[float]:
        return sa.bindparam(None, callable_=self.clock.now, type_=sa.Double())  # as of when it is carried out


class Driver:
    """A store and one runner, over a provider."""

    def __init__(
        self, folder: Path, provider: Provider, clock: Clock, model: str, *, in_flight: int = 16, cached: bool = False
    ) -> None:
        self.clock = clock
        self.database = Clocked(open_new_store(folder).engine)
        self.database.clock = clock
        self.batches = Batches(self.database)
        self.seen: list[Batch] = []
        """The batch as it stood after each round."""
        self.caps = Caps()
        """What the tenant may use in a day."""
        self.on_round: Callable[[], object] = int
        """What happens after each round."""
        self._setup = provider, model, in_flight
        self._folder = folder if cached else None

    def submit(self, requests: Sequence[dict[str, Any]], *, size: int = 20, **more: Any) -> str:
        submission = JobSubmission(tenant="", fingerprint="", hours=24, **more)
        return self.batches.submit(submission, chunks(requests, size)).id

    def run(self, batch: str) -> Batch:
        """The batch when nothing of it may be claimed any more."""
        return asyncio.run(self._run(batch))

    async def _run(self, batch: str) -> Batch:
        days = Days(UsageStore(self.database), self.caps, now=self.clock.now)
        engine = _engine(*self._setup[:2], self.clock, self._folder, days)
        chunks = Chunks(self.database, "driven")
        scorer = ItemScorer(engine, widen_limits(Limits()))
        runner = Runner(chunks, scorer, in_flight=self._setup[2], sleep=self.clock.sleep)
        while (due_at := self._find_due(batch)) is not None:
            await self.clock.sleep(max(0.0, due_at - self.clock.now()))
            claimed = list(iter(chunks.claim, None))
            await asyncio.gather(*[runner.run(one) for one in claimed if isinstance(one, ClaimedChunk)])
            self.seen.append(self.batches.find("", batch))
            self.on_round()
        if (duty := claim_duty(self.database, chunks.owner, ["finish"])) is not None:
            end_job(self.database, duty.lease)
        runner.close()
        await days.close()
        await engine.close()
        await disconnect()
        return self.batches.find("", batch)

    def _find_due(self, batch: str) -> float | None:
        """When the next chunk may be claimed; None where none may ever."""
        waits = (CHUNKS.c.batch == batch, CHUNKS.c.state == "ready", CHUNKS.c.kind == "chunk")
        with self.database.read() as connection:
            found = connection.execute(sa.select(sa.func.min(CHUNKS.c.due_at)).where(*waits)).scalar()
        return None if self.batches.find("", batch).status == "paused_budget" else found


def _engine(provider: Provider, model: str, clock: Clock, folder: Path | None, days: Days) -> Engine:
    port = LiteLLM(api_base=provider.base(), api_key="none", reply="auto")
    caller = ModelCaller(
        port, lambda _: ProviderGate(clock), pricing=port.worst_usd, policy=RetryPolicy(), chance=random.Random(7)
    )
    cache = Cache() if folder is None else DiskCache(folder / "cache", ttl=3_600.0, max_bytes=2**24, patience=60)
    judging = Judging(caller, cache, Judges(f"openai/{model}", api_base=provider.base()), pricing=port.worst_usd)
    return Engine(Registry(), judging=judging, days=days)
