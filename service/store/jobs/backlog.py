"""The pending work and the workers of all tenants: for whoever is on call, and for autoscalers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from service.store.access.usage import DAY_S, DayUsage, UsageStore
from service.store.database import Database
from service.store.jobs.job import ENDED_STATUSES, STATUSES
from service.store.jobs.leases import QUARANTINE_DEATHS
from service.store.jobs.workers import SILENT_S, Workers
from service.store.tables import BATCHES, CHUNKS


@dataclass(frozen=True, slots=True)
class Backlog:
    """Batches by state, the items of those that have not ended, and the workers alive."""

    batches: Mapping[str, int]
    """How many batches are in each state."""
    open: int
    """Items that wait or are under way, including those of paused batches."""
    completed: int
    failed: int
    workers: int
    quarantined: int = 0
    """Items that brought their workers down, over all stored batches."""
    usage: tuple[DayUsage, ...] = ()
    """What tenants have used today."""


def read_backlog(database: Database) -> Backlog:
    """Read the backlog. Blocks on the database, so call it in a thread.

    Ended batches are only counted, without their items: there may be years of them.
    """
    summed = {"open": _OPEN, "completed": CHUNKS.c.completed, "failed": CHUNKS.c.failed}
    columns = [sa.func.coalesce(sa.func.sum(column), 0).label(name) for name, column in summed.items()]
    items = sa.select(*columns).join_from(BATCHES, CHUNKS, CHUNKS.c.batch == BATCHES.c.id)
    counts = sa.select(BATCHES.c.status, sa.func.count()).group_by(BATCHES.c.status)
    with database.read() as connection:
        sums = connection.execute(items.where(BATCHES.c.status.not_in(ENDED_STATUSES))).one()
        given_up = connection.execute(_QUARANTINED).scalar_one()
        batches = dict.fromkeys(map(str, STATUSES), 0)
        batches.update((status, count) for status, count in connection.execute(counts))
    alive = sum(worker.silent <= SILENT_S for worker in Workers(database).list_workers())
    used = UsageStore(database).list_days(int(time.time() // DAY_S), days=0)
    return Backlog(batches, int(sums.open), int(sums.completed), int(sums.failed), alive, int(given_up), used)


_QUARANTINED = sa.select(sa.func.count()).where(
    sa.text(f"deaths >= {QUARANTINE_DEATHS}"), CHUNKS.c.kind == "chunk", CHUNKS.c.state == "done"
)

_OPEN = sa.case((CHUNKS.c.state == "done", 0), else_=CHUNKS.c.size - CHUNKS.c.completed - CHUNKS.c.failed)
"""Items of a chunk that will still get an outcome; in a closed chunk none will."""
