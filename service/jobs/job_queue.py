"""The engine of the queue, DBOS: chunks are its workflows, and other workers take over what a dead process held.

It keeps its own tables beside ours, in the same database, so a batch and its queued work are committed together. Nothing it
stores is pickled. Scores, costs and states are in our tables alone.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Literal, NamedTuple, Protocol, cast

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer, EnqueueOptions
from dbos._queue import queue_worker_thread

from service.jobs.bells import Bell, Bells
from service.jobs.runner import AttemptEnd, OwnerCheck
from service.logs.quiet import hush, limit_rate
from service.store.database import Database
from service.store.jobs.leases import ChunkId

LOG = logging.getLogger("callgrade.batches")

SERIALIZER = DBOSPortableJSONSerializer()

APP_NAME = "callgrade"
APP_VERSION = "1"
"""The same for all releases: what one release enqueues, the next one runs."""

CHUNK_QUEUE = "callgrade-chunks"
FINISH_QUEUE = "callgrade-finish"
NOTICE_QUEUE = "callgrade-notices"
PRIORITY_SPREAD = 4
"""Chunks of a tenant's batch that go before one chunk of its next batch."""

MAX_PRIORITY = 2**31 - 1
"""The engine's largest priority number, which is served last."""


class Enqueuer:
    """Puts work into the queue."""

    def __init__(self, database: Database) -> None:
        self._client = DBOSClient(
            system_database_engine=database.engine, serializer=SERIALIZER, application_name=APP_NAME, lazy=True
        )

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
        """Enqueue a chunk, due in `delay` seconds. The same generation of a chunk is enqueued once only.

        The first chunks of all batches go before the second ones, so that a long batch does not keep a short one waiting. Each
        further batch of a tenant, with `ahead` before it, gets one chunk for every `PRIORITY_SPREAD` of the one before: many
        batches take hardly more of a worker than one does, and a short one still comes early.
        """
        options = _build_options("score_chunk", CHUNK_QUEUE, _build_id(ChunkId(batch, number), generation), delay)
        options["priority"] = min((number + 1) * PRIORITY_SPREAD ** min(ahead, 16), MAX_PRIORITY)
        self._client.enqueue_in_transaction(connection, options, batch, number, generation)

    def enqueue_finish(self, connection: sa.Connection, batch: str) -> None:
        """Enqueue the end of a batch: none of it is under way any more."""
        self._client.enqueue_in_transaction(
            connection, _build_options("finish_batch", FINISH_QUEUE, f"{batch}/finish"), batch
        )

    def enqueue_notice(self, connection: sa.Connection, batch: str, *, attempt: int = 1, delay: float = 0.0) -> None:
        """Enqueue a notice that a batch has ended, due in `delay` seconds."""
        options = _build_options("notify", NOTICE_QUEUE, f"{batch}/notice/{attempt}", delay)
        self._client.enqueue_in_transaction(connection, options, batch, attempt)


def _build_id(chunk: ChunkId, generation: int) -> str:
    return f"{chunk.batch}/{chunk.number}/{generation}"


def _build_options(workflow: str, queue: str, workflow_id: str, delay: float = 0.0) -> EnqueueOptions:
    options: EnqueueOptions = {"workflow_name": workflow, "queue_name": queue, "workflow_id": workflow_id}
    options["app_version"] = APP_VERSION
    if delay > 0:
        options["delay_seconds"] = delay
    return options


class Tasks(Protocol):
    """The work that the workflows hand to a worker."""

    async def run(self, chunk: ChunkId, generation: int, is_owner: OwnerCheck) -> AttemptEnd:
        """Run a chunk that this process owns, as `is_owner` confirms after the lease."""
        ...

    async def end(self, batch: str) -> None:
        """End a batch."""
        ...

    async def notify(self, batch: str, attempt: int) -> None:
        """Send the notice that a batch has ended, for the `attempt`th time."""
        ...


class _Run(NamedTuple):
    """A workflow running here: its id, and the queue it came from."""

    workflow_id: str
    queue: str


_tasks: Tasks | None = None
_executor = ""
_under_way: list[_Run] = []
"""What runs here. A process that was taken for dead may take its own work again: then both runs are listed until one ends."""
_bells: list[Bells] = []
_stopping = threading.Event()
"""Set from the moment this process is told to stop taking work."""


@contextmanager
def _mark_under_way(queue: str) -> Generator[str]:
    """Mark the current workflow as under way, and yield its id."""
    run = _Run(DBOS.workflow_id or "", queue)
    _under_way.append(run)
    try:
        yield run.workflow_id
    finally:
        _under_way.remove(run)


def _get_tasks() -> Tasks:
    if _tasks is None:
        raise RuntimeError("a workflow was started outside a worker")
    return _tasks


async def _run_insisting(work: Callable[[], Awaitable[AttemptEnd]], failures: int) -> AttemptEnd | Literal["failed"]:
    """Run an attempt; an error that escaped would end the workflow, and its chunk would never finish."""
    try:
        return await work()
    except Exception:
        LOG.exception("a chunk could not be worked on; it is tried again")
        await asyncio.sleep(min(60.0, 2.0**failures))
        return "failed"


async def _run_until_done(work: Callable[[], Awaitable[None]]) -> str:
    while True:
        try:
            await work()
        except Exception:
            LOG.exception("a batch could not be ended; it is tried again")
            await asyncio.sleep(5.0)
        else:
            return "done"


async def _is_owned(workflow_id: str) -> bool:
    """Whether this process owns a workflow. After a takeover it does not, and must not pay for anything."""
    found = await DBOS.get_workflow_status_async(workflow_id)
    return found is not None and found.executor_id == _executor


