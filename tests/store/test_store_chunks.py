"""Chunks in the store: who claimed one last may write, what was written stays, and what comes next is ready."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
import sqlalchemy as sa

from service.core.money import UsageAmount
from service.store.database import Database
from service.store.jobs.backlog import read_backlog
from service.store.jobs.chunks import SHORTLY_S, Chunks
from service.store.jobs.duties import claim_duty, end_job
from service.store.jobs.job import Job
from service.store.jobs.jobs import Batches
from service.store.jobs.leases import ClaimedChunk, Lease, OutcomeRow, OutcomeRows, Pause
from service.store.jobs.submission import JobSubmission
from service.store.jobs.workers import WorkerRecord, Workers, WorkerWatch
from service.store.tables import CHUNKS, RESULTS
from service.store.times import DAY_S
from tests.jobs.process import chunks, request
from tests.store.played import ended, ends, overdue


class Stage:
    """A store with the two sides of it: who submits, and workers by their names."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.batches = Batches(database)

    def submit(self, items: int, *, size: int = 4, tenant: str = "t", **more: Any) -> str:
        submission = JobSubmission(tenant=tenant, fingerprint="", hours=1.0, **more)
        return self.batches.submit(submission, chunks([request(n) for n in range(items)], size)).id

    def worker(self, name: str = "w", **more: Any) -> Chunks:
        Workers(self.database).beat(name)
        return Chunks(self.database, name, **more)

    def claim(self, name: str = "w", **more: Any) -> ClaimedChunk:
        found = self.worker(name).claim(**more)
        assert isinstance(found, ClaimedChunk)
        return found

    def dies(self, name: str = "w") -> None:
        """As another worker finds it."""
        [dead] = [one for one in Workers(self.database).list_workers() if one.id == name]
        assert Workers(self.database).reclaim(dead) is not None

    def record(self, lease: Lease, *positions: int, ok: bool = True, used: UsageAmount | None = None) -> bool:
        rows = [row(n, ok=ok) for n in positions]
        (kept,) = self.worker().record([OutcomeRows(lease, rows, used)])
        return kept

    def delay_of(self, batch: str, first: int) -> float:
        chosen = sa.select(CHUNKS.c.due_at - self.database.now()).where(
            CHUNKS.c.batch == batch, CHUNKS.c.first == first
        )
        with self.database.read() as connection:
            return connection.execute(chosen).scalar_one()

    def find(self, batch: str) -> Job:
        return self.batches.find("t", batch)

    def lines(self, batch: str) -> list[str]:
        with self.database.read() as connection:
            chosen = sa.select(RESULTS.c.line).where(RESULTS.c.batch == batch).order_by(RESULTS.c.position)
            return list(connection.execute(chosen).scalars())


def row(position: int, *, ok: bool = True, line: str = "first") -> OutcomeRow:
    return OutcomeRow(position, ok, f"{line} {position}")


def positions(chunk: ClaimedChunk) -> list[int]:
    return [item.position for item in chunk.items]


@pytest.fixture
def stage(database: Database) -> Stage:
    return Stage(database)


# Claims.


def test_a_claim_gives_what_is_left_to_do(stage: Stage) -> None:
    batch = stage.submit(6)
    first = stage.claim()
    assert (positions(first), first.tenant, first.deaths) == ([0, 1, 2, 3], "t", 0)
    assert json.loads(first.items[1].line) == {"custom_id": "item-1", "request": request(1)}
    assert stage.record(first.lease, 1, 3)
    assert stage.worker().put_off(first.lease)
    again = stage.claim()
    assert (positions(again), again.lease) == ([0, 2], Lease(batch, 0, 2))
    assert positions(stage.claim()) == [4, 5]
    assert stage.worker().claim() is None
    assert stage.worker().list_owned() == {again.lease, Lease(batch, 4, 1)}


def test_who_had_a_chunk_before_somebody_else_may_write_nothing(stage: Stage) -> None:
    batch = stage.submit(4)
    late = stage.claim("frozen").lease
    stage.dies("frozen")
    assert not stage.record(late, 0)  # nor while nobody has it
    current = stage.claim().lease
    assert not stage.record(late, 0)
    assert not stage.worker("frozen").put_off(late, pause="paused_provider", reason="no")
    assert (stage.lines(batch), stage.find(batch).status) == ([], "in_progress")
    assert stage.record(current, 0)
    assert stage.lines(batch) == ["first 0"]


