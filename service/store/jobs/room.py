"""How much may wait."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from service.errors import QueueFullError
from service.store.jobs.job import ENDED
from service.store.tables import BATCHES, CHUNKS


@dataclass(frozen=True, slots=True)
class Room:
    """How many items may wait: in all, and for one tenant. 0: any number."""

    whole: int = 0
    tenant: int = 0

    def check(self, connection: sa.Connection, tenant: str, items: int = 0) -> None:
        """QueueFullError where more than that waits, were there so many items more."""
        for most, whose, told in ((self.whole, None, "in all"), (self.tenant, tenant, "of yours")):
            if most and (waiting := count_queued(connection, whose) + items) > most:
                raise QueueFullError(f"{waiting} items would wait {told}; at most {most} may")


def count_queued(connection: sa.Connection, tenant: str | None = None) -> int:
    """How many items wait or are under way: of one tenant, or of all."""
    waiting = (
        sa.select(sa.func.coalesce(sa.func.sum(CHUNKS.c.size - CHUNKS.c.completed - CHUNKS.c.failed), 0))
        .join_from(BATCHES, CHUNKS, CHUNKS.c.batch == BATCHES.c.id)
        .where(BATCHES.c.status.not_in(ENDED), ~CHUNKS.c.done)
    )
    if tenant is not None:
        waiting = waiting.where(BATCHES.c.tenant == tenant)
    return int(connection.execute(waiting).scalar_one())
