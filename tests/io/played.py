"""A worker that is played: what becomes of the items of a batch is written by hand, in plain SQL."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

import sqlalchemy as sa

from service.io.store.database import Database
from service.io.store.tables import BATCHES, CHUNKS, RESULTS


class Put(NamedTuple):
    """A chunk in the queue."""

    batch: str
    number: int
    generation: int


class Recording:
    """A queue that keeps what is put into it."""

    def __init__(self) -> None:
        self.chunks: list[Put] = []
        self.aheads: list[int] = []
        self.finished: list[str] = []
        self.notices: list[tuple[str, int, float]] = []

    def enqueue_chunk(
        self,
        connection: sa.Connection,  # noqa: ARG002
        batch: str,
        number: int,
        *,
        generation: int = 0,
        delay: float = 0.0,  # noqa: ARG002
        ahead: int = 0,
    ) -> None:
        self.aheads.append(ahead)
        self.chunks.append(Put(batch, number, generation))

    def enqueue_finish(self, connection: sa.Connection, batch: str) -> None:  # noqa: ARG002
        self.finished.append(batch)

    def enqueue_notice(
        self,
        connection: sa.Connection,  # noqa: ARG002
        batch: str,
        *,
        attempt: int = 1,
        delay: float = 0.0,
    ) -> None:
        self.notices.append((batch, attempt, delay))


def opened(database: Database, batch: str, *numbers: int) -> None:
    """The chunks are under way."""
    with database.begin() as connection:
        chosen = CHUNKS.update().where(CHUNKS.c.batch == batch, CHUNKS.c.number.in_(numbers))
        connection.execute(chosen.values(attempt=CHUNKS.c.attempt + 1, under_way=True))


def recorded(database: Database, batch: str, positions: Iterable[int], *, ok: bool = True, report: object = 1) -> None:
    """The items have an outcome. A chunk that is finished is done, and the last of them ends the batch."""
    for position in positions:
        with database.begin() as connection:
            _record(connection, batch, position, ok, report)


def _record(connection: sa.Connection, batch: str, position: int, ok: bool, report: object) -> None:
    within = (CHUNKS.c.batch == batch, CHUNKS.c.first <= position, CHUNKS.c.first + CHUNKS.c.size > position)
    chunk = connection.execute(sa.select(CHUNKS).where(*within)).one()
    told = {"report": report} if ok else {"error": {"title": "Unprocessable Content"}}
    line = json.dumps({"custom_id": f"c{position}", "index": position, **told})
    connection.execute(RESULTS.insert().values(batch=batch, position=position, ok=ok, line=line))
    counted = CHUNKS.c.completed if ok else CHUNKS.c.failed
    done = chunk.completed + chunk.failed + 1 == chunk.size
    values = {counted: counted + 1, CHUNKS.c.cost_usd: CHUNKS.c.cost_usd + 0.25, CHUNKS.c.done: done or chunk.done}
    connection.execute(CHUNKS.update().where(*within).values({column.name: v for column, v in values.items()}))
    if done and not chunk.done:
        _close(connection, batch, 1)


def closed(database: Database, batch: str) -> None:
    """Whoever was at the batch has stopped."""
    with database.begin() as connection:
        open_chunks = CHUNKS.update().where(CHUNKS.c.batch == batch, ~CHUNKS.c.done)
        _close(connection, batch, connection.execute(open_chunks.values(done=True)).rowcount)


def _close(connection: sa.Connection, batch: str, count: int) -> None:
    one = BATCHES.update().where(BATCHES.c.id == batch)
    closing = one.values(open_chunks=BATCHES.c.open_chunks - count).returning(BATCHES.c.open_chunks)
    if not connection.execute(closing).scalar_one():
        connection.execute(one.values(status="finalizing"))


def paused(database: Database, batch: str, status: str) -> None:
    """The batch waits, and all its chunks were put off."""
    with database.begin() as connection:
        connection.execute(CHUNKS.update().where(CHUNKS.c.batch == batch).values(under_way=False))
        chosen = BATCHES.update().where(BATCHES.c.id == batch, BATCHES.c.status == "in_progress")
        connection.execute(chosen.values(status=status, reason="because"))


def ended(database: Database, batch: str, *, days_ago: float = 0.0) -> None:
    """The batch is over."""
    with database.begin() as connection:
        row = connection.execute(sa.select(BATCHES).where(BATCHES.c.id == batch)).one()
        assert row.status == "finalizing"
        assert row.open_chunks == 0
        at = database.now() - days_ago * 86_400
        connection.execute(
            BATCHES.update().where(BATCHES.c.id == batch).values(status=row.ending or "completed", ended_at=at)
        )


def overdue(database: Database, batch: str) -> None:
    """The deadline of the batch has passed."""
    with database.begin() as connection:
        connection.execute(BATCHES.update().where(BATCHES.c.id == batch).values(deadline_at=database.now() - 1.0))
