"""A queue that one runner works off by a test's clock: what a worker does, without its process."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from service.asking.cache.disk import DiskCache
from service.asking.cached_replies import NoCache
from service.asking.calls import ModelCaller, RetryPolicy
from service.asking.judging import Judges, Judging
from service.asking.limits.provider_gate import ProviderGates
from service.asking.model import LiteLLM, disconnect
from service.engine import Engine
from service.jobs.items import ItemScorer, widen_limits
from service.jobs.runner import Runner
from service.logs.redaction import Redactor
from service.reading.strict_json import Limits
from service.registry import Registry
from service.store.database import Database
from service.store.jobs.batches import Batch, Batches
from service.store.jobs.chunks import Chunks
from service.store.jobs.endings import end_job
from service.store.jobs.leases import ChunkId
from service.store.jobs.submission import JobSubmission
from tests.faults.clock import Clock
from tests.faults.provider import Provider
from tests.jobs.process import chunks
from tests.stores import open_new_store


class Due(NamedTuple):
    """A chunk in the queue, and when it comes up."""

    at: float
    batch: str
    number: int
    generation: int


class Line:
    """The queue."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.waiting: list[Due] = []
        self.finished: list[str] = []

    def enqueue_chunk(
        self,
        connection: sa.Connection,
        batch: str,
        number: int,
        *,
        generation: int = 0,
        delay: float = 0.0,
        ahead: int = 0,
    ) -> None:
        self.waiting.append(Due(self.clock.now() + delay, batch, number, generation))

    def enqueue_finish(self, connection: sa.Connection, batch: str) -> None:
        self.finished.append(batch)

    def enqueue_notice(self, connection: sa.Connection, batch: str, *, attempt: int = 1, delay: float = 0.0) -> None:
        raise AssertionError("no batch here has a webhook")


class Driver:
    """A store with a queue and one runner, over a provider."""

    def __init__(
        self, folder: Path, provider: Provider, clock: Clock, model: str, *, in_flight: int = 16, cached: bool = False
    ) -> None:
        self.clock = clock
        self.line = Line(clock)
        self.database: Database = open_new_store(folder)
        self.batches = Batches(self.database, self.line)
        self.seen: list[Batch] = []
        """The batch as it stood after each round."""
        self._setup = provider, model, in_flight
        self._folder = folder if cached else None

    def submit(self, requests: Sequence[dict[str, Any]], *, size: int = 20, **more: Any) -> str:
        """The id of a new batch."""
        submission = JobSubmission(tenant="", fingerprint="", hours=24, **more)
        return self.batches.submit(submission, chunks(requests, size)).id

    def run(self, batch: str) -> Batch:
        """The batch when nothing of it is in the queue any more."""
        return asyncio.run(self._run(batch))

    async def _run(self, batch: str) -> Batch:
        engine = _engine(*self._setup[:2], self.clock, self._folder)
        runner = Runner(
            Chunks(self.database, self.line),
            ItemScorer(engine, widen_limits(Limits())),
            in_flight=self._setup[2],
            sleep=self.clock.sleep,
        )
        while self.line.waiting:
            await self._round(runner)
            self.seen.append(self.batches.find("", batch))
        for one in self.line.finished:
            end_job(self.database, self.line, one)
        runner.close()
        await engine.close()
        await disconnect()
        return self.batches.find("", batch)

    async def _round(self, runner: Runner) -> None:
        """Runs what is due, after the time until something is."""
        now = self.clock.now()
        await self.clock.sleep(max(0.0, min(one.at for one in self.line.waiting) - now))
        due = [one for one in self.line.waiting if one.at <= self.clock.now()]
        self.line.waiting = [one for one in self.line.waiting if one not in due]
        await asyncio.gather(*[runner.run(ChunkId(one.batch, one.number), one.generation, _alone) for one in due])


async def _alone() -> bool:
    return True


def _engine(provider: Provider, model: str, clock: Clock, folder: Path | None) -> Engine:
    port = LiteLLM(api_base=provider.base(), api_key="none", reply="auto", redact=Redactor([]))
    caller = ModelCaller(
        port,
        ProviderGates(clock),
        account=port.account,
        pricing=port.worst_usd,
        policy=RetryPolicy(),
        chance=random.Random(7),
    )
    cache = NoCache() if folder is None else DiskCache(folder / "cache", ttl=3_600.0, max_bytes=2**24, patience=60)
    judging = Judging(caller, cache, Judges(f"openai/{model}", api_base=provider.base()), pricing=port.worst_usd)
    return Engine(Registry(), judging=judging)
