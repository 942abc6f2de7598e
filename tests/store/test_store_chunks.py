"""Chunks in the store: who opened one last may write, what was written stays, what comes next is in the queue."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from service.asking.budget.reservations import Spending
from service.engine import Engine
from service.errors import SettingsError
from service.jobs.items import ItemScorer
from service.jobs.recorder import Account, Recorder
from service.reading.strict_json import Limits
from service.registry import Registry
from service.store.database import Database
from service.store.jobs.batches import Batches
from service.store.jobs.chunks import Chunks
from service.store.jobs.endings import end_job, record_notice
from service.store.jobs.leases import ChunkId, ChunkSpending, Lease, LeasedChunk, OutcomeRow, OutcomeRows, Pause
from service.store.jobs.submission import JobSubmission
from service.store.tables import BATCHES, CHUNKS, RESULTS
from service.store.workers import WorkerRecord, Workers, WorkerWatch
from tests.jobs.process import chunks, request
from tests.store.played import Recording


class Stage:
    """A store with the two sides of it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.queue = Recording()
        self.batches = Batches(database, self.queue)
        self.chunks = Chunks(database, self.queue)

    def submit(self, items: int, *, size: int = 4, **more: Any) -> str:
        submission = JobSubmission(tenant="t", fingerprint="", hours=1.0, **more)
        return self.batches.submit(submission, chunks([request(n) for n in range(items)], size)).id

    def opened(self, batch: str, number: int = 0, generation: int = 0) -> LeasedChunk:
        found = self.chunks.lease(ChunkId(batch, number), generation)
        assert found is not None
        return found

    def record(self, lease: Lease, *positions: int, ok: bool = True, spent: float = 0.0) -> bool:
        (kept,) = self.chunks.record([OutcomeRows(lease, [row(n, ok=ok) for n in positions], ChunkSpending(spent))])
        return kept

    def row(self, table: sa.Table, batch: str) -> Any:
        column = table.c.id if table is BATCHES else table.c.batch
        with self.database.read() as connection:
            return connection.execute(sa.select(table).where(column == batch).limit(1)).one()

    def lines(self, batch: str) -> list[str]:
        with self.database.read() as connection:
            chosen = sa.select(RESULTS.c.line).where(RESULTS.c.batch == batch).order_by(RESULTS.c.position)
            return list(connection.execute(chosen).scalars())


NOTHING = ChunkSpending()


def row(position: int, *, ok: bool = True, line: str = "first") -> OutcomeRow:
    return OutcomeRow(position, ok, f"{line} {position}", tokens_in=3, tokens_out=2, cache_hits=1)


@pytest.fixture
def stage(database: Database) -> Iterator[Stage]:
    return Stage(database)


def test_an_opening_gives_what_is_left_to_do(stage: Stage) -> None:
    batch = stage.submit(6)
    first = stage.opened(batch)
    assert [item.position for item in first.items] == [0, 1, 2, 3]
    assert json.loads(first.items[1].line) == {"custom_id": "item-1", "request": request(1)}
    assert stage.record(first.lease, 1, 3)
    again = stage.opened(batch)
    assert [item.position for item in again.items] == [0, 2]
    assert again.lease.attempt == first.lease.attempt + 1
    assert [item.position for item in stage.opened(batch, 1).items] == [4, 5]


def test_who_opened_a_chunk_before_somebody_else_may_write_nothing(stage: Stage) -> None:
    batch = stage.submit(4)
    late, current = stage.opened(batch).lease, stage.opened(batch).lease
    assert not stage.record(late, 0)
    assert stage.chunks.defer(late, delay=1.0, spent=NOTHING, pause="paused_provider", reason="no") is None
    assert not stage.chunks.close(late, spent=NOTHING)
    assert stage.lines(batch) == []
    assert stage.batches.find("t", batch).status == "in_progress"
    assert stage.record(current, 0)
    assert stage.lines(batch) == ["first 0"]


