"""Limits on how many items may wait."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from service.errors import QueueFullError
from service.store.jobs.job import ENDED_STATUSES
from service.store.tables import BATCHES, CHUNKS


@dataclass(frozen=True, slots=True)
class Room:
    """How many items may wait: in all, and for one tenant. 0: unlimited."""

    max_items: int = 0
    max_tenant_items: int = 0

    def check(self, connection: sa.Connection, tenant: str, items: int = 0) -> None:
        """Raise QueueFullError if more items would wait, after adding so many."""
        for most, whose, scope in ((self.max_items, None, "in all"), (self.max_tenant_items, tenant, "of yours")):
            if most and (waiting := count_queued(connection, whose) + items) > most:
                raise QueueFullError(f"{waiting} items would wait {scope}; at most {most} may")


def count_queued(connection: sa.Connection, tenant: str | None = None) -> int:
    """Count the items that wait or are under way: of one tenant, or of all."""
    waiting = (
        sa.select(sa.func.coalesce(sa.func.sum(CHUNKS.c.size - CHUNKS.c.completed - CHUNKS.c.failed), 0))
        .join_from(BATCHES, CHUNKS, CHUNKS.c.batch == BATCHES.c.id)
        .where(BATCHES.c.status.not_in(ENDED_STATUSES), CHUNKS.c.state != "done")
    )
    if tenant is not None:
        waiting = waiting.where(BATCHES.c.tenant == tenant)
    return int(connection.execute(waiting).scalar_one())
