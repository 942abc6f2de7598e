"""A worker that is played: it opens and records as a real one does, and what becomes of the items is told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from service.store.database import Database
from service.store.jobs.chunks import Chunks
from service.store.jobs.endings import end_job
from service.store.jobs.leases import ChunkId, ChunkSpending, Lease, OutcomeRow, OutcomeRows, Pause
from service.store.tables import BATCHES, CHUNKS


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


def opened(database: Database, batch: str, *numbers: int) -> bool:
    """The chunks are under way, if there is anything to do in them."""
    chosen = [chunk for chunk in _chunks(database, batch) if chunk.number in numbers]
    found = [_worker(database).lease(ChunkId(batch, chunk.number), chunk.generation) for chunk in chosen]
    return None not in found


def recorded(database: Database, batch: str, positions: Iterable[int], *, ok: bool = True, report: object = 1) -> None:
    """The items have an outcome. A chunk that is finished is done, and the last of them ends the batch."""
    for position in positions:
        (chunk,) = [one for one in _chunks(database, batch) if one.first <= position < one.first + one.size]
        told = {"report": report} if ok else {"error": {"title": "Unprocessable Content"}}
        row = OutcomeRow(position, ok, json.dumps({"custom_id": f"c{position}", "index": position, **told}))
        rows = OutcomeRows(_hold(chunk), [row], ChunkSpending(chunk.cost_usd + 0.25, chunk.uncertain_usd))
        assert _worker(database).record([rows]) == [True]


def closed(database: Database, batch: str) -> None:
    """Whoever was at the batch has stopped."""
    for chunk in _chunks(database, batch):
        if not chunk.done:
            assert _worker(database).close(
                _hold(chunk), spent=ChunkSpending(chunk.cost_usd, chunk.uncertain_usd, chunk.questions)
            )


def paused(database: Database, batch: str, status: Pause) -> None:
    """The batch waits: whoever was at a chunk has put it off; if nobody was, it is the first that is left."""
    left = [chunk for chunk in _chunks(database, batch) if not chunk.done]
    for chunk in [chunk for chunk in left if chunk.under_way] or left[:1]:
        if chunk.under_way or opened(database, batch, chunk.number):
            (now,) = [one for one in _chunks(database, batch) if one.number == chunk.number]
            spent = ChunkSpending(now.cost_usd, now.uncertain_usd, now.questions)
            assert _worker(database).defer(_hold(now), delay=60.0, spent=spent, pause=status, reason="because")


def ended(database: Database, batch: str, *, days_ago: float = 0.0) -> None:
    """The batch is over."""
    end_job(database, Recording(), batch)
    with database.begin() as connection:
        over = BATCHES.update().where(BATCHES.c.id == batch, BATCHES.c.ended_at.is_not(None))
        ago = over.values(ended_at=BATCHES.c.ended_at - days_ago * 86_400)
        assert connection.execute(ago).rowcount == 1


def _worker(database: Database) -> Chunks:
    return Chunks(database, Recording())


def _chunks(database: Database, batch: str) -> Sequence[sa.Row[Any]]:
    with database.read() as connection:
        return connection.execute(sa.select(CHUNKS).where(CHUNKS.c.batch == batch).order_by(CHUNKS.c.number)).all()


def _hold(chunk: sa.Row[Any]) -> Lease:
    return Lease(ChunkId(chunk.batch, chunk.number), chunk.attempt)


def overdue(database: Database, batch: str) -> None:
    """The deadline of the batch has passed."""
    with database.begin() as connection:
        connection.execute(BATCHES.update().where(BATCHES.c.id == batch).values(deadline_at=database.now() - 1.0))
