"""One worker process: how it starts and stops, what it leaves in the tables, and how it wakes up when its chunks are lost."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa

from service.asking.budget.reservations import Spending
from service.cli.commands.worker import count_cores
from service.jobs.items import Deferral, WaitingItem
from service.jobs.runner import Runner
from service.jobs.worker import NEWCOMER_POLL_S, Worker, keep_working
from service.store.database import Database
from service.store.jobs.chunks import Chunks
from service.store.jobs.jobs import Batches
from service.store.jobs.leases import ChunkItem, ClaimedChunk, OutcomeRow
from service.store.jobs.submission import JobSubmission
from service.store.jobs.workers import Workers
from service.store.tables import BATCHES, CHUNKS, WORKERS
from tests.faults.provider import Provider, serving
from tests.jobs.process import chunks, numbers, request, service, until, with_signal


@pytest.fixture
def slow() -> Provider:
    return Provider(latency=0.1)


def test_a_worker_that_is_told_to_stop_pays_nothing_twice(tmp_path: Path, slow: Provider) -> None:
    with serving(slow), service(f"sqlite:///{tmp_path}/store.db", tmp_path, slow) as run:
        batch = run.submit([request(n) for n in range(120)])
        first = run.start("worker")
        run.until(lambda: len(slow.requests) >= 40)
        first.send_signal(signal.SIGTERM)
        assert first.wait(timeout=25) == 0
        assert len(slow.requests) == len(run.results(batch))
        with run.database.read() as connection:
            assert connection.execute(sa.select(sa.func.count()).select_from(WORKERS)).scalar() == 0
        run.start()
        assert run.ended(batch).request_counts.completed == 120
        assert set(run.paid().values()) == {1}
        assert numbers(run.results(batch)) == list(range(120))


def test_further_processes_of_a_worker_give_the_same_results_and_end_with_it(tmp_path: Path, slow: Provider) -> None:
    found: list[list[tuple[int, bool, str]]] = []
    for workers in ("1", "2"):
        home = tmp_path / workers
        home.mkdir()
        with service(f"sqlite:///{home}/store.db", home, slow, CALLGRADE_JUDGE_MODEL="") as run:
            worker = run.start("worker", "--workers", workers)
            batch = run.submit([request(n) if n % 7 else {"trace": n} for n in range(300)], size=10)
            assert run.ended(batch).request_counts.total == 300
            found.append([(row.position, row.ok, row.line) for row in run.results(batch)])
            run.until(lambda run=run, workers=workers: run.log().count('"working"') == int(workers))
            more = find_children(worker.pid)
            assert len(more) == int(workers) - 1
            worker.kill()
            until(lambda more=more: not any(map(runs, more)))
    assert found[0] == found[1]


def find_children(pid: int) -> list[int]:
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in files for child in file.read_text().split()]


def runs(pid: int) -> bool:
    """Whether a process does; one that has ended stays in the list until whoever inherits it has looked."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max 100000", None), ("100000 100000", 1), ("50000 100000", 1), ("what", None), (None, None)],
    ids=["no limit", "one core", "half a core", "no quota", "no file"],
)
def test_a_container_has_the_cores_that_it_is_given(tmp_path: Path, quota: str | None, cores: int | None) -> None:
    file = tmp_path / "cpu.max"
    if quota is not None:
        file.write_text(quota)
    assert count_cores(file) == (cores or len(os.sched_getaffinity(0)))


@pytest.mark.chaos
def test_the_worker_of_a_server_that_was_killed_makes_room_for_the_next(tmp_path: Path, slow: Provider) -> None:
    slow.latency = 1.0  # the first one has something to finish, and keeps the store meanwhile
    with serving(slow), service(f"sqlite:///{tmp_path}/store.db", tmp_path, slow) as run:
        batch = run.submit([request(n) for n in range(100)])
        first = run.start(odd="parent")
        run.until(lambda: len(slow.requests) > 0)
        first.kill()
        first.wait()
        run.start(odd="parent")
        slow.latency = 0.0
        assert run.ended(batch).request_counts.completed == 100
        assert numbers(run.results(batch)) == list(range(100))


def test_what_was_claimed_in_a_commit_whose_reply_was_lost_is_given_back(tmp_path: Path) -> None:
    provider = Provider()
    with serving(provider), service(f"sqlite:///{tmp_path}/store.db", tmp_path, provider) as run:
        worker = run.start()
        run.until(lambda: '"working"' in run.log())
        name = json.loads(next(line for line in run.log().splitlines() if '"working"' in line))["worker"]
        with_signal(worker, signal.SIGSTOP)
        batch = run.submit([request(n) for n in range(40)], size=20)
        Chunks(run.database, name).claim()
        with_signal(worker, signal.SIGCONT)
        assert run.ended(batch).request_counts.completed == 40
        assert "giving back what was claimed and never begun" in run.log()
        assert sum(run.paid().values()) == 40


