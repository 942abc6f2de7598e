"""What batches submit to the batch endpoints of providers: a row is written before anything is sent.

| from | to | by |
|---|---|---|
| - | new | `add`, before anything is sent; what it may cost is held in the budget of its batch |
| new | submitted | `record`, with the provider's id |
| new, submitted | ended | `end`: its answers were read, or there are none; what was held is free again |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import sqlalchemy as sa

from service.store.access.usage import UsageAmount
from service.store.database import Database
from service.store.jobs.chunks import RUNNING_STATUSES
from service.store.jobs.job import PAUSED_STATUSES
from service.store.jobs.leases import Lease
from service.store.tables import BATCH_USAGE, BATCHES, CHUNKS, PROVIDER_BATCHES

_TABLE = PROVIDER_BATCHES.c


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderBatch:
    """One submission to a provider: the questions of some items to one model."""

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

    @property
    def end(self) -> int:
        """The position after its last item."""
        return self.first + self.size


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
        with self._database.read() as connection:
            known = connection.execute(sa.select(_TABLE.provider_id).where(_TABLE.provider_id.is_not(None)))
            return frozenset(known.scalars())

    def find_abandoned(self) -> list[ProviderBatch]:
        """Return the open submissions of batches that are over."""
        over = sa.select(BATCHES.c.id).where(BATCHES.c.status.not_in(RUNNING_STATUSES | PAUSED_STATUSES))
        return self._read(_TABLE.state != "ended", _TABLE.batch.in_(over))

    def _read(self, *which: sa.ColumnElement[bool]) -> list[ProviderBatch]:
        age = (self._database.now() - _TABLE.created_at).label("age")
        with self._database.read() as connection:
            chosen = sa.select(PROVIDER_BATCHES, age).where(*which).order_by(_TABLE.first, _TABLE.label)
            return [ProviderBatch(**row) for row in connection.execute(chosen).mappings()]

    def add(
        self, lease: Lease, rows: Sequence[ProviderBatch], worst_usd: Sequence[float]
    ) -> Literal["budget_usd", "max_questions"] | None:
        """Add new submissions, and hold the most that each may cost; if a limit forbids it, add none and return which.

        The items were planned without harm: an earlier death of the chunk's worker was not theirs.
        """
        with self._database.begin() as connection:
            _forgive(connection, lease)
            limits = sa.select(BATCHES.c.budget_usd, BATCHES.c.max_questions).where(BATCHES.c.id == lease.batch)
            most = connection.execute(limits.with_for_update()).one()
            used = BATCH_USAGE.c
            usd, questions = used.cost_usd + used.uncertain_usd + used.held_usd, used.questions + used.held_questions
            sums = [
                sa.func.coalesce(sa.func.sum(usd), 0).label("usd"),
                sa.func.coalesce(sa.func.sum(questions), 0).label("n"),
            ]
            spent = connection.execute(sa.select(*sums).where(used.batch == lease.batch)).one()
            asked = int(spent.n) + sum(row.questions for row in rows)
            if most.max_questions is not None and asked > most.max_questions:
                return "max_questions"
            if most.budget_usd is not None and float(spent.usd) + sum(worst_usd) > most.budget_usd:
                return "budget_usd"
            for row, worst in zip(rows, worst_usd, strict=True):
                values = asdict(row) | {"created_at": self._database.now()}
                del values["age"]
                connection.execute(PROVIDER_BATCHES.insert().values(values))
                held = UsageAmount(held_questions=row.questions, held_usd=worst)
                connection.execute(BATCH_USAGE.insert().values(batch=row.batch, owner=row.label, **asdict(held)))
            return None

    def look(self, row: ProviderBatch, lease: Lease) -> None:
        """Count a look, which harms no worker either."""
        with self._database.begin() as connection:
            connection.execute(_update(row).values(looks=_TABLE.looks + 1))
            _forgive(connection, lease)

    def record(self, row: ProviderBatch, provider_id: str) -> bool:
        """Record the provider's id; False if somebody else was faster, and this one is not wanted."""
        with self._database.begin() as connection:
            submitted = _update(row).where(_TABLE.state == "new").values(state="submitted", provider_id=provider_id)
            waits = (BATCHES.c.id == row.batch, BATCHES.c.status == "paused_provider")
            connection.execute(
                sa.update(BATCHES).where(*waits).values(status="in_progress", reason=None, resume_at=None)
            )
            return bool(connection.execute(submitted).rowcount)

    def note_cancelled(self, row: ProviderBatch) -> None:
        """Note that the provider was told to stop."""
        with self._database.begin() as connection:
            connection.execute(_update(row).values(cancelled=True))

    def end(self, row: ProviderBatch, *, unread: bool = False) -> None:
        """End a submission. What was held is free, or may have been spent where nobody will read the answers (`unread`)."""
        held = sa.update(BATCH_USAGE).where(BATCH_USAGE.c.batch == row.batch, BATCH_USAGE.c.owner == row.label)
        used = BATCH_USAGE.c
        spent = {"questions": used.held_questions, "uncertain_usd": used.held_usd} if unread else {}
        with self._database.begin() as connection:
            if connection.execute(_update(row).where(_TABLE.state != "ended").values(state="ended")).rowcount:
                connection.execute(held.values(held_questions=0, held_usd=0.0, **spent))


def _update(row: ProviderBatch) -> sa.Update:
    return sa.update(PROVIDER_BATCHES).where(_TABLE.label == row.label)


def _forgive(connection: sa.Connection, lease: Lease) -> None:
    own = (CHUNKS.c.batch == lease.batch, CHUNKS.c.first == lease.first, CHUNKS.c.attempt == lease.attempt)
    connection.execute(sa.update(CHUNKS).where(*own, CHUNKS.c.deaths > 0).values(deaths=0))
