"""A worker: claims chunks and runs them, ends batches, beats, reclaims what dead workers held, and sweeps the store."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import sqlalchemy as sa

from service.errors import BusyError, CallgradeError, WebhookError
from service.jobs.fitting import fit
from service.jobs.runner import Runner
from service.outbound.webhooks import Webhooks
from service.store.database import Database, insist
from service.store.jobs.calibrations import Calibrations, find_pending_fit
from service.store.jobs.chunks import Chunks
from service.store.jobs.duties import Duty, DutyKind, claim_duty, end_job, record_notice
from service.store.jobs.job import ID_PREFIXES
from service.store.jobs.jobs import Batches, Jobs
from service.store.jobs.leases import ClaimedChunk, Lease
from service.store.jobs.workers import Workers, WorkerWatch
from service.store.tables import BATCHES

LOG = logging.getLogger("callgrade.worker")

T = TypeVar("T")
C = TypeVar("C", ClaimedChunk, Duty)

DUTY_KINDS: tuple[DutyKind, ...] = ("finish", "notice")

POLL_S, NEWCOMER_POLL_S = 0.1, 0.5
"""Seconds between looks for chunks: while there are none; and while the worker has its fill, for tenants of whom it runs none."""

DUTY_POLL_S = 0.2
"""Seconds between looks for batches to end, and for notices."""

MAX_DUTIES = 8
"""Batches that are ended at once, and notices that are sent at once."""

BEAT_INTERVAL_S = 1.0
"""Seconds between beats, and between looks at those of others."""

MAX_STILL_S = 60.0
"""Seconds without a sign of life from the event loop after which the worker no longer beats."""

LEAVE_S = 5.0
"""Seconds that a worker tries to leave in order a database that is out of reach."""

SWEEP_INTERVAL_S = 15.0
"""Seconds between sweeps for what has expired."""

MAX_NOTICE_ATTEMPTS = 8
"""How often a webhook is tried: after 5 seconds, 20, 80 and so on, for some eight hours."""


class Worker:
    """Claims what is due in one event loop, and works on it."""

    def __init__(
        self, chunks: Chunks, runner: Runner, notify: Callable[[str], Awaitable[None]], *, most: int = 4
    ) -> None:
        """`notify`: tells somebody outside that a batch has ended, or raises CallgradeError; `most`: chunks at once."""
        self.chunks = chunks
        self._database = chunks.database
        self._runner = runner
        self._notify = notify
        self._most = most
        self._running: dict[ClaimedChunk, asyncio.Task[None]] = {}
        self._duties: dict[Duty, asyncio.Task[None]] = {}
        self._freed = asyncio.Event()
        self._claiming: list[asyncio.Task[None]] = []
        self._stopping = False
        self._ticked_at = time.monotonic()  # when the event loop gave its last sign of life

    async def work(self) -> None:
        """Work until `drain`. One part that fails ends the others, and so the process: other workers take its work over."""
        await self._insist(self.chunks.wake)
        LOG.info("working", extra={"fields": {"worker": self.chunks.owner}})
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tick())
            group.create_task(self._runner.watch())
            self._claiming = [group.create_task(self._claim_duties()), group.create_task(self._claim_chunks())]

    async def drain(self, grace: float) -> None:
        """Claim nothing more, and begin no further item; what is under way has `grace` seconds."""
        self._stopping = True
        self._freed.set()
        self._runner.drain()
        await asyncio.wait(self._claiming, timeout=grace)
        tasks = [*self._running.values(), *self._duties.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=grace)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _tick(self) -> None:
        while True:
            self._ticked_at = time.monotonic()
            await asyncio.sleep(BEAT_INTERVAL_S)

    async def _claim_chunks(self) -> None:
        while not self._stopping:
            self._freed.clear()
            room = self._most - len(self._running)
            if room <= -self._most or any(chunk.runs_alone for chunk in self._running):
                await self._freed.wait()
                continue
            tenants = {chunk.tenant for chunk in self._running} if room <= 0 else frozenset[str]()
            chunk = await self._insist(partial(self.chunks.claim, idle=not self._running, besides=tenants))
            if chunk is not None:
                self._start(self._running, chunk, self._runner.run(chunk))
            else:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._freed.wait(), POLL_S if room > 0 else NEWCOMER_POLL_S)

    async def _claim_duties(self) -> None:
        while not self._stopping:
            counts = [duty.kind for duty in self._duties]
            kinds: list[DutyKind] = [kind for kind in DUTY_KINDS if counts.count(kind) < MAX_DUTIES]
            duty = await self._insist(partial(claim_duty, self._database, self.chunks.owner, kinds))
            if duty is None:
                await asyncio.sleep(DUTY_POLL_S)
            else:
                self._start(self._duties, duty, self._fulfil_insisting(duty))

    def _start(self, started: dict[C, asyncio.Task[None]], claimed: C, work: Coroutine[Any, Any, None]) -> None:
        def end(_: object) -> None:
            del started[claimed]
            self._freed.set()

        task = started[claimed] = asyncio.create_task(work)
        task.add_done_callback(end)

    async def _fulfil_insisting(self, duty: Duty) -> None:
        while True:
            try:
                return await self.fulfil(duty)
            except Exception:
                LOG.exception("a batch could not be ended; it is tried again")
                await asyncio.sleep(5.0)

    async def fulfil(self, duty: Duty) -> None:
        """End a batch, after the fit of a calibration whose items are judged; or tell of its end."""
        lease = duty.lease
        if duty.kind == "notice":
            await self._send_notice(lease)
            return
        pending = await self._insist(lambda: find_pending_fit(self._database, lease.batch))
        outcome = None if pending is None else await fit(pending)
        await self._insist(lambda: end_job(self._database, lease, fit_outcome=outcome))

    async def _send_notice(self, lease: Lease) -> None:
        """Send the notice that a batch has ended; if it fails, try again, later each time."""
        status, delay = "delivered", None
        try:
            await self._notify(lease.batch)
        except CallgradeError as error:
            if error.retryable and lease.attempt < MAX_NOTICE_ATTEMPTS:
                delay = 5.0 * 4 ** (lease.attempt - 1)
            status = "failed" if delay is None else "pending"
            LOG.warning("a webhook was not taken", extra={"fields": {"batch": lease.batch, "why": str(error)}})
        await self._insist(lambda: record_notice(self._database, lease, status, delay=delay))

    async def _insist(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(insist, work)

    # What a thread does every second: show that the worker lives, and look who else does and what is its own.

    def build_beat(self) -> Callable[[], None]:
        """Register the worker, and build what makes it beat, for a thread beside this event loop."""
        workers, watch, loop = Workers(self._database), WorkerWatch(), asyncio.get_running_loop()
        insist(lambda: workers.beat(self.chunks.owner))
        unknown_before = frozenset[Lease]()

        def beat() -> None:
            nonlocal unknown_before
            if time.monotonic() - self._ticked_at > MAX_STILL_S:
                LOG.critical("the event loop stands still; other workers take the work over")
                return
            workers.beat(self.chunks.owner)
            held = self._list_held()
            owned = self.chunks.list_owned()
            if lost := held - owned:
                loop.call_soon_threadsafe(self._runner.supersede, lost)
            unknown = owned - self._list_held()
            for lease in unknown & unknown_before:  # it was claimed in a commit whose reply was lost
                LOG.warning("giving back what was claimed and never begun", extra={"fields": {"batch": lease.batch}})
                self.chunks.put_off(lease)
            unknown_before = unknown
            for worker in watch.find_dead(workers.list_workers()):
                if worker.id != self.chunks.owner and (count := workers.reclaim(worker)) is not None:
                    LOG.warning("taking over", extra={"fields": {"worker": worker.id, "chunks": count}})

        return beat

    def _list_held(self) -> frozenset[Lease]:
        return frozenset([one.lease for one in (*self._running, *self._duties)])


@asynccontextmanager
async def keep_working(worker: Worker, *, sweep: Callable[[], None], grace: float) -> AsyncGenerator[None]:
    """Run a worker in this event loop for as long as the block lasts.

    At the end, running items have `grace` seconds, and the rest is left to other workers. Calls `sweep` now and then, in a
    thread. Another one beats, so that a busy event loop does not look dead.
    """
    owner, over = worker.chunks.owner, threading.Event()
    parts = {"heartbeat": (BEAT_INTERVAL_S, worker.build_beat()), "sweep": (SWEEP_INTERVAL_S, sweep)}
    threads = [threading.Thread(target=_repeat, args=(name, *part, over), daemon=True) for name, part in parts.items()]
    for thread in threads:
        thread.start()
    try:
        async with asyncio.TaskGroup() as group:
            working = group.create_task(worker.work())
            try:
                yield
            finally:
                await worker.drain(grace)
                working.cancel()
    finally:
        over.set()
        for thread in threads:
            thread.join(timeout=10.0)
        with suppress(BusyError):  # then others see that it is dead
            insist(lambda: Workers(worker.chunks.database).leave(owner), give_up=LEAVE_S)


def _repeat(name: str, interval: float, work: Callable[[], None], over: threading.Event) -> None:
    while not over.wait(interval):
        try:
            work()
        except Exception:  # the database is away and will come back; the work itself waits for it too
            LOG.warning("no %s", name, exc_info=True)


async def send_notice(database: Database, webhooks: Webhooks | None, batch: str) -> None:
    """Send the notice that a batch has ended. Raises WebhookError.

    Without `webhooks` none may be sent now, whatever was allowed when the job was submitted.
    """
    if webhooks is None:
        raise WebhookError("no webhook is allowed here", retryable=False)
    url, body = await asyncio.to_thread(_build_notice, database, batch)
    await webhooks.deliver(url, id=batch, body=body)


def _build_notice(database: Database, batch: str) -> tuple[str, bytes]:
    row = database.read_row(sa.select(BATCHES).where(BATCHES.c.id == batch, BATCHES.c.webhook.is_not(None)))
    if row is None:
        raise WebhookError("the batch is gone", retryable=False)
    kinds: dict[str, type[Jobs[Any]]] = {one.kind: one for one in (Batches, Calibrations)}
    jobs = kinds[row["kind"]](database)
    job = jobs.adapter.dump_json(jobs.find(row["tenant"], batch))
    return row["webhook"], b'{"type":"%b.%b","data":%b}' % (
        *map(str.encode, (ID_PREFIXES[jobs.kind], row["status"])),
        job,
    )