def test_a_refused_group_does_not_spoil_the_others(stage: Stage) -> None:
    one, other = stage.submit(4), stage.submit(4)
    late, _, held = stage.opened(one).lease, stage.opened(one), stage.opened(other).lease
    groups = [OutcomeRows(late, [row(0)], ChunkSpending(1.0)), OutcomeRows(held, [row(0)], ChunkSpending(2.0, 0.5))]
    assert stage.chunks.record(groups) == [False, True]
    assert (stage.lines(one), stage.lines(other)) == ([], ["first 0"])
    assert (stage.row(CHUNKS, other).cost_usd, stage.row(CHUNKS, other).uncertain_usd) == (2.0, 0.5)


def test_what_was_recorded_is_not_recorded_or_counted_again(stage: Stage) -> None:
    batch = stage.submit(4)
    lease = stage.opened(batch).lease
    assert stage.record(lease, 0, 1)
    assert stage.chunks.record(
        [OutcomeRows(lease, [row(1, line="second"), row(2, line="second")], ChunkSpending())]
    ) == [True]
    assert stage.lines(batch) == ["first 0", "first 1", "second 2"]
    found = stage.batches.find("t", batch)
    assert (found.request_counts.completed, found.tokens_in, found.tokens_out, found.cache_hits) == (3, 9, 6, 3)