@DBOS.workflow(name="score_chunk", max_recovery_attempts=None)
async def score_chunk(batch: str, number: int, generation: int) -> str:
    """Run one chunk. Each attempt is a step, and the engine lets only the owner of the workflow go past one.

    So if two processes leased a chunk one after the other, the owner leases it again, and the other stops here.
    """
    with _mark_under_way(CHUNK_QUEUE) as workflow_id:
        failures, is_owner = 0, partial(_is_owned, workflow_id)
        while True:
            ended: AttemptEnd | Literal["failed"] = await DBOS.run_step_async(
                {"name": "opening"},
                _run_insisting,
                lambda: _get_tasks().run(ChunkId(batch, number), generation, is_owner),
                failures,
            )
            if ended in ("done", "put off"):
                return ended
            failures += ended == "failed"


@DBOS.workflow(name="finish_batch", max_recovery_attempts=None)
async def finish_batch(batch: str) -> str:
    """End one batch."""
    with _mark_under_way(FINISH_QUEUE):
        return await DBOS.run_step_async({"name": "end"}, _run_until_done, lambda: _get_tasks().end(batch))


@DBOS.workflow(name="notify", max_recovery_attempts=None)
async def notify(batch: str, attempt: int) -> str:
    """Send the notice that a batch has ended."""
    with _mark_under_way(NOTICE_QUEUE):
        return await DBOS.run_step_async(
            {"name": "notice"}, _run_until_done, lambda: _get_tasks().notify(batch, attempt)
        )


def prepare(database: Database) -> None:
    """Migrate the engine's tables."""
    hush(["dbos"])
    with database.prepare_others():
        DBOS.migrate(_render_url(database))


async def launch(database: Database, tasks: Tasks, *, executor: str, chunks: int) -> None:
    """Start taking work from the queue, at most `chunks` at a time, in the running event loop. Once per process."""
    global _tasks, _executor
    _tasks, _executor = tasks, executor
    _stopping.clear()
    engine = _build_engine(database, executor)
    limits = {CHUNK_QUEUE: chunks, FINISH_QUEUE: 8, NOTICE_QUEUE: 8}
    DBOS.listen_queues([])  # the bells listen instead
    DBOS.launch()
    loops: dict[str, Callable[[Bell], None]] = {}
    for name, number in limits.items():
        queue = await DBOS.register_queue_async(name, worker_concurrency=number, on_conflict="always_update")
        # The engine's own loop, with a bell in place of its stop event; the pinned version is known to call it like this.
        loops[name] = lambda bell, queue=queue: queue_worker_thread(cast("threading.Event", bell), engine, queue)
    _bells.append(Bells(database, loops, lambda name: sum(run.queue == name for run in [*_under_way]) < limits[name]))
    _bells[0].start()


async def remind(chunk: ChunkId, generation: int) -> None:
    """Make a deferred chunk due now, whatever the wall clock says. Leaves a chunk alone that is not waiting."""
    await DBOS.set_workflow_delay_async(_build_id(chunk, generation), delay_until_epoch_ms=0)


def stop(grace: float) -> None:
    """Stop taking work. What is under way has `grace` seconds; then it is left to the next worker."""
    _stopping.set()
    while _bells:
        _bells.pop().stop()
    DBOS.destroy(workflow_completion_timeout_sec=max(1, int(grace)))


def is_stopping() -> bool:
    """Whether this process was told to stop taking work, so that calls into the engine may fail."""
    return _stopping.is_set()


def list_pending() -> dict[str, set[str]]:
    """List the work that was taken from the queue and is not done, by the worker that took it."""
    pending: dict[str, set[str]] = {}
    for one in DBOS.list_workflows(status="PENDING", load_input=False, load_output=False):
        if one.executor_id:
            pending.setdefault(one.executor_id, set()).add(one.workflow_id)
    return pending


def list_running() -> frozenset[str]:
    """List the work that this process is running."""
    return frozenset([run.workflow_id for run in [*_under_way]])  # a copy: other threads change the list


def put_back(work: Iterable[str]) -> None:
    """Put work back into the queue that was taken from it and that nobody runs.

    The engine takes work in a transaction, and loses it if the connection breaks before the reply to the commit.
    """
    for one in work:
        DBOS.resume_workflow(one)


def take_over(executors: list[str]) -> None:
    """Put the work of dead processes back into the queue.

    The engine offers this only to its paid service; the private call is known to do it in the pinned version.
    """
    DBOS._recover_pending_workflows(executors)  # pyright: ignore[reportPrivateUsage]


def delete_old(*, hours: float = 24.0, most: int = 500) -> int:
    """Delete up to `most` of the engine's records of work done more than `hours` ago; return how many."""
    before = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
    found = DBOS.list_workflows(
        status="SUCCESS", completed_before=before, limit=most, load_input=False, load_output=False
    )
    if found:
        DBOS.delete_workflows([one.workflow_id for one in found])
    return len(found)


def _build_engine(database: Database, executor: str) -> DBOS:
    config: DBOSConfig = {
        "name": APP_NAME,
        "system_database_url": _render_url(database),
        "system_database_engine": database.engine,
        "application_version": APP_VERSION,
        "executor_id": executor,
        "serializer": SERIALIZER,
        "enable_otlp": False,
        "log_level": "WARNING",
    }
    engine = DBOS(config=config)
    hush(["dbos"])
    limit_rate("dbos")
    logging.getLogger("dbos").propagate = True
    return engine


def _render_url(database: Database) -> str:
    return database.engine.url.render_as_string(hide_password=False)
