"""What is due once a batch has no open chunk: end it, and tell of its end. Rows of the work queue like chunks, without items."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

import sqlalchemy as sa

from service.store.database import Database
from service.store.jobs.calibrations import FitOutcome, store_fit_outcome
from service.store.jobs.chunks import match_lease, match_row
from service.store.jobs.closing import NOTICE
from service.store.jobs.leases import Lease
from service.store.jobs.workers import count_beat
from service.store.tables import BATCHES, CHUNKS

DutyKind = Literal["finish", "notice"]


class Duty(NamedTuple):
    """A claimed row: what to do with its batch."""

    lease: Lease
    kind: DutyKind


def claim_duty(database: Database, owner: str, kinds: Collection[DutyKind]) -> Duty | None:
    """Claim what is due of these kinds; None if there is nothing, or somebody was faster."""
    due = (CHUNKS.c.kind.in_(kinds), CHUNKS.c.state == "ready", CHUNKS.c.due_at <= database.now())
    # Nothing is locked while there is nothing to do.
    row = database.read_row(sa.select(CHUNKS).where(*due).order_by(CHUNKS.c.due_at).limit(1))
    if row is None:
        return None
    lease = Lease(row["batch"], row["first"], row["attempt"] + 1)
    same = (*match_row(lease), CHUNKS.c.attempt == row["attempt"], CHUNKS.c.state == "ready")
    running = sa.update(CHUNKS).where(*same).values(state="running", owner=owner, attempt=lease.attempt)
    with database.begin() as connection:
        count_beat(connection, owner, database.now())
        return Duty(lease, row["kind"]) if connection.execute(running).rowcount else None


def end_job(database: Database, lease: Lease, *, fit_outcome: FitOutcome | None = None) -> None:
    """End a job, if the lease counts. `fit_outcome`: only for a calibration."""
    with database.begin() as connection:
        if not connection.execute(sa.delete(CHUNKS).where(*match_lease(lease))).rowcount:
            return
        row = connection.execute(sa.select(BATCHES).where(BATCHES.c.id == lease.batch).with_for_update()).one()
        failed = sa.select(sa.func.sum(CHUNKS.c.failed)).where(CHUNKS.c.batch == row.id)
        all_failed = connection.execute(failed).scalar() == row.total
        status, reason = row.ending or ("failed" if all_failed else "completed"), None
        if fit_outcome is not None:
            store_fit_outcome(connection, lease.batch, fit_outcome)
            status, reason = ("failed", fit_outcome.problem) if fit_outcome.problem else ("completed", None)
        values = {"status": status, "reason": reason, "resume_at": None, "ended_at": database.now()}
        if row.webhook is not None:
            values["webhook_status"] = "pending"
            connection.execute(CHUNKS.insert().values(batch=lease.batch, first=NOTICE, kind="notice"))
        connection.execute(sa.update(BATCHES).where(BATCHES.c.id == lease.batch).values(values))


def record_notice(database: Database, lease: Lease, status: str, *, delay: float | None = None) -> None:
    """Record what became of a notice, if the lease counts. `delay`: seconds until it is sent again; None: it is not."""
    ready = {"state": "ready", "owner": None, "due_at": database.now() + (delay or 0.0)}
    again = sa.delete(CHUNKS) if delay is None else sa.update(CHUNKS).values(ready)
    with database.begin() as connection:
        if connection.execute(again.where(*match_lease(lease))).rowcount:
            connection.execute(sa.update(BATCHES).where(BATCHES.c.id == lease.batch).values(webhook_status=status))
