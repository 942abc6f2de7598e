"""An item that takes its worker down is given up after three times, and the batch goes on to its end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from service.jobs.gate import ExclusiveGate
from service.store.database import Database
from service.store.jobs.backlog import read_backlog
from service.store.jobs.batches import Batches
from service.store.jobs.chunks import Chunks
from service.store.jobs.leases import ChunkId, ChunkSpending, LeasedChunk
from service.store.jobs.submission import JobSubmission
from service.store.jobs.suspects import QUARANTINE_DEATHS
from tests.faults.provider import Provider, serving
from tests.jobs.process import Service, chunks, numbers, request, service, until
from tests.store.played import Recording

POISONED = "tests.jobs.poisoned"
MOST_DEATHS = QUARANTINE_DEATHS + 1


def deaths_until_the_end(run: Service, batch: str, module: str) -> int:
    """Starts workers until the batch has ended; how many of them died."""
    for count in range(MOST_DEATHS + 1):
        worker = run.start(module=module)
        until(lambda worker=worker: run.find(batch).ended or worker.poll() is not None, patience=120.0)
        if run.find(batch).ended:
            return count
        worker.wait()
    raise AssertionError(f"it goes on dying: {run.logs()[-3000:]}")


def check_quarantine(
    store_url: str, tmp_path: Path, poison: dict[int, dict[str, object]], size: int, module: str = POISONED
) -> None:
    provider = Provider(latency=0.01)
    with serving(provider), service(store_url, tmp_path, provider) as run:
        batch = run.submit([request(n, **poison.get(n, {})) for n in range(100)], size=size)
        deaths = deaths_until_the_end(run, batch, module)
        ended = run.find(batch)
        assert deaths == QUARANTINE_DEATHS + 1  # at the first nobody knew who was under way
        assert (ended.status, ended.request_counts.completed, ended.request_counts.failed) == ("completed", 99, 1)
        rows = run.results(batch)
        assert numbers(rows) == list(range(100))
        (given_up,) = [json.loads(row.line) for row in rows if not row.ok]
        assert (given_up["custom_id"], given_up["index"]) == ("item-66", 66)
        assert given_up["error"]["title"] == "Quarantined"
        assert "took its worker down 3 times" in given_up["error"]["detail"]
        (told,) = [json.loads(line) for line in run.logs().splitlines() if "it is quarantined" in line]
        assert (told["level"].upper(), told["batch"], told["item"]) == ("ERROR", batch, 66)
        assert read_backlog(run.database).quarantined == 1


OF_CODE: dict[int, dict[str, object]] = {66: {"tags": {"poison": "code"}}}
OF_A_JUDGE: dict[int, dict[str, object]] = {66: {}}


@pytest.mark.parametrize(("poison", "size"), [pytest.param(OF_CODE, 100, marks=pytest.mark.chaos), (OF_A_JUDGE, 20)])
def test_a_poison_item_is_given_up_and_the_others_are_scored(
    tmp_path: Path, poison: dict[int, dict[str, object]], size: int
) -> None:
    check_quarantine(f"sqlite:///{tmp_path}/store.db", tmp_path, poison, size)


def test_the_death_of_a_process_that_scores_is_its_workers(tmp_path: Path) -> None:
    check_quarantine(f"sqlite:///{tmp_path}/store.db", tmp_path, OF_CODE, 100, "tests.jobs.poisoned_pool")


@pytest.mark.chaos
@pytest.mark.needs_postgres
@pytest.mark.parametrize(("poison", "size"), [(OF_A_JUDGE, 20), (OF_CODE, 100)])
def test_a_poison_item_is_given_up_on_postgres_too(
    own_postgres_url: str, tmp_path: Path, poison: dict[int, dict[str, object]], size: int
) -> None:
    """A dead worker is taken for dead after ten seconds there, so this takes its time."""
    check_quarantine(own_postgres_url, tmp_path, poison, size)


class Stage:
    """One chunk of three items, opened again and again."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.chunks = Chunks(database, Recording())
        submission = JobSubmission(tenant="", fingerprint="", hours=1)
        self.batch = Batches(database, Recording()).submit(submission, chunks([request(n) for n in range(3)], 3)).id

    def open(self, generation: int = 0) -> LeasedChunk:
        opened = self.chunks.lease(ChunkId(self.batch, 0), generation)
        assert opened is not None
        return opened

    def deaths(self, opened: LeasedChunk) -> list[int]:
        return [opened.suspects.count_deaths(position) for position in range(3)]


def test_deaths_are_laid_to_what_was_under_way(database: Database) -> None:
    stage = Stage(database)
    assert stage.deaths(stage.open()) == [0, 0, 0]
    second = stage.open()
    assert (stage.deaths(second), second.suspects.deaths) == ([0, 0, 0], 1)
    assert stage.chunks.mark_under_way(second.lease, second.suspects.mark_under_way({1, 2}))
    third = stage.open()
    assert stage.deaths(third) == [0, 1, 1]
    assert not stage.chunks.mark_under_way(second.lease, second.suspects)  # by one that was frozen
    assert stage.chunks.mark_under_way(third.lease, third.suspects.mark_under_way({2}))
    fourth = stage.open()
    assert stage.deaths(fourth) == [0, 1, 2]
    assert stage.chunks.mark_under_way(fourth.lease, fourth.suspects.mark_under_way({2}))
    assert read_backlog(database).quarantined == 0
    fifth = stage.open()
    assert stage.deaths(fifth) == [0, 1, 3]
    assert fifth.suspects.find_quarantined(range(3)) == {2}
    assert read_backlog(database).quarantined == 1


def test_who_gives_a_chunk_back_has_not_died(database: Database) -> None:
    stage = Stage(database)
    opened = stage.open()
    generation = stage.chunks.defer(opened.lease, delay=0.0, spent=ChunkSpending())
    assert generation == 1
    assert stage.deaths(stage.open(generation)) == [0, 0, 0]


def test_who_is_alone_is_alone() -> None:
    inside: list[str] = []
    most: list[list[str]] = []

    async def enter(gate: ExclusiveGate, name: str, *, alone: bool) -> None:
        async with gate.enter_alone() if alone else gate.enter_together():
            inside.append(name)
            for _ in range(3):
                most.append([*inside])
                await asyncio.sleep(0)
            inside.remove(name)

    async def main() -> None:
        gate = ExclusiveGate()
        names = ["a", "b", "A", "c", "B", "d"]
        await asyncio.gather(*[enter(gate, name, alone=name.isupper()) for name in names])
        waits = asyncio.create_task(enter(gate, "C", alone=True))
        async with gate.enter_together():
            await asyncio.sleep(0)
            waits.cancel()  # who does not wait any more keeps nobody out
            await asyncio.gather(waits, return_exceptions=True)
        await asyncio.wait_for(enter(gate, "e", alone=False), 10)

    asyncio.run(main())
    assert {name for names in most for name in names} == {"a", "b", "c", "d", "e", "A", "B"}
    assert all(len(names) == 1 for names in most if set(names) & {"A", "B"})
    assert max(map(len, most)) > 1
