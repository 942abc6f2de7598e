"""End jobs, and record what became of their notices."""

from __future__ import annotations

import sqlalchemy as sa

from service.store.database import Database
from service.store.jobs.calibrations import FitOutcome, store_fit_outcome
from service.store.jobs.queue import Queue
from service.store.tables import BATCHES, CHUNKS


def end_job(database: Database, queue: Queue, batch: str, *, fit_outcome: FitOutcome | None = None) -> None:
    """End a job of which nothing is under way. Leave one that has ended, or is gone, as it is.

    `fit_outcome`: only for a calibration.
    """
    with database.begin() as connection:
        row = connection.execute(sa.select(BATCHES).where(BATCHES.c.id == batch).with_for_update()).one_or_none()
        if row is None or row.status != "finalizing":
            return
        status = row.ending or _choose_status(connection, batch, row.total)
        reason: str | None = None
        if fit_outcome is not None:
            store_fit_outcome(connection, batch, fit_outcome)
            status, reason = ("failed", fit_outcome.problem) if fit_outcome.problem else ("completed", None)
        values = {"status": status, "reason": reason, "resume_at": None, "ended_at": database.now()}
        if row.webhook is not None:
            values["webhook_status"] = "pending"
            queue.enqueue_notice(connection, batch)
        connection.execute(sa.update(BATCHES).where(BATCHES.c.id == batch).values(values))


def _choose_status(connection: sa.Connection, batch: str, total: int) -> str:
    failed = connection.execute(sa.select(sa.func.sum(CHUNKS.c.failed)).where(CHUNKS.c.batch == batch)).scalar_one()
    return "failed" if failed == total else "completed"


def record_notice(
    database: Database, queue: Queue, batch: str, status: str, *, next_attempt: tuple[int, float] | None
) -> None:
    """Record the status of a notice. `next_attempt`: the number of the next attempt, and its delay in seconds."""
    with database.begin() as connection:
        connection.execute(sa.update(BATCHES).where(BATCHES.c.id == batch).values(webhook_status=status))
        if next_attempt is not None:
            attempt, delay = next_attempt
            queue.enqueue_notice(connection, batch, attempt=attempt, delay=delay)
