"""What is to be done and who is there to do it, over all tenants: for whoever is on call, and for what starts workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from service.io.store.batch import ENDED, STATUSES
from service.io.store.database import Database
from service.io.store.tables import BATCHES, CHUNKS
from service.io.store.workers import SILENT, Workers


@dataclass(frozen=True, slots=True)
class Backlog:
    """Batches by their state, the items of those that have not ended, and the workers that are alive."""

    batches: Mapping[str, int]
    """How many there are of each state."""
    open: int
    """Items that wait or are under way, those of paused batches included."""
    completed: int
    failed: int
    workers: int


def backlog(database: Database) -> Backlog:
    """What the database says of it. It waits for the database, and so belongs into a thread.

    What has ended is counted by its batch alone: there may be years of it.
    """
    summed = {"open": _OPEN, "completed": CHUNKS.c.completed, "failed": CHUNKS.c.failed}
    columns = [sa.func.coalesce(sa.func.sum(column), 0).label(name) for name, column in summed.items()]
    items = sa.select(*columns).join_from(BATCHES, CHUNKS, CHUNKS.c.batch == BATCHES.c.id)
    counts = sa.select(BATCHES.c.status, sa.func.count()).group_by(BATCHES.c.status)
    with database.read() as connection:
        sums = connection.execute(items.where(BATCHES.c.status.not_in(ENDED))).one()
        batches = dict.fromkeys(map(str, STATUSES), 0)
        batches.update((status, count) for status, count in connection.execute(counts))
    alive = sum(worker.silent <= SILENT for worker in Workers(database).all())
    return Backlog(batches, int(sums.open), int(sums.completed), int(sums.failed), alive)


_OPEN = sa.case((CHUNKS.c.done, 0), else_=CHUNKS.c.size - CHUNKS.c.completed - CHUNKS.c.failed)
"""Items of a chunk that still come to something; of one that was closed none do."""