@pytest.mark.parametrize(("failed", "status"), [((), "completed"), ((0,), "completed"), ((0, 1, 2, 3, 4), "failed")])
def test_the_last_item_ends_the_batch(stage: Stage, failed: tuple[int, ...], status: str) -> None:
    batch = stage.submit(5)
    holds = [stage.opened(batch, number).lease for number in (0, 1)]
    for position in range(5):
        assert stage.queue.finished == []
        assert stage.record(holds[position // 4], position, ok=position not in failed)
    assert (stage.queue.finished, stage.row(BATCHES, batch).status) == ([batch], "finalizing")
    assert stage.chunks.lease(ChunkId(batch, 0), 0) is None
    end_job(stage.database, stage.queue, batch)
    end_job(stage.database, stage.queue, batch)
    found = stage.batches.find("t", batch)
    assert (found.status, found.ended_at is not None) == (status, True)
    assert (found.request_counts.failed, found.request_counts.completed) == (len(failed), 5 - len(failed))


def test_a_chunk_that_is_put_off_comes_up_as_another_generation(stage: Stage) -> None:
    batch = stage.submit(4)
    lease = stage.opened(batch).lease
    assert stage.chunks.defer(lease, delay=7.0, spent=NOTHING, pause="paused_provider", reason="it is down") == 1
    paused = stage.batches.find("t", batch)
    assert (paused.status, paused.reason, paused.resume_at is not None) == ("paused_provider", "it is down", True)
    assert stage.chunks.lease(ChunkId(batch, 0), 0) is None
    again = stage.opened(batch, generation=1)
    assert stage.batches.find("t", batch).status == "paused_provider"
    assert stage.record(again.lease, 0)
    going = stage.batches.find("t", batch)
    assert (going.status, going.reason, going.resume_at) == ("in_progress", None, None)


def test_a_batch_with_a_budget_runs_one_chunk_after_the_other(stage: Stage) -> None:
    batch = stage.submit(6, budget_usd=1.0)
    assert [one.number for one in stage.queue.chunks] == [0]
    first = stage.opened(batch)
    assert first.cap_usd == 1.0
    assert stage.record(first.lease, 0, 1, 2, 3, spent=0.75)
    assert [one.number for one in stage.queue.chunks] == [0, 1]
    assert stage.opened(batch, 1).cap_usd == 0.25


def test_a_spent_budget_stops_until_it_is_raised(stage: Stage) -> None:
    batch = stage.submit(4, budget_usd=1.0)
    lease = stage.opened(batch).lease
    assert stage.record(lease, 0, spent=0.9)
    assert (
        stage.chunks.defer(lease, delay=0.0, spent=ChunkSpending(0.9), pause="paused_budget", reason="it is spent") == 1
    )
    assert [one.number for one in stage.queue.chunks] == [0]
    assert stage.chunks.lease(ChunkId(batch, 0), 1) is None
    stage.batches.resume("t", batch, budget_usd=2.0)
    resumed = stage.queue.chunks[-1]
    again = stage.opened(batch, generation=resumed.generation)
    assert again.cap_usd == pytest.approx(1.1)
    assert [item.position for item in again.items] == [1, 2, 3]


def test_asked_questions_stop_until_more_are_allowed(stage: Stage) -> None:
    batch = stage.submit(6, max_questions=8)
    first = stage.opened(batch)
    assert (first.cap_usd, first.cap_questions) == (None, 8)
    rows = [row(n) for n in range(4)]
    assert stage.chunks.record([OutcomeRows(first.lease, rows, ChunkSpending(questions=5))]) == [True]
    assert [one.number for one in stage.queue.chunks] == [0, 1]  # one after the other
    second = stage.opened(batch, 1)
    assert second.cap_questions == 3
    all_asked = ChunkSpending(questions=3)
    assert stage.chunks.defer(second.lease, delay=0.0, spent=all_asked, pause="paused_budget", reason="no more") == 1
    assert stage.chunks.lease(ChunkId(batch, 1), 1) is None
    found = stage.batches.resume("t", batch, max_questions=20)
    assert (found.questions, found.max_questions) == (8, 20)
    again = stage.opened(batch, 1, generation=stage.queue.chunks[-1].generation)
    assert (again.cap_questions, again.spent) == (12, all_asked)


def test_questions_are_counted_without_a_limit_too(stage: Stage) -> None:
    batch = stage.submit(4)
    opened = stage.opened(batch)
    assert opened.cap_questions is None
    assert stage.chunks.record([OutcomeRows(opened.lease, [row(0)], ChunkSpending(questions=2))]) == [True]
    assert (stage.batches.find("t", batch).questions, stage.batches.find("t", batch).max_questions) == (2, None)


def test_a_cancelled_batch_ends_with_the_chunk_that_was_under_way(stage: Stage) -> None:
    batch = stage.submit(12)
    lease = stage.opened(batch).lease
    stage.batches.cancel("t", batch)
    assert stage.chunks.find_over([batch]) == {batch}
    assert stage.record(lease, 0)
    assert stage.queue.finished == []
    assert stage.chunks.close(lease, spent=NOTHING)
    assert stage.queue.finished == [batch]
    end_job(stage.database, stage.queue, batch)
    counts = stage.batches.find("t", batch).request_counts
    assert (counts.completed, counts.cancelled) == (1, 11)


def test_an_ended_batch_is_told_of_where_that_is_wanted(stage: Stage) -> None:
    batch = stage.submit(1, webhook="https://example.org/hook")
    assert stage.record(stage.opened(batch).lease, 0)
    end_job(stage.database, stage.queue, batch)
    assert stage.queue.notices == [(batch, 1, 0.0)]
    assert stage.row(BATCHES, batch).webhook_status == "pending"
    record_notice(stage.database, stage.queue, batch, "pending", next_attempt=(2, 5.0))
    assert stage.queue.notices[1:] == [(batch, 2, 5.0)]
    record_notice(stage.database, stage.queue, batch, "delivered", next_attempt=None)
    assert stage.row(BATCHES, batch).webhook_status == "delivered"


def test_two_workers_do_not_go_by_one_name(database: Database) -> None:
    workers = Workers(database)
    workers.register("one")
    with pytest.raises(SettingsError, match="another worker is called one"):
        workers.register("one")
    workers.beat("two")
    assert {worker.id for worker in workers.list_workers()} == {"one", "two"}
    workers.forget("one")
    assert [worker.id for worker in workers.list_workers()] == ["two"]


def test_a_chunk_is_closed_once(stage: Stage) -> None:
    batch = stage.submit(8)
    one, other = stage.opened(batch).lease, stage.opened(batch, 1).lease
    stage.batches.cancel("t", batch)
    assert stage.chunks.close(one, spent=ChunkSpending(0.5))
    assert not stage.chunks.close(one, spent=ChunkSpending(0.5))
    assert stage.queue.finished == []
    assert stage.record(other, 4)
    assert stage.chunks.close(other, spent=NOTHING)
    assert stage.queue.finished == [batch]
    assert not stage.record(other, 5)
    assert stage.batches.find("t", batch).cost_usd == 0.5


@pytest.mark.parametrize("pause", ["paused_budget", "paused_provider", None])
def test_what_is_put_off_in_the_moment_of_the_end_is_closed(stage: Stage, pause: Pause | None) -> None:
    batch = stage.submit(4, budget_usd=1.0)
    lease = stage.opened(batch).lease
    stage.batches.cancel("t", batch)
    assert stage.chunks.defer(lease, delay=9.0, spent=ChunkSpending(0.25), pause=pause) == 1
    assert (stage.queue.finished, stage.row(BATCHES, batch).status) == ([batch], "finalizing")
    assert stage.batches.find("t", batch).cost_usd == 0.25


def test_a_cancelled_batch_does_not_wait_for_what_was_put_off(stage: Stage) -> None:
    batch = stage.submit(8)
    waits, runs = stage.opened(batch).lease, stage.opened(batch, 1).lease
    assert stage.chunks.defer(waits, delay=3_600.0, spent=NOTHING, pause="paused_provider") == 1
    assert stage.record(runs, 4)
    assert stage.batches.find("t", batch).status == "in_progress"
    stage.batches.cancel("t", batch)
    assert stage.chunks.close(runs, spent=NOTHING)
    assert stage.queue.finished == [batch]


@pytest.mark.parametrize("under_way", [False, True])
def test_a_paused_batch_that_is_cancelled_waits_for_nothing_any_more(stage: Stage, under_way: bool) -> None:
    batch = stage.submit(8)
    waits = stage.opened(batch).lease
    if under_way:
        stage.opened(batch, 1)
    stage.chunks.defer(waits, delay=3_600.0, spent=NOTHING, pause="paused_provider", reason="it is down")
    assert stage.batches.find("t", batch).resume_at is not None
    found = stage.batches.cancel("t", batch)
    assert (found.status, found.reason, found.resume_at) == ("cancelling" if under_way else "finalizing", None, None)


def test_what_runs_while_others_wait_is_left_to_run(stage: Stage) -> None:
    batch = stage.submit(8)
    waits, runs = stage.opened(batch).lease, stage.opened(batch, 1).lease
    assert stage.chunks.defer(waits, delay=3_600.0, spent=NOTHING, pause="paused_provider") == 1
    stage.batches.resume("t", batch)
    assert stage.queue.chunks[-1] == (batch, 0, 2)
    assert stage.record(runs, 4, 5, 6)
    stage.batches.cancel("t", batch)
    assert stage.record(runs, 7)
    assert stage.queue.finished == [batch]


def test_a_damaged_payload_is_told_item_by_item(stage: Stage) -> None:
    batch = stage.submit(3)
    with stage.database.begin() as connection:
        connection.execute(CHUNKS.update().values(payload=b"x"))
    opened = stage.opened(batch)
    assert [(item.position, item.line) for item in opened.items] == [(0, b""), (1, b""), (2, b"")]
    rows = ItemScorer(Engine(Registry()), Limits()).begin(opened.items)
    assert [one.ok for one in rows if isinstance(one, OutcomeRow)] == [False, False, False]


def test_an_outcome_that_the_database_does_not_take_spoils_no_other(stage: Stage) -> None:
    one, other = stage.submit(2), stage.submit(2)
    holds = [stage.opened(one).lease, stage.opened(other).lease]
    account = Account(ChunkSpending(), Spending())

    async def record() -> list[bool]:
        recorder = Recorder(stage.chunks, in_flight=64)
        bad = row(1)._replace(tokens_in=2**70)
        puts = [recorder.put(holds[0], account, [row(0), bad]), recorder.put(holds[1], account, [row(0)])]
        return list(await asyncio.gather(*puts))

    assert asyncio.run(record()) == [True, True]
    assert stage.lines(other) == ["first 0"]
    good, told = stage.lines(one)
    assert (good, json.loads(told)["error"]["status"]) == ("first 0", 500)


def test_outcomes_that_come_one_by_one_share_commits(stage: Stage) -> None:
    batch = stage.submit(20, size=20)
    lease, account, commits = stage.opened(batch).lease, Account(ChunkSpending(), Spending()), list[int]()

    class Counting(Chunks):
        def record(self, groups: Iterable[OutcomeRows]) -> list[bool]:
            found = list(groups)
            commits.append(sum(len(group.rows) for group in found))
            return super().record(found)

    async def record() -> list[bool]:
        recorder = Recorder(Counting(stage.database, stage.queue), in_flight=64)
        puts: list[asyncio.Task[bool]] = []
        for n in range(20):
            puts.append(asyncio.create_task(recorder.put(lease, account, [row(n)])))
            if n == 0:
                await puts[0]  # it goes alone: nobody waits for company that may not come
            await asyncio.sleep(0.003)
        return await asyncio.gather(*puts)

    assert all(asyncio.run(record()))
    assert sum(commits) == len(stage.lines(batch)) == 20
    assert commits[0] == 1
    assert len(commits) < 10


def test_where_all_places_are_taken_nothing_is_waited_for(stage: Stage) -> None:
    batch = stage.submit(20, size=20)
    lease, account = stage.opened(batch).lease, Account(ChunkSpending(), Spending())

    async def record(places: int, numbers: Iterable[int]) -> None:
        recorder = Recorder(stage.chunks, in_flight=places, interval_s=3_600.0)
        for n in numbers:
            await asyncio.gather(*[recorder.put(lease, account, [row(places * n + k)]) for k in range(places)])

    asyncio.run(asyncio.wait_for(record(1, range(4)), 60))
    asyncio.run(asyncio.wait_for(record(4, range(1, 5)), 60))
    assert len(stage.lines(batch)) == 20


def test_a_dead_worker_is_forgotten_unless_it_is_heard_of(database: Database) -> None:
    workers = Workers(database)
    for name in ("dead", "back"):
        workers.register(name)
    dead, back = sorted(workers.list_workers(), reverse=True)
    workers.beat("back")
    for worker in (dead, back):
        workers.forget_dead(worker)
    assert [worker.id for worker in workers.list_workers()] == ["back"]


BEATS = [
    ("one that beats", [(n, float(n)) for n in range(30)], []),
    ("one that stops", [(n, float(min(n, 3))) for n in range(30)], [n for n in range(30) if n > 13]),
    ("nobody beats while the database is away", [(0, 0.0), (1, 1.0), (40, 1.0), (41, 41.0), (42, 42.0)], []),
    ("the database's clock is set ahead", [(n, float(n) + 7_200 * (n > 5)) for n in range(30)], []),
    ("it is heard of again", [(n, float(n) if n > 9 else 0.0) for n in range(30)], []),
]


@pytest.mark.parametrize(("looks", "dead"), [pytest.param(looks, dead, id=name) for name, looks, dead in BEATS])
def test_who_is_dead_is_told_by_beats_that_do_not_come(looks: list[tuple[float, float]], dead: list[float]) -> None:
    times = iter([at for at, _ in looks])
    watch = WorkerWatch(lambda: next(times))
    found = [at for at, beat in looks if watch.find_dead([WorkerRecord("w", 0.0, beat)])]
    assert found == dead