class Failing(Chunks):
    """Chunks that cannot be claimed, for a reason that no other try mends."""

    def claim(self, *, idle: bool = True, besides: Collection[str] = ()) -> ClaimedChunk | None:
        raise RuntimeError("a fault of ours")


def test_a_worker_of_which_one_part_fails_ends_as_a_whole(database: Database) -> None:
    async def main() -> None:
        chunks = Failing(database, "w")
        runner = Runner(chunks, Nothing(), in_flight=1)
        async with keep_working(Worker(chunks, runner, Nothing().notify), sweep=lambda: None, grace=1.0):
            await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as failed:
        asyncio.run(asyncio.wait_for(main(), 60))
    assert failed.group_contains(RuntimeError, match="a fault of ours")
    assert Workers(database).list_workers() == ()


class Nothing:
    """Work and a notifier that nobody needs."""

    def begin(self, items: Sequence[ChunkItem]) -> list[OutcomeRow | WaitingItem]:
        raise AssertionError(items)

    async def finish(
        self, waiting: WaitingItem, tenant: str, batch_spending: Spending, *, last: bool
    ) -> OutcomeRow | Deferral:
        raise AssertionError(waiting)

    async def notify(self, batch: str) -> None:
        raise AssertionError(batch)


PLACES = 2


class Slow:
    """Items whose judge answers when it is told to."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.full, self.answer = asyncio.Event(), asyncio.Event()

    def begin(self, items: Sequence[ChunkItem]) -> list[OutcomeRow | WaitingItem]:
        return [WaitingItem(item, f"{item.position}", None, None) for item in items]  # type: ignore[arg-type]

    async def finish(
        self, waiting: WaitingItem, tenant: str, batch_spending: Spending, *, last: bool
    ) -> OutcomeRow | Deferral:
        self.paid.append(waiting.item.position)
        if len(self.paid) == PLACES:
            self.full.set()
        await self.answer.wait()
        return OutcomeRow(waiting.item.position, ok=True, line="{}")


def test_places_of_a_lost_chunk_go_to_no_other_that_is_lost(database: Database) -> None:
    submission = JobSubmission(tenant="", fingerprint="", hours=1)
    requests = [request(n) for n in range(4 * PLACES)]
    Batches(database).submit(submission, chunks(requests, PLACES))
    Workers(database).beat("frozen")
    frozen = Chunks(database, "frozen")
    claimed = [one for one in iter(frozen.claim, None) if isinstance(one, ClaimedChunk)]

    async def main() -> list[int]:
        work = Slow()
        runner = Runner(frozen, work, in_flight=PLACES)
        running = [asyncio.create_task(runner.run(chunk)) for chunk in claimed]
        await work.full.wait()
        [record] = Workers(database).list_workers()
        assert Workers(database).reclaim(record) == len(claimed) == 4
        work.answer.set()
        await asyncio.gather(*running)
        runner.close()
        return work.paid

    assert len(asyncio.run(main())) == PLACES
    other = Chunks(database, "other")
    assert all(isinstance(other.claim(), ClaimedChunk) for _ in claimed)  # they are as free as they were


def test_a_tenant_need_not_wait_until_a_chunk_of_another_ends(database: Database) -> None:
    for tenant in ("giant", "giant", "small", "small"):
        submission = JobSubmission(tenant=tenant, fingerprint="", hours=1)
        Batches(database).submit(submission, chunks([request(1)], 1))
    Workers(database).beat("w")

    async def main() -> list[str]:
        work, own = Slow(), Chunks(database, "w")
        runner = Runner(own, work, in_flight=PLACES)
        worker = Worker(own, runner, Nothing().notify, most=1)
        async with keep_working(worker, sweep=lambda: None, grace=0.0):
            await work.full.wait()
            await asyncio.sleep(NEWCOMER_POLL_S)  # a second chunk of a tenant is not claimed: it has its fill
            with database.read() as connection:
                running = sa.select(BATCHES.c.tenant).join(CHUNKS, CHUNKS.c.batch == BATCHES.c.id)
                found = connection.execute(running.where(CHUNKS.c.state == "running")).scalars().all()
        runner.close()
        return sorted(found)

    assert asyncio.run(main()) == ["giant", "small"]