def test_tenants_take_turns_and_so_do_the_batches_of_each(stage: Stage) -> None:
    giants = [stage.submit(80, tenant="giant") for _ in range(3)]
    small = stage.submit(80, tenant="small")
    taken = [stage.claim(f"w{n % 3}").lease.batch for n in range(40)]
    assert taken.count(small) == 20
    assert {taken.count(one) for one in giants} <= {6, 7}


def test_of_a_tenant_with_little_left_three_chunks_run_for_one_of_another(stage: Stage) -> None:
    stage.submit(80, tenant="giant")
    small = stage.submit(60, tenant="small")
    taken = [stage.claim().lease.batch for _ in range(16)]
    assert taken.count(small) == 12


def test_a_worker_may_leave_tenants_out(stage: Stage) -> None:
    for tenant in ("a", "a", "b"):
        stage.submit(4, tenant=tenant)
    assert stage.claim(besides={"a"}).tenant == "b"
    assert stage.worker().claim(besides={"a", "b"}) is None


def test_a_worker_that_asks_no_judges_leaves_what_waits_for_them(stage: Stage) -> None:
    stage.submit(4)
    code = stage.submit(4)
    with stage.database.begin() as connection:
        connection.execute(CHUNKS.update().where(CHUNKS.c.batch == code).values(waits=False))
    coding = stage.worker(judges=False)
    claimed = coding.claim()
    assert isinstance(claimed, ClaimedChunk)
    assert (claimed.lease.batch, coding.claim()) == (code, None)


# Outcomes.


def test_a_refused_group_does_not_spoil_the_others_and_what_it_cost_is_counted(stage: Stage) -> None:
    one = stage.submit(4)
    late = stage.claim("frozen").lease
    stage.dies("frozen")
    held, other = stage.claim().lease, stage.submit(4)
    last = stage.claim().lease
    used = UsageAmount(cost_usd=1.0, tokens_in=3)
    frozen = stage.worker("frozen")
    assert frozen.record([OutcomeRows(late, [row(0)], used), OutcomeRows(last, [row(0)])]) == [False, True]
    assert (held.batch, stage.lines(one), stage.lines(other)) == (one, [], ["first 0"])
    assert (stage.find(one).cost_usd, stage.find(one).tokens_in) == (1.0, 3)


def test_what_was_recorded_is_not_recorded_or_counted_again(stage: Stage) -> None:
    batch = stage.submit(4)
    lease = stage.claim().lease
    assert stage.record(lease, 0, 1)
    again = OutcomeRows(lease, [row(1, line="second"), row(2, line="second")])
    assert stage.worker().record([again]) == [True]
    assert stage.lines(batch) == ["first 0", "first 1", "second 2"]
    assert stage.find(batch).request_counts.completed == 3


