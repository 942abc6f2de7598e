"""What we rely on of the batch engine, in one process."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from inspect import signature
from pathlib import Path

import sqlalchemy as sa
from dbos import DBOS
from dbos._queue import queue_worker_thread

from service.jobs import job_queue
from service.jobs.runner import AttemptEnd, OwnerCheck
from service.store.database import Database, open_database
from service.store.jobs.leases import ChunkId


class Counting:
    """Tasks that count how often they are given a chunk; the first openings of each are told that another one counts."""

    def __init__(self, refusals: int = 0) -> None:
        self.runs: list[ChunkId] = []
        self.refusals = refusals
        self.ended: list[str] = []

    async def run(self, chunk: ChunkId, generation: int, is_owner: OwnerCheck) -> AttemptEnd:
        assert await is_owner()
        self.runs.append(chunk)
        return "refused" if self.runs.count(chunk) <= self.refusals else "done"

    async def end(self, batch: str) -> None:
        self.ended.append(batch)
        if len(self.ended) == 1:
            raise RuntimeError("the first time something goes wrong")

    async def notify(self, batch: str, attempt: int) -> None:
        raise AssertionError("nobody asked for it")


def store(folder: Path) -> Database:
    database = open_database(f"sqlite:///{folder}/store.db")
    database.migrate()
    job_queue.prepare(database)
    return database


async def until_done(database: Database, number: int) -> None:
    while True:
        with database.read() as connection:
            chosen = "SELECT count(*) FROM workflow_status WHERE status = 'SUCCESS'"
            if connection.exec_driver_sql(chosen).scalar() == number:
                return
        await asyncio.sleep(0.02)


def test_the_engine_is_the_one_we_know() -> None:
    assert version("dbos").startswith("3.4.")
    assert [*signature(DBOS._recover_pending_workflows).parameters] == ["executor_ids"]
    assert [*signature(queue_worker_thread).parameters] == ["stop_event", "dbos", "queue"]
    assert job_queue.APP_VERSION == "1"  # another one would strand what replicas of the last release put into the queue


def test_what_is_put_in_counts_with_the_transaction(tmp_path: Path) -> None:
    database, tasks = store(tmp_path), Counting(refusals=1)
    queue = job_queue.Enqueuer(database)

    async def main() -> None:
        await job_queue.launch(database, tasks, executor="test", chunks=2)
        try:
            with database.begin() as connection:
                queue.enqueue_chunk(connection, "batch", 0)
                queue.enqueue_chunk(connection, "batch", 0)
                queue.enqueue_finish(connection, "batch")
            connection = database.engine.connect()
            with connection, connection.begin() as transaction:
                queue.enqueue_chunk(connection, "never", 0)
                transaction.rollback()
            await asyncio.wait_for(until_done(database, 2), 60)
        finally:
            await asyncio.get_running_loop().run_in_executor(None, job_queue.stop, 1.0)

    asyncio.run(main())
    assert tasks.runs == [ChunkId("batch", 0)] * 2
    assert tasks.ended == ["batch", "batch"]
    database.close()


def test_an_idle_worker_asks_little_and_a_busy_one_begins_soon(tmp_path: Path) -> None:
    database, tasks, asked = store(tmp_path), Counting(), list[str]()
    queue = job_queue.Enqueuer(database)

    async def main() -> None:
        await job_queue.launch(database, tasks, executor="test", chunks=2)
        try:
            await asyncio.sleep(1.0)  # the engine's own loops have had their first looks
            sa.event.listen(database.engine, "before_cursor_execute", lambda *told: asked.append(told[2]), named=False)
            await asyncio.sleep(2.0)
            assert len(asked) < 60, asked  # it was 200 when the engine's loops went by the clock
            for number in range(5):
                with database.begin() as connection:
                    queue.enqueue_chunk(connection, "batch", number)
            await asyncio.wait_for(until_done(database, 5), 60)
        finally:
            await asyncio.get_running_loop().run_in_executor(None, job_queue.stop, 1.0)

    asyncio.run(main())
    assert len(tasks.runs) == 5
    database.close()


def test_what_a_process_left_behind_is_known_and_taken_over(tmp_path: Path) -> None:
    database = store(tmp_path)
    queue = job_queue.Enqueuer(database)

    class Stuck(Counting):
        async def end(self, batch: str) -> None:
            self.ended.append(batch)
            begun.set()
            if len(self.ended) == 1:
                await asyncio.sleep(3_600.0)

    tasks, begun = Stuck(), asyncio.Event()

    async def main() -> None:
        await job_queue.launch(database, tasks, executor="first", chunks=2)
        with database.begin() as connection:
            queue.enqueue_finish(connection, "batch")
        await begun.wait()
        assert await asyncio.to_thread(job_queue.list_pending) == {"first": {"batch/finish"}}
        loop, thread = asyncio.get_running_loop(), ThreadPoolExecutor(1)
        await loop.run_in_executor(thread, job_queue.stop, 1.0)
        loop.set_default_executor(ThreadPoolExecutor())
        await job_queue.launch(database, tasks, executor="second", chunks=2)
        try:
            assert await asyncio.to_thread(job_queue.list_pending) == {"first": {"batch/finish"}}
            await asyncio.to_thread(job_queue.take_over, ["first"])
            await asyncio.wait_for(until_done(database, 1), 60)
        finally:
            await loop.run_in_executor(thread, job_queue.stop, 1.0)

    asyncio.run(main())
    assert tasks.ended == ["batch", "batch"]
    database.close()


def test_work_that_a_process_takes_again_while_it_runs_is_done(tmp_path: Path) -> None:
    database = store(tmp_path)
    queue = job_queue.Enqueuer(database)
    begun, released = [asyncio.Event() for _ in range(3)], [asyncio.Event() for _ in range(3)]

    class Held(Counting):
        async def run(self, chunk: ChunkId, generation: int, is_owner: OwnerCheck) -> AttemptEnd:
            number = len(self.runs)
            self.runs.append(chunk)
            begun[number].set()
            await released[number].wait()
            return "done"

    tasks = Held()

    async def main() -> None:
        await job_queue.launch(database, tasks, executor="test", chunks=2)
        try:
            with database.begin() as connection:
                queue.enqueue_chunk(connection, "batch", 0)
            await begun[0].wait()
            await asyncio.to_thread(job_queue.take_over, ["test"])  # as another does with one that is frozen
            await begun[1].wait()
            with database.begin() as connection:
                queue.enqueue_chunk(connection, "batch", 1)
            released[0].set()
            await begun[2].wait()  # the run that counts no more has made room
            assert job_queue.list_running() == {"batch/0/0", "batch/1/0"}
            for one in released:
                one.set()
            await asyncio.wait_for(until_done(database, 2), 60)
        finally:
            await asyncio.get_running_loop().run_in_executor(None, job_queue.stop, 1.0)

    asyncio.run(main())
    assert tasks.runs == [ChunkId("batch", 0), ChunkId("batch", 0), ChunkId("batch", 1)]
    database.close()


def test_what_is_done_is_cleared_away_in_time(tmp_path: Path) -> None:
    database, tasks = store(tmp_path), Counting()
    queue = job_queue.Enqueuer(database)

    async def main() -> list[int]:
        await job_queue.launch(database, tasks, executor="test", chunks=2)
        try:
            with database.begin() as connection:
                for number in range(5):
                    queue.enqueue_chunk(connection, "batch", number)
                queue.enqueue_chunk(connection, "batch", 5, delay=3_600.0)
            await asyncio.wait_for(until_done(database, 5), 60)
            return [
                await asyncio.to_thread(job_queue.delete_old, hours=24.0),
                await asyncio.to_thread(job_queue.delete_old, hours=-1.0, most=3),
                await asyncio.to_thread(job_queue.delete_old, hours=-1.0),
            ]
        finally:
            await asyncio.get_running_loop().run_in_executor(None, job_queue.stop, 1.0)

    assert asyncio.run(main()) == [0, 3, 2]
    with database.read() as connection:
        assert connection.execute(sa.text("SELECT status FROM workflow_status")).scalars().all() == ["DELAYED"]
    database.close()


def test_three_batches_of_one_tenant_take_little_more_of_a_worker_than_one(tmp_path: Path) -> None:
    database = store(tmp_path)
    queue = job_queue.Enqueuer(database)
    batches = [("theirs-1", 40, 0), ("theirs-2", 40, 1), ("theirs-3", 40, 2), ("ours", 8, 0)]
    with database.begin() as connection:
        for batch, chunks, ahead in batches:
            for number in range(chunks):
                queue.enqueue_chunk(connection, batch, number, ahead=ahead)
    taken = sa.text("SELECT workflow_uuid FROM workflow_status ORDER BY priority, created_at")
    with database.read() as connection:
        order = [str(name).partition("/")[0] for name in connection.execute(taken).scalars()]
    assert max(n for n, batch in enumerate(order) if batch == "ours") < 2.5 * 8
    assert order.index("theirs-3") < 40  # a short one comes early, however long those before it are
    database.close()
