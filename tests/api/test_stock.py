"""What /metrics says of batches and workers. The worker is played, time too."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from prometheus_client import CollectorRegistry, generate_latest
from sqlalchemy.exc import OperationalError

from service.api.app import create_app
from service.api.metrics import FRESH_S, BacklogCollector
from service.store.database import Database
from service.store.jobs.backlog import Backlog, read_backlog
from service.store.jobs.job import STATUSES
from service.store.jobs.jobs import Batches
from service.store.jobs.submission import Chunk, JobSubmission
from service.store.jobs.workers import SILENT_S, Workers
from service.store.tables import WORKERS
from tests.api.asgi_caller import Ask
from tests.conftest import Run
from tests.store.played import ended, opened, paused, recorded
from tests.stores import open_new_store

NOTHING = Backlog(dict.fromkeys(STATUSES, 0), 0, 0, 0, 0)


def samples(exposition: bytes) -> dict[str, float]:
    lines = [line for line in exposition.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def submitted(database: Database, items: int, *, tenant: str = "default") -> str:
    """A batch in chunks of two, with a queue that nobody looks into."""
    chunks = [Chunk(first, min(2, items - first), b"") for first in range(0, items, 2)]
    submission = JobSubmission(tenant=tenant, fingerprint="f", hours=1)
    return Batches(database).submit(submission, chunks).id


def of_each_kind(database: Database) -> None:
    """One batch that runs, one that is paused, one that is being cancelled and one that has ended; workers too."""
    running, waiting, stopped, over = (submitted(database, 5, tenant=f"t{n}") for n in range(4))
    recorded(database, running, [0, 1, 2])
    recorded(database, running, [4], ok=False)
    paused(database, waiting, "paused_budget")
    opened(database, stopped, 0)
    Batches(database).cancel("t2", stopped)
    recorded(database, over, range(5))
    ended(database, over)
    for name in ("alive", "silent"):
        Workers(database).beat(name)
    with database.begin() as connection:
        ago = {"beat_at": WORKERS.c.beat_at - SILENT_S - 1}
        connection.execute(sa.update(WORKERS).where(WORKERS.c.id == "silent").values(ago))


def test_the_backlog_is_what_the_database_holds(database: Database) -> None:
    assert read_backlog(database) == NOTHING
    of_each_kind(database)
    found = read_backlog(database)
    # of the one that is cancelled, the two of its chunk that was opened
    assert (found.open, found.completed, found.failed, found.workers) == (1 + 5 + 2, 3, 1, 1)
    states = {"in_progress": 1, "paused_budget": 1, "cancelling": 1, "completed": 1}
    assert found.batches == dict.fromkeys(STATUSES, 0) | states


def test_the_metrics_tell_it(ask: Ask, tmp_path: Path) -> None:
    database = open_new_store(tmp_path)
    of_each_kind(database)
    found = samples(ask("GET", "/metrics", app=create_app(database=database)).body)
    assert found["callgrade_store_up"] == 1
    assert found['callgrade_batches{status="paused_budget"}'] == 1
    assert found['callgrade_batches{status="expired"}'] == 0
    assert found['callgrade_batch_items{state="open"}'] == 8
    assert found["callgrade_workers"] == 1
    database.close()


class Looks:
    """What `look` gives, one after the other; an error is raised."""

    def __init__(self, *found: Backlog | Exception) -> None:
        self.made = 0
        self._found = iter(found)

    def __call__(self) -> Backlog:
        self.made += 1
        found = next(self._found)
        if isinstance(found, Exception):
            raise found
        return found


def told(stock: BacklogCollector) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(stock)
    return samples(generate_latest(registry))


@pytest.fixture
def refresh(run: Run) -> Callable[[BacklogCollector], dict[str, float]]:
    """Refreshes, and gives what is told then."""

    def refreshed(stock: BacklogCollector) -> dict[str, float]:
        run(stock.refresh())
        return told(stock)

    return refreshed


def test_what_is_unknown_is_not_zero(refresh: Callable[[BacklogCollector], dict[str, float]]) -> None:
    time = [0.0]
    stock = BacklogCollector(Looks(NOTHING, OperationalError("", {}, Exception()), NOTHING), now=lambda: time[0])
    assert refresh(stock)["callgrade_workers"] == 0
    time[0] = FRESH_S
    assert refresh(stock) == {"callgrade_store_up": 0}
    time[0] = 2 * FRESH_S
    assert refresh(stock)["callgrade_store_up"] == 1


def test_nobody_waits_for_a_database_that_hangs(refresh: Callable[[BacklogCollector], dict[str, float]]) -> None:
    free, begun = threading.Event(), []

    def hanging() -> Backlog:
        begun.append(1)
        free.wait(30)
        return NOTHING

    stock = BacklogCollector(hanging, timeout=0.01)
    try:
        assert [refresh(stock), refresh(stock)] == [{"callgrade_store_up": 0}] * 2
        assert len(begun) == 1
    finally:
        free.set()