@pytest.mark.parametrize(("failed", "status"), [((), "completed"), ((0,), "completed"), ((0, 1, 2, 3, 4), "failed")])
def test_the_last_item_ends_the_batch(stage: Stage, failed: tuple[int, ...], status: str) -> None:
    batch = stage.submit(5)
    leases = [stage.claim().lease, stage.claim().lease]
    for position in range(5):
        assert ends(stage.database, batch) == []
        assert stage.record(leases[position // 4], position, ok=position not in failed)
    assert (ends(stage.database, batch), stage.find(batch).status) == ([batch], "finalizing")
    assert stage.worker().claim() is None
    duty = claim_duty(stage.database, "w", ["finish"])
    assert duty is not None
    assert claim_duty(stage.database, "v", ["finish"]) is None
    for _ in range(2):
        end_job(stage.database, duty.lease)
    found = stage.find(batch)
    assert (found.status, found.ended_at is not None) == (status, True)
    assert (found.request_counts.failed, found.request_counts.completed) == (len(failed), 5 - len(failed))


def test_the_end_of_a_batch_that_is_given_back_is_ready_again(stage: Stage) -> None:
    batch = stage.submit(1)
    assert stage.record(stage.claim().lease, 0)
    lost = claim_duty(stage.database, "w", ["finish"])  # in a commit whose reply was lost
    assert lost is not None
    assert stage.worker().put_off(lost.lease)
    again = claim_duty(stage.database, "w", ["finish"])
    assert again is not None
    end_job(stage.database, again.lease)
    assert stage.find(batch).status == "completed"


def test_two_chunks_that_end_in_one_commit_end_the_batch_once(stage: Stage) -> None:
    batch = stage.submit(5)
    first, second = stage.claim().lease, stage.claim().lease
    groups = [OutcomeRows(second, [row(4)]), OutcomeRows(first, [row(n) for n in range(4)])]
    assert stage.worker().record(groups) == [True, True]
    assert ends(stage.database, batch) == [batch]


# Later, or never.


def test_a_chunk_that_is_put_off_pauses_its_batch_until_something_of_it_is_recorded(stage: Stage) -> None:
    batch = stage.submit(8)
    lease = stage.claim().lease
    assert stage.worker().put_off(lease, delay=3_600.0, pause="paused_provider", reason="it is down")
    paused = stage.find(batch)
    assert (paused.status, paused.reason, paused.resume_at is not None) == ("paused_provider", "it is down", True)
    other = stage.claim()
    assert (other.lease.first, stage.worker().claim()) == (4, None)
    assert stage.record(other.lease, 4)
    going = stage.find(batch)
    assert (going.status, going.reason, going.resume_at) == ("in_progress", None, None)
    assert stage.worker().claim() is None
    assert 0 < stage.delay_of(batch, 0) <= SHORTLY_S


@pytest.mark.parametrize(("delay", "is_due"), [(DAY_S - 100, False), (DAY_S + 100, True)])
def test_a_clock_that_is_set_back_makes_nobody_wait_longer_than_anything_is_put_off(
    stage: Stage, delay: float, is_due: bool
) -> None:
    stage.submit(4)
    with stage.database.begin() as connection:
        connection.execute(CHUNKS.update().values(due_at=stage.database.now() + delay))
    assert (stage.worker().claim() is not None) is is_due


def test_a_worker_that_starts_tries_what_waits_for_a_provider_or_another_day(stage: Stage) -> None:
    waits, others = stage.submit(4), stage.submit(4)
    for pause in ("paused_provider", None):
        assert stage.worker().put_off(stage.claim().lease, delay=DAY_S, pause=pause, reason="the day is used up")
    assert stage.worker().claim() is None
    stage.worker("next").wake()
    assert (stage.claim("next").lease.batch, stage.worker().claim()) == (waits, None)
    assert stage.delay_of(others, 0) > 0


@pytest.mark.parametrize("pause", ["paused_budget", "paused_provider", None])
def test_what_is_put_off_in_the_moment_of_the_end_is_closed(stage: Stage, pause: Pause | None) -> None:
    batch = stage.submit(4, budget_usd=1.0)
    lease = stage.claim().lease
    stage.batches.cancel("t", batch)
    assert stage.record(lease, 0)
    assert stage.worker().put_off(lease, delay=9.0, used=UsageAmount(cost_usd=0.25), pause=pause)
    assert not stage.worker().put_off(lease)
    assert not stage.record(lease, 1)
    assert (ends(stage.database, batch), stage.find(batch).status) == ([batch], "finalizing")
    assert stage.find(batch).cost_usd == 0.25


@pytest.mark.parametrize("under_way", [False, True])
def test_a_cancelled_batch_waits_for_nothing_that_was_put_off(stage: Stage, under_way: bool) -> None:
    batch = stage.submit(8)
    waits = stage.claim().lease
    if under_way:
        stage.claim()
    stage.worker().put_off(waits, delay=3_600.0, pause="paused_provider", reason="it is down")
    found = stage.batches.cancel("t", batch)
    assert (found.status, found.reason, found.resume_at) == ("cancelling" if under_way else "finalizing", None, None)


@pytest.mark.parametrize("over_first", [True, False])
@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize(
    ("ending", "paused"), [("cancelled", False), ("cancelled", True), ("expired", False), ("expired", True)]
)
def test_a_batch_that_is_over_ends_whenever_its_worker_goes(
    stage: Stage, ending: Literal["cancelled", "expired"], paused: bool, dies: bool, over_first: bool
) -> None:
    def go() -> None:
        stage.dies("w") if dies else Workers(stage.database).leave("w")

    batch = stage.submit(12)
    assert stage.record(stage.claim("w").lease, 0)
    stage.claim("w")
    if paused:
        stage.batches.pause("t", batch)
    if not over_first:
        go()
    if ending == "cancelled":
        stage.batches.cancel("t", batch)
    else:
        overdue(stage.database, batch)
        assert stage.batches.expire_due() == [batch]
    if over_first:
        go()
    ended(stage.database, batch)
    found = stage.find(batch)
    assert (found.status, found.request_counts.completed, getattr(found.request_counts, ending)) == (ending, 1, 11)


# Deaths.


def test_a_chunk_with_a_death_runs_alone(stage: Stage) -> None:
    stage.submit(8)
    stage.claim()
    stage.dies()
    assert stage.worker().claim(idle=False) is None
    chunk = stage.claim()
    assert (chunk.lease.first, chunk.runs_alone) == (0, True)
    assert not stage.claim(idle=False).runs_alone


def test_a_chunk_that_kills_two_workers_is_taken_apart_and_its_worst_item_given_up(stage: Stage) -> None:
    batch = stage.submit(6)
    assert stage.record(stage.claim().lease, 1)
    stage.dies()
    stage.claim()
    stage.dies()
    for deaths in (1, 2, 3):
        chunk = stage.claim()
        assert (positions(chunk), chunk.deaths, chunk.size) == ([0], deaths, 1)
        if deaths < 3:
            stage.dies()
    assert stage.record(chunk.lease, 0, ok=False)
    assert read_backlog(stage.database).quarantined == 1
    for position in (2, 3):
        chunk = stage.claim()
        assert (positions(chunk), chunk.deaths) == ([position], 1)
        assert stage.record(chunk.lease, position)
    last = stage.claim()
    assert stage.record(last.lease, *positions(last))
    assert (len(stage.lines(batch)), ends(stage.database, batch)) == (6, [batch])
    counts = stage.find(batch).request_counts
    assert (counts.completed, counts.failed, counts.total) == (5, 1, 6)


def test_who_puts_a_chunk_off_or_leaves_has_not_died(stage: Stage) -> None:
    stage.submit(4)
    assert stage.worker().put_off(stage.claim().lease)
    lease = stage.claim().lease
    assert Workers(stage.database).leave("w") == 1
    assert not stage.record(lease, 0)
    assert (stage.claim().deaths, stage.worker().list_owned()) == (0, {lease._replace(attempt=3)})


# Workers.


def test_a_worker_that_has_beaten_since_is_not_dead(stage: Stage) -> None:
    stage.submit(4)
    lease = stage.claim().lease
    [seen] = Workers(stage.database).list_workers()
    Workers(stage.database).beat("w")
    assert Workers(stage.database).reclaim(seen) is None
    assert stage.record(lease, 0)


def test_a_claim_registers_its_worker_so_that_its_death_is_noticed(stage: Stage) -> None:
    stage.submit(4)
    workers = Workers(stage.database)
    for _ in range(2):  # also one that was taken for dead and has claimed again
        assert workers.list_workers() == ()
        stage.claim("lost")
        [lost] = workers.list_workers()
        assert (lost.id, workers.reclaim(lost)) == ("lost", 1)
    assert stage.claim().size == 1  # after two deaths, item by item


BEATS = [
    ("one that beats", [(n, n) for n in range(30)], []),
    ("one that stops", [(n, min(n, 3)) for n in range(30)], [n for n in range(30) if n > 13]),
    ("nobody beats while the database is away", [(0, 0), (1, 1), (40, 1), (41, 41), (42, 42)], []),
    ("it is heard of again", [(n, n if n > 9 else 0) for n in range(30)], []),
]


@pytest.mark.parametrize(("looks", "dead"), [pytest.param(looks, dead, id=name) for name, looks, dead in BEATS])
def test_who_is_dead_is_told_by_beats_that_do_not_come(looks: list[tuple[int, int]], dead: list[int]) -> None:
    times = iter([float(at) for at, _ in looks])
    watch = WorkerWatch(lambda: next(times))
    found = [at for at, beat in looks if watch.find_dead([WorkerRecord("w", beat)])]
    assert found == dead
