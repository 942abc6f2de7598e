"""How a job comes to its end: its open chunks are counted down, and after the last one it is to be ended.

A chunk closes with its last outcome; in a job that is over, as soon as nobody runs it.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from service.store.jobs.job import STOPPABLE_STATUSES
from service.store.tables import BATCHES, CHUNKS

FINISH, NOTICE = -1, -2
"""The `first` of the rows that end a batch and that tell of its end."""


def close_if_over(connection: sa.Connection, batch: str) -> sa.Row[Any]:
    """Lock a batch, and return its row; if it is over, close its chunks that nobody runs: they never will.

    Called by whoever cancels it or lets it expire, and by all who give back a chunk that they, or the dead, ran meanwhile.
    """
    row = connection.execute(sa.select(BATCHES).where(BATCHES.c.id == batch).with_for_update()).one()
    if row.status not in STOPPABLE_STATUSES:
        ready = sa.update(CHUNKS).where(CHUNKS.c.batch == batch, CHUNKS.c.state == "ready")
        close_chunks(connection, batch, connection.execute(ready.values(state="done")).rowcount)
    return row


def close_chunks(connection: sa.Connection, batch: str, number: int = 1, **values: object) -> None:
    """Count chunks of a batch as done, and set columns of it; after the last one the batch is to be ended."""
    own = BATCHES.c.id == batch
    closed = sa.update(BATCHES).where(own).values(open_chunks=BATCHES.c.open_chunks - number, **values)
    if not connection.execute(closed.returning(BATCHES.c.open_chunks)).scalar_one():
        connection.execute(sa.update(BATCHES).where(own).values(status="finalizing", reason=None, resume_at=None))
        connection.execute(CHUNKS.insert().values(batch=batch, first=FINISH, kind="finish"))
