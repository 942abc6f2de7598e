"""What batches submit to the batch endpoints of providers: a row is written before anything is sent.

| from | to | by |
|---|---|---|
| - | new | `add`, before anything is sent; what it may cost is held in the budget of its batch |
| new | submitted | `record`, with the provider's id |
| new, submitted | ended | `end`: its answers were read, or there are none; what was held is free again |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import sqlalchemy as sa

from service.core.money import UsageAmount
from service.store.database import Database, build_from_row
from service.store.jobs.chunks import RUNNING_STATUSES, Limit, find_passed_limit
from service.store.jobs.job import PAUSED_STATUSES
from service.store.jobs.leases import Lease
from service.store.tables import BATCH_USAGE, BATCHES, CHUNKS, PROVIDER_BATCHES

_TABLE = PROVIDER_BATCHES.c


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderBatch:
    """One submission to a provider: the questions of a chunk to one model."""

    label: str
    batch: str
    first: int
    size: int
    model: str
    questions: int
    secret: str
    state: Literal["new", "submitted", "ended"] = "new"
    provider_id: str | None = None
    created_at: float = 0.0
    looks: int = 0
    cancelled: bool = False
    age: float = 0.0
    """Seconds since it was made."""


class ProviderBatches:
    """The submissions in a database. Every method blocks on it, so call it in a thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, lease: Lease, size: int) -> list[ProviderBatch]:
        """Return the submissions with items of a chunk, which may be a part of the one that they were made for."""
        overlap = (_TABLE.batch == lease.batch, _TABLE.first < lease.first + size)
        return self._read(*overlap, _TABLE.first + _TABLE.size > lease.first)

    def list_taken(self) -> frozenset[str]:
        """Return the provider's ids of all submissions."""
        known = sa.select(_TABLE.provider_id).where(_TABLE.provider_id.is_not(None))
        return frozenset(self._database.read_column(known))

    def find_abandoned(self) -> list[ProviderBatch]:
        """Return the open submissions of batches that are over."""
        over = sa.select(BATCHES.c.id).where(BATCHES.c.status.not_in(RUNNING_STATUSES | PAUSED_STATUSES))
        return self._read(_TABLE.state != "ended", _TABLE.batch.in_(over))

    def _read(self, *which: sa.ColumnElement[bool]) -> list[ProviderBatch]:
        age = (self._database.now() - _TABLE.created_at).label("age")
        chosen = sa.select(PROVIDER_BATCHES, age).where(*which).order_by(_TABLE.first, _TABLE.label)
        return [build_from_row(ProviderBatch, row) for row in self._database.read_rows(chosen)]

    def add(self, lease: Lease, rows: Sequence[ProviderBatch], worst_usd: Sequence[float]) -> Limit | None:
        """Add new submissions, and hold the most that each may cost; if that passes a limit, add none and return which.

        The items were planned without harm: an earlier death of the chunk's worker was not theirs.
        """
        held = UsageAmount(held_questions=sum([row.questions for row in rows]), held_usd=sum(worst_usd))
        with self._database.begin() as connection:
            _forgive(connection, lease)
            _, passed = find_passed_limit(connection, lease.batch, "", held)
            if passed is not None:
                return passed
            for row, usd in zip(rows, worst_usd, strict=True):
                names = ("label", "batch", "first", "size", "model", "questions", "secret", "state")
                values = {name: getattr(row, name) for name in names} | {"created_at": self._database.now()}
                connection.execute(PROVIDER_BATCHES.insert().values(values))
                own = {"batch": row.batch, "owner": row.label, "held_questions": row.questions, "held_usd": usd}
                connection.execute(BATCH_USAGE.insert().values(own))
            return None

    def look(self, row: ProviderBatch, lease: Lease) -> None:
        """Count a look, which harms no worker either."""
        with self._database.begin() as connection:
            _forgive(connection, lease)
            connection.execute(_update(row).values(looks=_TABLE.looks + 1))

    def record(self, row: ProviderBatch, provider_id: str) -> bool:
        """Record the provider's id; False if somebody else was faster, and this one is not wanted."""
        waits = sa.update(BATCHES).where(BATCHES.c.id == row.batch, BATCHES.c.status == "paused_provider")
        submitted = _update(row).where(_TABLE.state == "new").values(state="submitted", provider_id=provider_id)
        with self._database.begin() as connection:
            connection.execute(waits.values(status="in_progress", reason=None, resume_at=None))
            return bool(connection.execute(submitted).rowcount)

    def note_cancelled(self, row: ProviderBatch) -> None:
        """Note that the provider was told to stop."""
        self._database.change(_update(row).values(cancelled=True))

    def end(self, row: ProviderBatch, *, unread: bool = False) -> None:
        """End a submission. What was held is free, or may have been spent where nobody will read the answers (`unread`)."""
        used = BATCH_USAGE.c
        spent = {"questions": used.held_questions, "uncertain_usd": used.held_usd} if unread else {}
        free = sa.update(BATCH_USAGE).where(used.batch == row.batch, used.owner == row.label)
        with self._database.begin() as connection:
            if connection.execute(_update(row).where(_TABLE.state != "ended").values(state="ended")).rowcount:
                connection.execute(free.values(held_questions=0, held_usd=0.0, **spent))


def _update(row: ProviderBatch) -> sa.Update:
    return sa.update(PROVIDER_BATCHES).where(_TABLE.label == row.label)


def _forgive(connection: sa.Connection, lease: Lease) -> None:
    own = (CHUNKS.c.batch == lease.batch, CHUNKS.c.first == lease.first, CHUNKS.c.attempt == lease.attempt)
    connection.execute(sa.update(CHUNKS).where(*own, CHUNKS.c.deaths > 0).values(deaths=0))
