"""A worker: takes chunks from the queue, sends heartbeats, takes over from dead workers, and sweeps the store."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Protocol

from service.errors import CallgradeError, SettingsError
from service.jobs import job_queue
from service.jobs.fitting import fit
from service.jobs.runner import AttemptEnd, OwnerCheck, Runner
from service.store.database import Database, insist
from service.store.jobs.calibrations import find_pending_fit
from service.store.jobs.endings import end_job, record_notice
from service.store.jobs.leases import ChunkId
from service.store.jobs.queue import Queue
from service.store.workers import SQLITE_WORKER, Workers, WorkerWatch, make_name

LOG = logging.getLogger("callgrade.worker")

BEAT_INTERVAL_S = 1.0
"""Seconds between heartbeats, and between checks for silent workers."""

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
    """Does the work of the queue's workflows."""

    def __init__(self, database: Database, queue: Queue, runner: Runner, notifier: Notifier) -> None:
        self._database = database
        self._queue = queue
        self._runner = runner
        self._notifier = notifier

    async def run(self, chunk: ChunkId, generation: int, is_owner: OwnerCheck) -> AttemptEnd:
        """Run a chunk."""
        return await self._runner.run(chunk, generation, is_owner)

    async def end(self, batch: str) -> None:
        """End a batch; fit a calibration first, if its items are judged."""
        pending = await asyncio.to_thread(insist, lambda: find_pending_fit(self._database, batch))
        outcome = None if pending is None else await fit(pending)
        await asyncio.to_thread(insist, lambda: end_job(self._database, self._queue, batch, fit_outcome=outcome))

    async def notify(self, batch: str, attempt: int) -> None:
        """Send the notice that a batch has ended; if it fails, enqueue another attempt, later each time."""
        status, next_attempt = "delivered", None
        try:
            await self._notifier.notify(batch)
        except CallgradeError as error:
            if error.retryable and attempt < MAX_NOTICE_ATTEMPTS:
                next_attempt = attempt + 1, 5.0 * 4 ** (attempt - 1)
            status = "pending" if next_attempt else "failed"
            LOG.warning("a webhook was not taken", extra={"fields": {"batch": batch, "why": str(error)}})
        await asyncio.to_thread(
            insist, lambda: record_notice(self._database, self._queue, batch, status, next_attempt=next_attempt)
        )


@asynccontextmanager
async def keep_working(
    database: Database, runner: Runner, worker: Worker, *, chunks: int, sweep: Callable[[], None], grace: float
) -> AsyncGenerator[None]:
    """Run work in this event loop, on at most `chunks` chunks at once, for as long as the block lasts.

    At the end, running items have `grace` seconds, and the rest is left to other workers. Calls `sweep` now and then, in a
    thread. Raises SettingsError if the store already has a worker and takes no second one.
    """
    with _take_name(database) as name, _keep_beating(database, name, sweep) as beats:
        await job_queue.launch(database, worker, executor=name, chunks=chunks)
        LOG.info("working", extra={"fields": {"worker": name}})
        try:
            yield
        finally:
            with ThreadPoolExecutor(1) as thread:  # not one of the loop's own threads: those end with the engine
                ending = asyncio.get_running_loop().run_in_executor(thread, job_queue.stop, grace)
                await asyncio.gather(runner.drain(grace), ending)
            beats.set()
            Workers(database).forget(name)  # the others see at once what it leaves, if anything
            runner.close()


def _take_name(database: Database) -> AbstractContextManager[str]:
    """Name the worker within the store. On PostgreSQL each start takes a new name: workers of one name would share work."""
    if database.is_sqlite:
        return _lock_store(Path(database.engine.url.database or ""))
    return nullcontext(make_name())


@contextmanager
def _lock_store(store: Path) -> Generator[str]:
    """Lock an SQLite store, and yield the name of its only worker."""
    with store.with_name(store.name + ".worker").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            message = f"{store} has a worker already; SQLite takes one, PostgreSQL takes several"
            raise SettingsError.at("CALLGRADE_DATABASE_URL", message) from None
        yield SQLITE_WORKER


@contextmanager
def _keep_beating(database: Database, name: str, sweep: Callable[[], None]) -> Generator[threading.Event]:
    """Send heartbeats from a separate thread: a busy event loop must not look dead. Set the yielded event to stop."""
    workers = Workers(database)
    if database.is_sqlite:
        workers.forget(name)
    workers.register(name)
    over = threading.Event()
    beating = threading.Thread(target=_beat, args=(workers, name, over), name="beat", daemon=True)
    sweeping = threading.Thread(target=_sweep, args=(sweep, over), name="sweep", daemon=True)
    for thread in (beating, sweeping):
        thread.start()
    try:
        yield over
    finally:
        over.set()
        for thread in (beating, sweeping):
            thread.join(timeout=10.0)


def _beat(workers: Workers, name: str, over: threading.Event) -> None:
    watch, lost = WorkerWatch(), LostWorkWatch()
    while not over.wait(BEAT_INTERVAL_S):
        try:
            workers.beat(name)
            pending = job_queue.list_pending()  # before the workers: whoever holds work was registered when taking it
            _take_over(workers, watch, name, pending.keys())
            job_queue.put_back(lost.find_lost(pending.get(name, set()) - job_queue.list_running()))
        except Exception:  # the database is away and will come back; the work itself waits for it too
            if not job_queue.is_stopping():
                LOG.warning("no heartbeat", exc_info=True)


def _sweep(sweep: Callable[[], None], over: threading.Event) -> None:
    while not over.wait(SWEEP_INTERVAL_S):
        try:
            sweep()
        except Exception:
            LOG.warning("the store was not swept", exc_info=True)


class LostWorkWatch:
    """Tells work that a worker took and lost from work that it is about to start."""

    def __init__(self, looks: int = 15) -> None:
        """`looks`: how often in a row the work must be seen idle, a second apart."""
        self._max_looks = looks
        self._seen: dict[str, int] = {}

    def find_lost(self, idle: Iterable[str]) -> list[str]:
        """Return the idle work that was lost."""
        self._seen = {one: self._seen.get(one, 0) + 1 for one in idle}
        lost = [one for one, looks in self._seen.items() if looks >= self._max_looks]
        for one in lost:
            LOG.warning("putting back", extra={"fields": {"work": one}})
            del self._seen[one]
        return lost


def _take_over(workers: Workers, watch: WorkerWatch, name: str, holders: Collection[str]) -> None:
    """Requeue the work of workers that are silent for too long, or that hold work without being registered."""
    known = workers.list_workers()
    dead = watch.find_dead(known)
    lost = set(holders) - {worker.id for worker in known} - {name}
    for other in [*[worker.id for worker in dead if worker.id != name], *lost]:
        job_queue.take_over([other])
        LOG.warning("taking over", extra={"fields": {"worker": other}})
    for worker in dead:
        workers.forget_dead(worker)
