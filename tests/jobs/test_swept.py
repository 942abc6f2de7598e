"""What a worker does by itself as time passes: what ended long ago is gone, and what is not done by its deadline ends."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from service.store.access.audit import Audit
from service.store.access.keys import Keys
from service.store.tables import AUDIT, BATCHES
from tests.faults.provider import Provider, serving
from tests.jobs.process import Service, request, service
from tests.store.played import overdue, paused

DAY = 86_400.0
KEPT = {"CALLGRADE_BATCH_DAYS": "1", "CALLGRADE_AUDIT_DAYS": "3"}


def age(run: Service, name: str, *, days: float) -> None:
    """A batch has ended some days ago, or what became of a key is as old."""
    for column, which in ((BATCHES.c.ended_at, BATCHES.c.id), (AUDIT.c.at, AUDIT.c.target)):
        with run.database.begin() as connection:
            aged = sa.update(column.table).where(which == name)
            connection.execute(aged.values({column.name: run.database.now() - days * DAY}))


def test_what_is_old_is_forgotten_and_what_is_late_ends(tmp_path: Path) -> None:
    provider = Provider()
    with serving(provider), service(f"sqlite:///{tmp_path}/store.db", tmp_path, provider, **KEPT) as run:
        keys = [Keys(run.database).create(name=f"{days}")[0].id for days in (4, 2)]
        for key, days in zip(keys, (4.0, 2.0), strict=True):
            age(run, key, days=days)
        waiting, early, old, fresh = (run.submit([request(n) for n in range(2)]) for _ in range(4))
        paused(run.database, waiting, "paused_provider")
        paused(run.database, early, "paused_budget")
        overdue(run.database, waiting)
        run.start(odd="sweeping")
        ended = run.ended(waiting)
        assert (ended.status, ended.request_counts.expired) == ("expired", 2)
        assert [run.ended(batch).status for batch in (old, fresh)] == ["completed"] * 2
        age(run, fresh, days=0.5)
        age(run, old, days=2.0)
        run.until(lambda: old not in [one.id for one in run.batches.page("", limit=9).data])
        run.until(lambda: [entry.target for entry in Audit(run.database).page(limit=9).data] == keys[1:])
        assert (len(run.results(old)), len(run.results(fresh)), run.find(early).status) == (0, 2, "paused_budget")


def test_what_is_under_way_at_the_deadline_is_stopped(tmp_path: Path) -> None:
    provider = Provider(latency=0.05)
    with serving(provider), service(f"sqlite:///{tmp_path}/store.db", tmp_path, provider) as run:
        batch = run.submit([request(n) for n in range(5_000)], size=5_000)
        run.start(odd="sweeping")
        run.until(lambda: run.find(batch).request_counts.completed > 100)
        overdue(run.database, batch)
        counts = run.ended(batch).request_counts
        assert run.find(batch).status == "expired"
        assert counts.completed == len(run.results(batch)) == len(provider.requests) < 5_000
        assert counts.completed + counts.expired == 5_000
