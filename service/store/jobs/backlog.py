"""The pending work and the workers of all tenants: for whoever is on call, and for autoscalers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from service.store.access.usage import DayUsage, UsageStore
from service.store.database import Database
from service.store.jobs.job import ENDED_STATUSES, STATUSES
from service.store.jobs.jobs import count_queued
from service.store.jobs.leases import QUARANTINE_DEATHS
from service.store.jobs.workers import SILENT_S, Workers
from service.store.tables import BATCHES, CHUNKS
from service.store.times import DAY_S


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
    sums = [sa.func.coalesce(sa.func.sum(CHUNKS.c[name]), 0).label(name) for name in ("completed", "failed")]
    items = sa.select(*sums).join_from(BATCHES, CHUNKS, CHUNKS.c.batch == BATCHES.c.id)
    given_up = sa.select(sa.func.count()).where(
        sa.text(f"deaths >= {QUARANTINE_DEATHS}"), CHUNKS.c.kind == "chunk", CHUNKS.c.state == "done"
    )
    with database.read() as connection:
        counts = connection.execute(items.where(BATCHES.c.status.not_in(ENDED_STATUSES))).one()
        quarantined = connection.execute(given_up).scalar_one()
        waiting = count_queued(connection)
        batches = dict.fromkeys(map(str, STATUSES), 0)
        batches.update(
            connection.execute(sa.select(BATCHES.c.status, sa.func.count()).group_by(BATCHES.c.status)).all()
        )
    alive = sum(worker.silent <= SILENT_S for worker in Workers(database).list_workers())
    used = UsageStore(database).list_days(int(time.time() // DAY_S), days=0)
    return Backlog(batches, waiting, int(counts.completed), int(counts.failed), alive, quarantined, used)
