"""A worker: takes chunks out of the queue, gives a beat, takes over what the dead left, and keeps the house."""

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
from service.jobs.runner import Ended, Owns, Runner
from service.store.database import Database, insist
from service.store.jobs.calibrations import find_due
from service.store.jobs.endings import end, record_notice
from service.store.jobs.leases import ChunkId
from service.store.jobs.queue import Queue
from service.store.workers import LONE, Workers, WorkerWatch, make_name

LOG = logging.getLogger("callgrade.worker")

BEAT = 1.0
"""Seconds between beats, and between looks at who is silent."""

SWEEP = 15.0
"""Seconds between looks for what has expired."""

NOTICES = 8
"""How often a webhook is tried: after 5 seconds, 20, 80 and so on, for some eight hours."""


class Notifier(Protocol):
    """Tells somebody outside that a batch has ended."""

    async def notify(self, batch: str) -> None:
        """Raises CallgradeError where it could not; `retryable` says whether another try may help."""
        ...


class Worker:
    """What the workflows call."""

    def __init__(self, database: Database, queue: Queue, runner: Runner, notifier: Notifier) -> None:
        self._database = database
        self._queue = queue
        self._runner = runner
        self._notifier = notifier

    async def run(self, chunk: ChunkId, generation: int, owns: Owns) -> Ended:
        """Works on a chunk."""
        return await self._runner.run(chunk, generation, owns)

    async def end(self, batch: str) -> None:
        """Ends a batch; of a calibration, what was judged is fitted before."""
        judged = await asyncio.to_thread(insist, lambda: find_due(self._database, batch))
        fitted = None if judged is None else await fit(judged)
        await asyncio.to_thread(insist, lambda: end(self._database, self._queue, batch, fitted=fitted))

    async def notify(self, batch: str, attempt: int) -> None:
        """Tells of the end of a batch; what was not taken is told again, later each time."""
        status, again = "delivered", None
        try:
            await self._notifier.notify(batch)
        except CallgradeError as error:
            if error.retryable and attempt < NOTICES:
                again = attempt + 1, 5.0 * 4 ** (attempt - 1)
            status = "pending" if again else "failed"
            LOG.warning("a webhook was not taken", extra={"fields": {"batch": batch, "why": str(error)}})
        await asyncio.to_thread(insist, lambda: record_notice(self._database, self._queue, batch, status, again=again))


@asynccontextmanager
async def keep_working(
    database: Database, runner: Runner, worker: Worker, *, chunks: int, sweep: Callable[[], None], grace: float
) -> AsyncGenerator[None]:
    """Works in this event loop, on at most `chunks` chunks at once, for as long as the block lasts.

    At its end what is under way has `grace` seconds, and the rest is left to others. `sweep` is called now and then, in a
    thread. SettingsError where the store has a worker already and takes no second one.
    """
    with _take_name(database) as name, _keep_beating(database, name, sweep) as beats:
        await job_queue.launch(database, worker, executor=name, chunks=chunks)
        LOG.info("working", extra={"fields": {"worker": name}})
        try:
            yield
        finally:
            with ThreadPoolExecutor(1) as thread:  # not the loop's own threads: those end with the engine
                ending = asyncio.get_running_loop().run_in_executor(thread, job_queue.stop, grace)
                await asyncio.gather(runner.drain(grace), ending)
            beats.set()
            Workers(database).forget(name)  # others see at once what it leaves, if anything
            runner.close()


def _take_name(database: Database) -> AbstractContextManager[str]:
    """The worker's name among those of the store. On PostgreSQL each start has a new one: two with one name share work."""
    if database.is_sqlite:
        return _lock_store(Path(database.engine.url.database or ""))
    return nullcontext(make_name())


@contextmanager
def _lock_store(store: Path) -> Generator[str]:
    """The name of the one worker that an SQLite store has."""
    with store.with_name(store.name + ".worker").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            message = f"{store} has a worker already; SQLite takes one, PostgreSQL takes several"
            raise SettingsError.at("CALLGRADE_DATABASE_URL", message) from None
        yield LONE


@contextmanager
def _keep_beating(database: Database, name: str, sweep: Callable[[], None]) -> Generator[threading.Event]:
    """Beats from a thread of its own: a busy event loop is no reason to be taken for dead. Set the event to end it."""
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
    while not over.wait(BEAT):
        try:
            workers.beat(name)
            held = job_queue.list_held()  # before the list: who holds something was on it when they took it
            _take_over(workers, watch, name, held.keys())
            job_queue.put_back(lost.find_lost(held.get(name, set()) - job_queue.list_under_way()))
        except Exception:  # the database is away, and will be back; the work itself waits for it too
            LOG.warning("no beat", exc_info=True)


def _sweep(sweep: Callable[[], None], over: threading.Event) -> None:
    while not over.wait(SWEEP):
        try:
            sweep()
        except Exception:
            LOG.warning("the store was not swept", exc_info=True)


class LostWorkWatch:
    """Tells what a worker has taken and never begun from what it is about to begin."""

    def __init__(self, looks: int = 15) -> None:
        """`looks`: how often in a row it must be seen so, a second apart."""
        self._most = looks
        self._seen: dict[str, int] = {}

    def find_lost(self, idle: Iterable[str]) -> list[str]:
        """Which of the work that is not under way was lost."""
        self._seen = {one: self._seen.get(one, 0) + 1 for one in idle}
        lost = [one for one, looks in self._seen.items() if looks >= self._most]
        for one in lost:
            LOG.warning("putting back", extra={"fields": {"work": one}})
            del self._seen[one]
        return lost


def _take_over(workers: Workers, watch: WorkerWatch, name: str, holders: Collection[str]) -> None:
    """Has others' work done again that are silent for too long, or are not on the list at all and yet hold some."""
    known = workers.all()
    dead = watch.find_dead(known)
    lost = set(holders) - {worker.id for worker in known} - {name}
    for other in [*[worker.id for worker in dead if worker.id != name], *lost]:
        job_queue.take_over([other])
        LOG.warning("taking over", extra={"fields": {"worker": other}})
    for worker in dead:
        workers.forget_dead(worker)
