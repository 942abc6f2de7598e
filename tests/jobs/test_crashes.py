"""Workers that are killed, poisoned or left without room: nothing is lost or done twice, and no more is asked than may be."""

from __future__ import annotations

import json
import random
from pathlib import Path
from random import Random

import pytest

from service.errors import BusyError
from service.jobs.recorder import CALLS_AHEAD, QUESTIONS_SPENT
from service.store.database import insist
from service.store.jobs.backlog import read_backlog
from service.store.jobs.jobs import Batch
from service.store.jobs.leases import QUARANTINE_DEATHS
from tests.faults.disk import fill, small
from tests.faults.provider import Provider, serving
from tests.jobs.process import Service, numbers, request, service, until

IN_FLIGHT = 64


@pytest.mark.chaos
@pytest.mark.parametrize(("items", "kills"), [(10_000, 20), (500, 4)])
def test_a_killed_worker_loses_nothing(tmp_path: Path, items: int, kills: int) -> None:
    moments = sorted(random.Random(f"crashes {kills}").sample(range(items - 200), kills))
    provider = Provider(latency=0.05)
    with serving(provider), service(f"sqlite:///{tmp_path}/store.db", tmp_path, provider) as run:
        batch = run.submit([request(n) for n in range(items)])
        for moment in moments:
            worker = run.start()
            run.until(lambda moment=moment: len(provider.requests) >= moment)
            worker.kill()
            worker.wait()
        run.start()
        ended = run.ended(batch)
        assert ended.status == "completed", ended
        assert ended.request_counts.completed == items
        assert numbers(run.results(batch)) == list(range(items))
        again = sum(run.paid().values()) - items
        print(f"paid again: {again} in {kills} kills")
        assert set(run.paid()) == set(range(items))
        assert again <= kills * IN_FLIGHT
        run.until(run.is_idle)
        with run.database.read() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalars().all() == ["ok"]


MOST_DEATHS = QUARANTINE_DEATHS + 1
ITEMS, POISONED_ITEM, FIRST_ORDER = 30, 16, 50
"""The item is about order 66, which takes down who asks a judge about it."""


def deaths_until_the_end(run: Service, batch: str) -> int:
    """Starts workers until the batch has ended; how many of them died."""
    for count in range(MOST_DEATHS + 1):
        worker = run.start(odd="poisoned")
        until(lambda worker=worker: run.find(batch).ended or worker.poll() is not None)
        if run.find(batch).ended:
            return count
        worker.wait()
    raise AssertionError(f"it goes on dying: {run.logs()[-3000:]}")


POISONS = [pytest.param({"tags": {"poison": "code"}}, ITEMS, marks=pytest.mark.chaos), ({}, 10)]


@pytest.mark.parametrize(("poison", "size"), POISONS)
def test_a_poison_item_is_given_up_and_the_others_are_scored(
    tmp_path: Path, poison: dict[str, object], size: int
) -> None:
    provider = Provider(latency=0.01)
    with serving(provider), service(f"sqlite:///{tmp_path}/store.db", tmp_path, provider) as run:
        requests = [request(FIRST_ORDER + n, **(poison if n == POISONED_ITEM else {})) for n in range(ITEMS)]
        batch = run.submit(requests, size=size)
        deaths = deaths_until_the_end(run, batch)
        ended = run.find(batch)
        assert deaths == QUARANTINE_DEATHS + 1  # at the first others ran beside it, at the second its chunk was alone
        counts = ended.request_counts
        assert (ended.status, counts.completed, counts.failed) == ("completed", ITEMS - 1, 1)
        rows = run.results(batch)
        assert numbers(rows) == list(range(ITEMS))
        (given_up,) = [json.loads(row.line) for row in rows if not row.ok]
        assert (given_up["custom_id"], given_up["index"]) == (f"item-{POISONED_ITEM}", POISONED_ITEM)
        assert given_up["error"]["title"] == "Quarantined"
        assert "took its worker down 3 times" in given_up["error"]["detail"]
        (told,) = [json.loads(line) for line in run.logs().splitlines() if "it is quarantined" in line]
        assert (told["level"].upper(), told["batch"], told["item"]) == ("ERROR", batch, POISONED_ITEM)
        assert read_backlog(run.database).quarantined == 1


ITEMS, LIMIT = 100, 60


def paused(run: Service, batch: str) -> Batch:
    run.until(lambda: run.find(batch).status == "paused_budget")
    return run.find(batch)


def test_no_more_is_asked_than_may_be(tmp_path: Path, store_url: str) -> None:
    """One worker is killed meanwhile: what it may have asked counts as asked, and is no more than was written down ahead."""
    provider = Provider(latency=0.05)
    with serving(provider), service(store_url, tmp_path, provider, CALLGRADE_BATCH_IN_FLIGHT="8", SILENT="4") as run:
        workers = [run.start() for _ in range(1 if run.database.is_sqlite else 3)]
        run.until(lambda: run.logs().count('"working"') == len(workers))
        batch = run.submit([request(n) for n in range(ITEMS)], size=20, max_questions=LIMIT)
        run.until(lambda: len(provider.requests) >= LIMIT // 3)
        workers[0].kill()
        workers[0].wait()
        run.start()
        found = paused(run, batch)
        assert (found.questions, found.reason) == (LIMIT, QUESTIONS_SPENT)
        assert LIMIT - CALLS_AHEAD <= len(provider.requests) <= LIMIT
        run.batches.resume("", batch, max_questions=2 * ITEMS)
        ended = run.ended(batch)
        assert (ended.status, ended.request_counts.completed) == ("completed", ITEMS)
        assert numbers(run.results(batch)) == list(range(ITEMS))
        assert len(provider.requests) <= ended.questions <= len(provider.requests) + CALLS_AHEAD


def test_a_full_disk_is_waited_for(tmp_path: Path) -> None:
    provider, small_disk = Provider(), tmp_path / "disk"
    with small(small_disk), serving(provider), service(f"sqlite:///{small_disk}/store.db", tmp_path, provider) as run:
        batch = run.submit([request(n) for n in range(400)], size=50)
        filler = small_disk / "filler"
        with filler.open("wb", buffering=0) as file:
            fill(file)
            file.truncate(filler.stat().st_size - 300_000)
        run.start()
        run.until(lambda: "waiting for the database" in run.log())
        before = len(provider.requests)
        assert run.workers[0].poll() is None
        assert 0 < before < 400
        chance = Random(0)
        large = [
            request(n, tags={"noise": chance.randbytes(2_000).hex()}) for n in range(400)
        ]  # however much was freed
        with pytest.raises(BusyError):
            insist(lambda: run.submit(large), give_up=0.2)
        filler.unlink()
        ended = run.ended(batch)
        assert (ended.status, ended.request_counts.completed) == ("completed", 400)
        assert set(run.paid().values()) == {1}
        assert len(run.batches.page("", limit=10).data) == 1
