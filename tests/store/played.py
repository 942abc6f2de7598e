"""A worker that is played: it claims and records as a real one does, and what becomes of the items is told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

import sqlalchemy as sa

from service.core.money import UsageAmount
from service.store.database import Database
from service.store.jobs.calibrations import FitOutcome
from service.store.jobs.chunks import Chunks
from service.store.jobs.duties import end_job
from service.store.jobs.leases import Lease, OutcomeRow, OutcomeRows, Pause
from service.store.tables import BATCH_USAGE, BATCHES, CHUNKS

PLAYER = "player"


def rows_of(database: Database, batch: str, kind: str = "chunk") -> Sequence[sa.Row[Any]]:
    """The rows that the work queue has of a batch."""
    chosen = sa.select(CHUNKS).where(CHUNKS.c.batch == batch, CHUNKS.c.kind == kind).order_by(CHUNKS.c.first)
    with database.read() as connection:
        return connection.execute(chosen).all()


def ready(database: Database, batch: str) -> list[int]:
    """The first positions of the chunks that anybody may claim now, if the batch runs."""
    return [row.first for row in rows_of(database, batch) if row.state == "ready" and row.due_at == 0]


def ends(database: Database, *batches: str) -> list[str]:
    return [batch for batch in batches if rows_of(database, batch, "finish")]


def opened(database: Database, batch: str, *numbers: int) -> bool:
    """Chunks, by their place in the batch, are under way, if there is anything to do in them."""
    rows = rows_of(database, batch)
    taken = [_take(database, rows[number]) for number in numbers if number < len(rows)]
    return all(taken)


def _take(database: Database, row: sa.Row[Any]) -> bool:
    """As `Chunks.claim`, of a chunk that the test chooses."""
    running = {"state": "running", "owner": PLAYER, "attempt": row.attempt + 1}
    taken = (CHUNKS.c.batch == row.batch, CHUNKS.c.first == row.first, CHUNKS.c.state == "ready")
    used = {"batch": row.batch, "owner": PLAYER} | asdict(UsageAmount())
    with database.begin() as connection:
        if connection.execute(sa.select(BATCH_USAGE).where(BATCH_USAGE.c.batch == row.batch)).first() is None:
            connection.execute(BATCH_USAGE.insert().values(used))
        return connection.execute(CHUNKS.update().where(*taken).values(running)).rowcount == 1


def recorded(database: Database, batch: str, positions: Iterable[int], *, ok: bool = True, report: object = 1) -> None:
    """The items have an outcome, at 0.25 USD each. A finished chunk is done, and the last of them ends the batch."""
    told = {"report": report} if ok else {"error": {"title": "Unprocessable Content"}}
    wanted, player = set(positions), Chunks(database, PLAYER)
    for number, chunk in enumerate(rows_of(database, batch)):
        mine = sorted(wanted & set(range(chunk.first, chunk.first + chunk.size)))
        if mine and chunk.state == "ready":
            opened(database, batch, number)
        rows = [OutcomeRow(n, ok, json.dumps({"custom_id": f"c{n}", "index": n, **told})) for n in mine]
        used = player.read_used(batch)
        used = replace(used, cost_usd=used.cost_usd + 0.25 * len(rows))
        if rows:
            assert player.record([OutcomeRows(hold(rows_of(database, batch)[number]), rows, used)]) == [True]


def closed(database: Database, batch: str) -> None:
    for row in rows_of(database, batch):
        if row.state == "running":
            assert Chunks(database, PLAYER).put_off(hold(row))


def paused(database: Database, batch: str, status: Pause) -> None:
    """The batch waits: whoever was at a chunk has put it off; if nobody was, it is the first that is left."""
    left = [(number, row) for number, row in enumerate(rows_of(database, batch)) if row.state != "done"]
    for number, row in [one for one in left if one[1].state == "running"] or left[:1]:
        if row.state == "running" or opened(database, batch, number):
            lease = hold(rows_of(database, batch)[number])
            assert Chunks(database, PLAYER).put_off(lease, delay=60.0, pause=status, reason="because")


def ended(database: Database, batch: str, *, days_ago: float = 0.0, fit_outcome: FitOutcome | None = None) -> None:
    [row] = rows_of(database, batch, "finish")
    assert _take(database, row)
    end_job(database, Lease(batch, row.first, row.attempt + 1), fit_outcome=fit_outcome)
    with database.begin() as connection:
        over = BATCHES.update().where(BATCHES.c.id == batch, BATCHES.c.ended_at.is_not(None))
        ago = over.values(ended_at=BATCHES.c.ended_at - days_ago * 86_400)
        assert connection.execute(ago).rowcount == 1


def hold(row: sa.Row[Any]) -> Lease:
    return Lease(row.batch, row.first, row.attempt)


def overdue(database: Database, batch: str) -> None:
    with database.begin() as connection:
        connection.execute(BATCHES.update().where(BATCHES.c.id == batch).values(deadline_at=database.now() - 1.0))
