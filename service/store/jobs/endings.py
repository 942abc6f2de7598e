"""The end of a batch."""

from __future__ import annotations

import sqlalchemy as sa

from service.store.database import Database
from service.store.jobs.calibrations import FitOutcome, keep
from service.store.jobs.queue import Queue
from service.store.tables import BATCHES, CHUNKS


def end(database: Database, queue: Queue, batch: str, *, fitted: FitOutcome | None = None) -> None:
    """Ends a batch of which nothing is under way. One that has ended, or is gone, stays as it is.

    `fitted`: of a calibration, what became of it.
    """
    with database.begin() as connection:
        found = connection.execute(sa.select(BATCHES).where(BATCHES.c.id == batch).with_for_update()).one_or_none()
        if found is None or found.status != "finalizing":
            return
        status = found.ending or _choose_status(connection, batch, found.total)
        reason: str | None = None
        if fitted is not None:
            keep(connection, batch, fitted)
            status, reason = ("failed", fitted.problem) if fitted.problem else ("completed", None)
        values = {"status": status, "reason": reason, "resume_at": None, "ended_at": database.now()}
        if found.webhook is not None:
            values["webhook_status"] = "pending"
            queue.enqueue_notice(connection, batch)
        connection.execute(sa.update(BATCHES).where(BATCHES.c.id == batch).values(values))


def _choose_status(connection: sa.Connection, batch: str, total: int) -> str:
    failed = connection.execute(sa.select(sa.func.sum(CHUNKS.c.failed)).where(CHUNKS.c.batch == batch)).scalar_one()
    return "failed" if failed == total else "completed"


def record_notice(
    database: Database, queue: Queue, batch: str, status: str, *, again: tuple[int, float] | None
) -> None:
    """Keeps what became of a notice. `again`: the number of the next attempt, and in how many seconds it is due."""
    with database.begin() as connection:
        connection.execute(sa.update(BATCHES).where(BATCHES.c.id == batch).values(webhook_status=status))
        if again is not None:
            attempt, delay = again
            queue.enqueue_notice(connection, batch, attempt=attempt, delay=delay)
