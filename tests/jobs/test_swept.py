"""What a worker does by itself as time passes: what ended long ago is gone, and what is not done by its deadline ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.errors import UnknownJobError
from service.store.access.audit import Audit
from service.store.access.keys import Keys
from service.store.database import Database
from service.store.tables import AUDIT, BATCHES, CHUNKS, RESULTS
from tests.faults.provider import Provider, serving
from tests.jobs.process import Service, request, service
from tests.store.played import overdue, paused

DAY = 86_400.0


@pytest.fixture
def provider() -> Provider:
    return Provider()


def ended_ago(run: Service, batch: str, *, days: float) -> None:
    """The batch has ended some days ago."""
    ago = BATCHES.update().where(BATCHES.c.id == batch, BATCHES.c.ended_at.is_not(None))
    with run.database.begin() as connection:
        changed = connection.execute(ago.values(ended_at=run.database.now() - days * DAY))
        assert changed.rowcount == 1


def rows(database: Database, batch: str) -> list[int]:
    """How many rows each table has of a batch."""
    columns = (BATCHES.c.id, CHUNKS.c.batch, RESULTS.c.batch)
    with database.read() as connection:
        return [len(connection.execute(column.table.select().where(column == batch)).all()) for column in columns]


def is_gone(run: Service, batch: str) -> bool:
    try:
        run.find(batch)
    except UnknownJobError:
        return True
    return False


def test_what_ended_longer_ago_than_it_is_kept_is_gone(tmp_path: Path, provider: Provider) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with serving(provider), service(url, tmp_path, provider, CALLGRADE_BATCH_DAYS="1") as run:
        old, fresh = (run.submit([request(n)]) for n in range(2))
        run.start(module="tests.jobs.sweeping")
        for batch in (old, fresh):
            assert run.ended(batch).status == "completed"
        ended_ago(run, fresh, days=0.5)
        ended_ago(run, old, days=2.0)
        run.until(lambda: is_gone(run, old))
        assert rows(run.database, old) == [0, 0, 0]
        assert rows(run.database, fresh) == [1, 1, 1]


def test_an_entry_of_the_audit_log_is_kept_for_so_many_days(tmp_path: Path, provider: Provider) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with serving(provider), service(url, tmp_path, provider, CALLGRADE_AUDIT_DAYS="3") as run:
        keys = Keys(run.database)
        ids = [keys.create(name=f"{days}")[0].id for days in (4, 2)]
        for key, days in zip(ids, (4, 2), strict=True):
            aged = AUDIT.update().where(AUDIT.c.target == key)
            with run.database.begin() as connection:
                connection.execute(aged.values(at=run.database.now() - days * DAY))
        run.start(module="tests.jobs.sweeping")
        run.until(lambda: [entry.target for entry in Audit(run.database).page(limit=9).data] == ids[1:])


def test_what_is_not_done_by_its_deadline_ends(tmp_path: Path, provider: Provider) -> None:
    with serving(provider), service(f"sqlite:///{tmp_path}/store.db", tmp_path, provider) as run:
        waiting, early = (run.submit([request(n) for n in range(2)]) for _ in range(2))
        for batch in (waiting, early):
            paused(run.database, batch, "paused_provider")
        overdue(run.database, waiting)
        run.start(module="tests.jobs.sweeping")
        ended = run.ended(waiting)
        assert (ended.status, ended.request_counts.expired) == ("expired", 2)
        assert run.find(early).status == "paused_provider"
    assert provider.requests == []


def test_what_is_under_way_at_the_deadline_is_stopped(tmp_path: Path, provider: Provider) -> None:
    provider.latency = 0.05
    with serving(provider), service(f"sqlite:///{tmp_path}/store.db", tmp_path, provider) as run:
        batch = run.submit([request(n) for n in range(5_000)], size=5_000)
        run.start(module="tests.jobs.sweeping")
        run.until(lambda: run.find(batch).request_counts.completed > 100)
        overdue(run.database, batch)
        counts = run.ended(batch).request_counts
        assert run.find(batch).status == "expired"
        assert counts.completed == len(run.results(batch)) == len(provider.requests) < 5_000
        assert counts.completed + counts.expired == 5_000
