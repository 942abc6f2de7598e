"""A worker: claims chunks and runs them, ends batches, beats, reclaims what dead workers held, and sweeps the store."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

from service.errors import BusyError, CallgradeError
from service.jobs.fitting import fit
from service.jobs.runner import Runner
from service.store.database import insist
from service.store.jobs.calibrations import find_pending_fit
from service.store.jobs.chunks import Chunks
from service.store.jobs.duties import Duty, DutyKind, claim_duty, end_job, record_notice
from service.store.jobs.leases import ClaimedChunk, Lease
from service.store.jobs.workers import WorkerRecord, Workers, WorkerWatch

LOG = logging.getLogger("callgrade.worker")

T = TypeVar("T")
C = TypeVar("C", ClaimedChunk, Duty)

DUTY_KINDS: tuple[DutyKind, ...] = ("finish", "notice")

POLL_S = 0.1
"""Seconds between looks for chunks while there are none."""

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


class Notifier(Protocol):
    """Notifies somebody outside that a batch has ended."""

    async def notify(self, batch: str) -> None:
        """Send the notice. Raises CallgradeError if it fails; `retryable` says whether another try may help."""
        ...


class Worker:
    """Claims what is due in one event loop, and works on it."""

    def __init__(self, chunks: Chunks, runner: Runner, notifier: Notifier, *, most: int = 4) -> None:
        """`most`: chunks at once."""
        self._chunks = chunks
        self._database = chunks.database
        self._runner = runner
        self._notifier = notifier
        self._most = most
        self._running: dict[ClaimedChunk, asyncio.Task[None]] = {}
        self._duties: dict[Duty, asyncio.Task[None]] = {}
        self._freed = asyncio.Event()
        self._claiming: list[asyncio.Task[None]] = []
        self._stopping = False
        self.ticked_at = time.monotonic()
        """When the event loop gave its last sign of life."""

    async def work(self) -> None:
        """Work until `drain`. One part that fails ends the others, and so the process: other workers take its work over."""
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

    def list_held(self) -> frozenset[Lease]:
        """List what was claimed here and is worked on."""
        return frozenset([one.lease for one in (*self._running, *self._duties)])

    def supersede(self, leases: frozenset[Lease]) -> None:
        """Stop work on chunks that are another worker's now."""
        self._runner.supersede(leases)

    async def _tick(self) -> None:
        while True:
            self.ticked_at = time.monotonic()
            await asyncio.sleep(BEAT_INTERVAL_S)

    async def _claim_chunks(self) -> None:
        while not self._stopping:
            self._freed.clear()
            if len(self._running) >= self._most or any(chunk.runs_alone for chunk in self._running):
                await self._freed.wait()
                continue
            chunk = await self._claim(idle=not self._running)
            if isinstance(chunk, ClaimedChunk):
                self._start(self._running, chunk, self._runner.run(chunk))
            else:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._freed.wait(), POLL_S)

    async def _claim_duties(self) -> None:
        while not self._stopping:
            counts = [duty.kind for duty in self._duties]
            duty = await self._claim_duty({kind for kind in DUTY_KINDS if counts.count(kind) < MAX_DUTIES})
            if duty is None:
                await asyncio.sleep(DUTY_POLL_S)
            else:
                self._start(self._duties, duty, self._fulfil_insisting(duty))

    async def _claim(self, *, idle: bool) -> ClaimedChunk | Literal["alone"] | None:
        return await self._insist(partial(self._chunks.claim, idle=idle))

    async def _claim_duty(self, kinds: Collection[DutyKind]) -> Duty | None:
        return await self._insist(lambda: claim_duty(self._database, self._chunks.owner, kinds))

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
        """End a batch, or tell of its end."""
        await (self._end(duty.lease) if duty.kind == "finish" else self._notify(duty.lease))

    async def _end(self, lease: Lease) -> None:
        """End a batch; fit a calibration first, if its items are judged."""
        pending = await self._insist(lambda: find_pending_fit(self._database, lease.batch))
        outcome = None if pending is None else await fit(pending)
        await self._insist(lambda: end_job(self._database, lease, fit_outcome=outcome))

    async def _notify(self, lease: Lease) -> None:
        """Send the notice that a batch has ended; if it fails, try again, later each time."""
        status, delay = "delivered", None
        try:
            await self._notifier.notify(lease.batch)
        except CallgradeError as error:
            if error.retryable and lease.attempt < MAX_NOTICE_ATTEMPTS:
                delay = 5.0 * 4 ** (lease.attempt - 1)
            status = "failed" if delay is None else "pending"
            LOG.warning("a webhook was not taken", extra={"fields": {"batch": lease.batch, "why": str(error)}})
        await self._insist(lambda: record_notice(self._database, lease, status, delay=delay))

    async def _insist(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(insist, work)


@asynccontextmanager
async def keep_working(
    worker: Worker, chunks: Chunks, *, sweep: Callable[[], None], grace: float
) -> AsyncGenerator[None]:
    """Run a worker in this event loop for as long as the block lasts.

    At the end, running items have `grace` seconds, and the rest is left to other workers. Calls `sweep` now and then, in a
    thread.
    """
    with _keep_beating(worker, chunks, sweep):
        LOG.info("working", extra={"fields": {"worker": chunks.owner}})
        async with asyncio.TaskGroup() as group:
            working = group.create_task(worker.work())
            try:
                yield
            finally:
                await worker.drain(grace)
                working.cancel()


@contextmanager
def _keep_beating(worker: Worker, chunks: Chunks, sweep: Callable[[], None]) -> Generator[None]:
    """Beat from a separate thread: a busy event loop must not look dead."""
    workers, over = Workers(chunks.database), threading.Event()
    insist(lambda: workers.beat(chunks.owner))  # it is registered before it owns anything
    heart = _Heart(worker, chunks, workers, asyncio.get_running_loop())
    parts = {"beat": (BEAT_INTERVAL_S, heart.beat), "sweep": (SWEEP_INTERVAL_S, sweep)}
    threads = [
        threading.Thread(target=_repeat, args=(name, *part, over), name=name, daemon=True)
        for name, part in parts.items()
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(timeout=10.0)
        with suppress(BusyError):  # then others see that it is dead
            insist(lambda: workers.leave(chunks.owner), give_up=LEAVE_S)


def _repeat(name: str, interval: float, work: Callable[[], None], over: threading.Event) -> None:
    while not over.wait(interval):
        try:
            work()
        except Exception:  # the database is away and will come back; the work itself waits for it too
            LOG.warning("no %s", "heartbeat" if name == "beat" else name, exc_info=True)


class _Heart:
    """What a worker does every second: it shows that it lives, and looks who else does and what is its own."""

    def __init__(self, worker: Worker, chunks: Chunks, workers: Workers, loop: asyncio.AbstractEventLoop) -> None:
        self._worker = worker
        self._chunks = chunks
        self._workers = workers
        self._loop = loop
        self._watch = WorkerWatch()
        self._unknown: frozenset[Lease] = frozenset()
        self._unregistered: frozenset[str] = frozenset()

    def beat(self) -> None:
        """Beat; reclaim what dead workers own; give back what was claimed here in a commit whose reply was lost."""
        if time.monotonic() - self._worker.ticked_at > MAX_STILL_S:
            LOG.critical("the event loop stands still; other workers take the work over")
            return
        self._workers.beat(self._chunks.owner)
        held = self._worker.list_held()
        owned = self._chunks.list_owned()
        if lost := held - owned:
            self._loop.call_soon_threadsafe(self._worker.supersede, lost)
        unknown = owned - self._worker.list_held()
        for lease in unknown & self._unknown:
            LOG.warning("giving back what was claimed and never begun", extra={"fields": {"batch": lease.batch}})
            self._chunks.put_off(lease)
        self._unknown = unknown
        self._reclaim()

    def _reclaim(self) -> None:
        """Reclaim from workers whose beats stand still, and from owners that were not registered at two looks."""
        owners = self._workers.list_owners()
        known = self._workers.list_workers()
        unregistered = owners - {worker.id for worker in known}
        dead = [worker for worker in self._watch.find_dead(known) if worker.id != self._chunks.owner]
        for worker in (*dead, *[WorkerRecord(owner, 0) for owner in unregistered & self._unregistered]):
            if (count := self._workers.reclaim(worker)) is not None:
                LOG.warning("taking over", extra={"fields": {"worker": worker.id, "chunks": count}})
        self._unregistered = unregistered
