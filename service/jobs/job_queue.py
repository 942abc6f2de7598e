"""The batch engine, DBOS: chunks are its workflows, and what a dead process held is taken over by the others.

It keeps its own tables beside ours, in the same database, so a batch and the work it means are committed together. Nothing
it keeps is pickled. Scores, costs and states are in our tables alone.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Literal, Protocol, cast

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer, EnqueueOptions
from dbos._queue import queue_worker_thread

from service.jobs.bells import Bell, Bells
from service.jobs.runner import Ended, Owns
from service.logs.quiet import hush, limit_rate
from service.store.database import Database
from service.store.jobs.leases import ChunkId

LOG = logging.getLogger("callgrade.batches")

JSON = DBOSPortableJSONSerializer()

NAME = "callgrade"
VERSION = "1"
"""The same for all releases: what one has put into the queue, the next works on."""

CHUNKS = "callgrade-chunks"
FINISH = "callgrade-finish"
NOTICES = "callgrade-notices"
SPREAD = 4
"""Chunks of a tenant's batch that go before one of its next batch."""

LATEST = 2**31 - 1
"""The engine's largest priority number, which is taken last."""


class Enqueuer:
    """Puts work into the queue."""

    def __init__(self, database: Database) -> None:
        self._client = DBOSClient(
            system_database_engine=database.engine, serializer=JSON, application_name=NAME, lazy=True
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
        """A chunk is to be worked on, in `delay` seconds. One of the same generation is put in once only.

        The first chunks of all batches go before the second ones, so that a long batch does not keep a short one waiting; and
        each further batch of a tenant, of whom `ahead` are there, has a chunk where the one before has `SPREAD`: many batches
        take hardly more of a worker than one, and a short one still comes early.
        """
        options = _build_options("score_chunk", CHUNKS, _build_id(ChunkId(batch, number), generation), delay)
        options["priority"] = min((number + 1) * SPREAD ** min(ahead, 16), LATEST)
        self._client.enqueue_in_transaction(connection, options, batch, number, generation)

    def enqueue_finish(self, connection: sa.Connection, batch: str) -> None:
        """A batch is to be ended: nothing of it is under way any more."""
        self._client.enqueue_in_transaction(
            connection, _build_options("finish_batch", FINISH, f"{batch}/finish"), batch
        )

    def enqueue_notice(self, connection: sa.Connection, batch: str, *, attempt: int = 1, delay: float = 0.0) -> None:
        """Whoever wants to be told of the end of a batch is to be told, in `delay` seconds."""
        options = _build_options("notify", NOTICES, f"{batch}/notice/{attempt}", delay)
        self._client.enqueue_in_transaction(connection, options, batch, attempt)


def _build_id(chunk: ChunkId, generation: int) -> str:
    return f"{chunk.batch}/{chunk.number}/{generation}"


def _build_options(workflow: str, queue: str, workflow_id: str, delay: float = 0.0) -> EnqueueOptions:
    options: EnqueueOptions = {"workflow_name": workflow, "queue_name": queue, "workflow_id": workflow_id}
    options["app_version"] = VERSION
    if delay > 0:
        options["delay_seconds"] = delay
    return options


class Tasks(Protocol):
    """What a worker does."""

    async def run(self, chunk: ChunkId, generation: int, owns: Owns) -> Ended:
        """Works on a chunk that this process owns, as `owns` tells once it is opened."""
        ...

    async def end(self, batch: str) -> None:
        """Ends a batch."""
        ...

    async def notify(self, batch: str, attempt: int) -> None:
        """Tells of the end of a batch, for the `attempt`th time."""
        ...


_tasks: Tasks | None = None
_executor = ""
_under_way: dict[str, str] = {}
"""The workflows that run here, by their ids the queues they came from."""
_bells: list[Bells] = []


@contextmanager
def _mark_under_way(queue: str) -> Generator[str]:
    """The id of the workflow that runs, which is known to be under way."""
    workflow_id = DBOS.workflow_id or ""
    _under_way[workflow_id] = queue
    try:
        yield workflow_id
    finally:
        del _under_way[workflow_id]


def _get_tasks() -> Tasks:
    if _tasks is None:
        raise RuntimeError("a workflow was started outside a worker")
    return _tasks


async def _run_insisting(work: Callable[[], Awaitable[Ended]], failures: int) -> Ended | Literal["failed"]:
    """An error that escaped would end the workflow, and its chunk would never be finished."""
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
    """Whether a workflow is this process's: it is not where it was taken over, and nothing should be paid for it then."""
    found = await DBOS.get_workflow_status_async(workflow_id)
    return found is not None and found.executor_id == _executor


@DBOS.workflow(name="score_chunk", max_recovery_attempts=None)
async def score_chunk(batch: str, number: int, generation: int) -> str:
    """Works on one chunk. Each opening is a step, and the engine lets only the owner of the workflow go past one.

    So of two that opened a chunk one after the other, the one that owns it opens it anew, and the other one stops here.
    """
    with _mark_under_way(CHUNKS) as workflow_id:
        failures, owns = 0, partial(_is_owned, workflow_id)
        while True:
            ended: Ended | Literal["failed"] = await DBOS.run_step_async(
                {"name": "opening"},
                _run_insisting,
                lambda: _get_tasks().run(ChunkId(batch, number), generation, owns),
                failures,
            )
            if ended in ("done", "put off"):
                return ended
            failures += ended == "failed"


@DBOS.workflow(name="finish_batch", max_recovery_attempts=None)
async def finish_batch(batch: str) -> str:
    """Ends one batch."""
    with _mark_under_way(FINISH):
        return await DBOS.run_step_async({"name": "end"}, _run_until_done, lambda: _get_tasks().end(batch))


@DBOS.workflow(name="notify", max_recovery_attempts=None)
async def notify(batch: str, attempt: int) -> str:
    """Tells of the end of a batch."""
    with _mark_under_way(NOTICES):
        return await DBOS.run_step_async(
            {"name": "notice"}, _run_until_done, lambda: _get_tasks().notify(batch, attempt)
        )


def prepare(database: Database) -> None:
    """Brings the engine's tables up to date."""
    hush(["dbos"])
    with database.prepare_others():
        DBOS.migrate(_render_url(database))


async def launch(database: Database, tasks: Tasks, *, executor: str, chunks: int) -> None:
    """Starts taking work out of the queue, at most `chunks` at once, in the running event loop. One for a process."""
    global _tasks, _executor
    _tasks, _executor = tasks, executor
    engine = _build_engine(database, executor)
    most = {CHUNKS: chunks, FINISH: 8, NOTICES: 8}
    DBOS.listen_queues([])  # the bells do
    DBOS.launch()
    loops: dict[str, Callable[[Bell], None]] = {}
    for name, number in most.items():
        queue = await DBOS.register_queue_async(name, worker_concurrency=number, on_conflict="always_update")
        # The engine's own loop, with a bell for the event that ends it; known to be called so in the version we are held to.
        loops[name] = lambda bell, queue=queue: queue_worker_thread(cast("threading.Event", bell), engine, queue)
    _bells.append(Bells(database, loops, lambda name: [*_under_way.values()].count(name) < most[name]))
    _bells[0].start()


async def remind(chunk: ChunkId, generation: int) -> None:
    """A chunk that was put off is due now, whatever the time of day is. One that does not wait is left alone."""
    await DBOS.set_workflow_delay_async(_build_id(chunk, generation), delay_until_epoch_ms=0)


def stop(grace: float) -> None:
    """Stops taking work. What is under way has `grace` seconds; then it is left to whoever comes next."""
    while _bells:
        _bells.pop().stop()
    DBOS.destroy(workflow_completion_timeout_sec=max(1, int(grace)))


def list_held() -> dict[str, set[str]]:
    """The work that was taken out of the queue and is not done, by who took it."""
    found: dict[str, set[str]] = {}
    for one in DBOS.list_workflows(status="PENDING", load_input=False, load_output=False):
        if one.executor_id:
            found.setdefault(one.executor_id, set()).add(one.workflow_id)
    return found


def list_under_way() -> frozenset[str]:
    """The work that this process is at."""
    return frozenset(_under_way)


def put_back(work: Iterable[str]) -> None:
    """Puts work into the queue once more that was taken out of it, and that nobody is at.

    The engine takes work out in a transaction, and loses it where the connection breaks before the answer to the commit.
    """
    for one in work:
        DBOS.resume_workflow(one)


def take_over(executors: list[str]) -> None:
    """Puts back into the queue what processes were at that are dead.

    The engine offers this to its paid service alone; the private call is known to do it in the version we are held to.
    """
    DBOS._recover_pending_workflows(executors)  # pyright: ignore[reportPrivateUsage]


def clear(*, hours: float = 24.0, most: int = 500) -> int:
    """Deletes what the engine keeps of work that was done so long ago, up to `most` pieces of it; how many there were."""
    before = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
    found = DBOS.list_workflows(
        status="SUCCESS", completed_before=before, limit=most, load_input=False, load_output=False
    )
    if found:
        DBOS.delete_workflows([one.workflow_id for one in found])
    return len(found)


def _build_engine(database: Database, executor: str) -> DBOS:
    config: DBOSConfig = {
        "name": NAME,
        "system_database_url": _render_url(database),
        "system_database_engine": database.engine,
        "application_version": VERSION,
        "executor_id": executor,
        "serializer": JSON,
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
