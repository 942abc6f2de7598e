"""Batches in the database: taken, looked up, cancelled, resumed, forgotten. What workers do with them is in `chunks`.

Every change is one transaction, and what comes of it is put into the queue within it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from service.errors import (
    BatchGoneError,
    BatchStateError,
    InputError,
    KeyReusedError,
    UnknownBatchError,
)
from service.io.store.batch import (
    ENDED,
    PAUSED,
    STEMS,
    STOPPABLE,
    Batch,
    BatchList,
    Kind,
    Status,
    batch_of,
    batch_rows,
    made_at,
)
from service.io.store.database import Database
from service.io.store.queue import Queue
from service.io.store.room import Room, queued
from service.io.store.submission import Chunk, Submission, batch_values, chunk_values
from service.io.store.tables import BATCHES, CHUNKS, SUBMISSIONS

DAY = 86_400.0


class Batches:
    """The batches of one kind in a database. All of it waits for the database, and so belongs into a thread.

    UnknownBatchError for an id that is not there, is another tenant's, or is of another kind.
    """

    def __init__(
        self,
        database: Database,
        queue: Queue,
        room: Room = Room(),  # noqa: B008 (frozen)
        kind: Kind = "scores",
    ) -> None:
        self.database = database
        self.kind: Kind = kind
        self._queue = queue
        self._room = room

    def of_kind(self, kind: Kind) -> Batches:
        """Those of another kind in the same database."""
        return Batches(self.database, self._queue, self._room, kind)

    def submit(
        self,
        submission: Submission,
        chunks: Iterable[Chunk],
        *,
        also: Callable[[sa.Connection, str], None] | None = None,
    ) -> Batch:
        """Makes a batch, in one transaction with its chunks; they are read one at a time. One without any is ended next.

        `also`: what else is kept of it in that transaction, given its id.

        A submission that is repeated under its key gives the batch that there is. Raises KeyReusedError and BatchGoneError
        as `submitted` does, QueueFullError where its items find no room. (On PostgreSQL submissions at the same moment do
        not see each other's items, and may pass the bound together.)
        """
        with self.database.begin() as connection:
            now: float = connection.execute(sa.select(self.database.now())).scalar_one()
            milliseconds = int(now * 1_000)
            batch_id = f"{STEMS[self.kind]}_{milliseconds:012x}{secrets.token_hex(10)}"
            key = submission.key
            if key is not None and not self._claimed(connection, submission, key, (batch_id, now)):
                return self._repeated(connection, submission.tenant, key, submission.fingerprint)
            values = batch_values(submission, batch_id, milliseconds / 1_000) | {"kind": self.kind}
            connection.execute(BATCHES.insert().values(values))
            self._insert(connection, submission, batch_id, chunks)
            if also is not None:
                also(connection, batch_id)
            return self._one(connection, submission.tenant, batch_id)

    def submitted(self, tenant: str, key: str, fingerprint: str) -> Batch | None:
        """The batch that was made under an Idempotency-Key; None where there is none.

        KeyReusedError where the key stands for something else, BatchGoneError where its batch was deleted.
        """
        with self.database.read() as connection:
            if connection.execute(_submission_of(tenant, key)).one_or_none() is None:
                return None
            return self._repeated(connection, tenant, key, fingerprint)

    def check_room(self, tenant: str, items: int = 1) -> None:
        """QueueFullError where no room is left for so many items."""
        with self.database.read() as connection:
            self._room.check(connection, tenant, items)

    def queued(self, tenant: str | None = None) -> int:
        """How many items wait or are under way: of one tenant, or of all."""
        with self.database.read() as connection:
            return queued(connection, tenant)

    def find(self, tenant: str, batch_id: str) -> Batch:
        """One batch."""
        with self.database.read() as connection:
            return self._one(connection, tenant, batch_id)

    def page(self, tenant: str, *, limit: int, after: str | None = None, status: Status | None = None) -> BatchList:
        """A tenant's batches, newest first: `limit` of those older than the batch `after`, which need not exist any more.

        InputError for an `after` that is no id.
        """
        chosen = sa.select(BATCHES).where(BATCHES.c.tenant == tenant, BATCHES.c.kind == self.kind)
        if status is not None:
            chosen = chosen.where(BATCHES.c.status == status)
        if after is not None:
            made = made_at(after, self.kind)
            if made is None:
                raise InputError.at("", f"after: expected the id of a {STEMS[self.kind]}")
            chosen = chosen.where(sa.tuple_(BATCHES.c.created_at, BATCHES.c.id) < (made, after))
        chosen = chosen.order_by(BATCHES.c.created_at.desc(), BATCHES.c.id.desc()).limit(limit + 1)
        with self.database.read() as connection:
            found = [batch_of(row) for row in connection.execute(batch_rows(chosen))]
        more = len(found) > limit
        return BatchList(tuple(found[:limit]), more, found[limit - 1].id if more else None)

    def cancel(self, tenant: str, batch_id: str) -> Batch:
        """Lets a batch end: items that were not begun are never run. One that ends or has ended is left as it is."""
        with self.database.begin() as connection:
            row = self._locked(connection, batch_id, tenant)
            if row.status in STOPPABLE:
                self._stop(connection, row, ending="cancelled", meanwhile="cancelling")
            return self._one(connection, tenant, batch_id)

    def resume(self, tenant: str, batch_id: str, *, budget_usd: float | None = None) -> Batch:
        """Goes on with a paused batch, with another budget where one is given. BatchStateError for one that is not paused.

        InputError for a budget that is no more than what was spent, or where the batch had none.
        """
        with self.database.begin() as connection:
            row = self._locked(connection, batch_id, tenant)
            if row.status not in PAUSED:
                raise BatchStateError(f"the batch is {row.status}; only a paused one can be resumed")
            if budget_usd is not None:
                _check_budget(self._one(connection, tenant, batch_id), budget_usd)
            values = {"status": "in_progress", "reason": None, "resume_at": None}
            values |= {} if budget_usd is None else {"budget_usd": budget_usd}
            connection.execute(BATCHES.update().where(BATCHES.c.id == batch_id).values(values))
            self._enqueue_open(connection, batch_id, serial=row.serial)
            return self._one(connection, tenant, batch_id)

    def delete(self, tenant: str, batch_id: str) -> None:
        """Deletes a batch that has ended, with its items and results. BatchStateError for one that has not."""
        with self.database.begin() as connection:
            row = self._locked(connection, batch_id, tenant)
            if row.status not in ENDED:
                raise BatchStateError(f"the batch is {row.status}; cancel it first, and delete it when it has ended")
            connection.execute(BATCHES.delete().where(BATCHES.c.id == batch_id))

    def expire_due(self) -> list[str]:
        """Lets those end that are not done by their deadline; their ids."""
        due = sa.select(BATCHES.c.id).where(
            BATCHES.c.status.in_(STOPPABLE), BATCHES.c.deadline_at <= self.database.now()
        )
        with self.database.read() as connection:
            found = list(connection.execute(due).scalars())
        return [batch_id for batch_id in found if self._expired(batch_id)]

    def _expired(self, batch_id: str) -> bool:
        with self.database.begin() as connection:
            row = connection.execute(sa.select(BATCHES).where(BATCHES.c.id == batch_id).with_for_update()).one_or_none()
            if row is None or row.status not in STOPPABLE:  # somebody was faster
                return False
            self._stop(connection, row, ending="expired", meanwhile="finalizing")
            return True

    def forget_old(self, *, days: float) -> int:
        """Deletes what ended more than so many days ago; how many batches.

        A key that made a batch is given free as long after, and when the batch is gone.
        """
        old = sa.select(BATCHES.c.id).where(BATCHES.c.ended_at < self.database.now() - days * DAY)
        with self.database.read() as connection:
            found = list(connection.execute(old).scalars())
        for batch_id in found:  # each in a transaction of its own, so that others need not wait for all
            with self.database.begin() as connection:
                connection.execute(BATCHES.delete().where(BATCHES.c.id == batch_id))
        with self.database.begin() as connection:
            connection.execute(
                SUBMISSIONS.delete().where(
                    SUBMISSIONS.c.created_at < self.database.now() - days * DAY,
                    ~sa.exists().where(BATCHES.c.id == SUBMISSIONS.c.batch),
                )
            )
        return len(found)

    def _claimed(self, connection: sa.Connection, submission: Submission, key: str, made: tuple[str, float]) -> bool:
        """Whether the key is ours now. Who comes second waits here until the first has decided."""
        insert = sqlite.insert if self.database.is_sqlite else postgresql.insert
        values = {
            "tenant": submission.tenant,
            "key_hash": _hash(key),
            "fingerprint": submission.fingerprint,
            "batch": made[0],
            "created_at": made[1],
        }
        claim = insert(SUBMISSIONS).values(values).on_conflict_do_nothing().returning(SUBMISSIONS.c.batch)
        return connection.execute(claim).one_or_none() is not None

    def _insert(
        self, connection: sa.Connection, submission: Submission, batch_id: str, chunks: Iterable[Chunk]
    ) -> None:
        serial = submission.budget_usd is not None
        ahead = _running(connection, submission.tenant) - 1  # this one is among them
        count = total = 0
        for number, chunk in enumerate(chunks):
            connection.execute(CHUNKS.insert().values(chunk_values(batch_id, number, chunk)))
            if number == 0 or not serial:
                self._queue.enqueue_chunk(connection, batch_id, number, ahead=ahead)
            count, total = count + 1, total + chunk.size
        self._room.check(connection, submission.tenant)
        counted = BATCHES.update().where(BATCHES.c.id == batch_id)
        connection.execute(counted.values(total=total, open_chunks=count))
        if not count:
            connection.execute(counted.values(status="finalizing"))
            self._queue.enqueue_finish(connection, batch_id)

    def _stop(self, connection: sa.Connection, row: sa.Row[Any], *, ending: Status, meanwhile: Status) -> None:
        """Closes what is not under way; whoever is at the rest closes it."""
        closing = CHUNKS.update().where(CHUNKS.c.batch == row.id, ~CHUNKS.c.done, ~CHUNKS.c.under_way)
        left = row.open_chunks - connection.execute(closing.values(done=True)).rowcount
        values = {"status": meanwhile if left else "finalizing", "ending": ending, "open_chunks": left}
        values |= {"reason": None, "resume_at": None}
        connection.execute(BATCHES.update().where(BATCHES.c.id == row.id).values(values))
        if not left:
            self._queue.enqueue_finish(connection, row.id)

    def _enqueue_open(self, connection: sa.Connection, batch_id: str, *, serial: bool) -> None:
        open_chunks = sa.select(CHUNKS.c.number).where(CHUNKS.c.batch == batch_id, ~CHUNKS.c.done, ~CHUNKS.c.under_way)
        chosen = open_chunks.order_by(CHUNKS.c.number).limit(1 if serial else None)
        raised = (
            CHUNKS.update()
            .where(CHUNKS.c.batch == batch_id, CHUNKS.c.number.in_(chosen))
            .values(generation=CHUNKS.c.generation + 1)
            .returning(CHUNKS.c.number, CHUNKS.c.generation)
        )
        for number, generation in sorted(map(tuple, connection.execute(raised))):
            self._queue.enqueue_chunk(connection, batch_id, number, generation=generation)

    def _one(self, connection: sa.Connection, tenant: str, batch_id: str) -> Batch:
        row = connection.execute(batch_rows(self._chosen(tenant, batch_id))).one_or_none()
        if row is None:
            raise self._unknown()
        return batch_of(row)

    def _locked(self, connection: sa.Connection, batch_id: str, tenant: str) -> sa.Row[Any]:
        """The batch, held so that nobody else changes it."""
        row = connection.execute(self._chosen(tenant, batch_id).with_for_update()).one_or_none()
        if row is None:
            raise self._unknown()
        return row

    def _chosen(self, tenant: str, batch_id: str) -> sa.Select[Any]:
        """What finds a batch. What is no id is not looked for: it may hold what no database takes."""
        if made_at(batch_id, self.kind) is None:
            raise self._unknown()
        return sa.select(BATCHES).where(BATCHES.c.id == batch_id, BATCHES.c.tenant == tenant)

    def _unknown(self) -> UnknownBatchError:
        return UnknownBatchError(f"no {STEMS[self.kind]} of that id")

    def _repeated(self, connection: sa.Connection, tenant: str, key: str, fingerprint: str) -> Batch:
        """The batch of a submission that was made before."""
        earlier = connection.execute(_submission_of(tenant, key)).one()
        if earlier.fingerprint != fingerprint:
            raise KeyReusedError("the Idempotency-Key was used for another body, or with other options")
        try:
            return self._one(connection, tenant, earlier.batch)
        except UnknownBatchError:
            raise BatchGoneError("the batch that was made under this Idempotency-Key was deleted") from None


def _submission_of(tenant: str, key: str) -> sa.Select[str, str]:
    return sa.select(SUBMISSIONS.c.fingerprint, SUBMISSIONS.c.batch).where(
        SUBMISSIONS.c.tenant == tenant, SUBMISSIONS.c.key_hash == _hash(key)
    )


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _check_budget(batch: Batch, budget_usd: float) -> None:
    spent = batch.cost_usd + batch.uncertain_usd
    if batch.budget_usd is None:
        raise InputError.at("/budget_usd", "the batch was made without a budget")
    if budget_usd <= spent:
        raise InputError.at("/budget_usd", f"expected more than the ${spent:.6f} that are spent")


def _running(connection: sa.Connection, tenant: str) -> int:
    """How many batches of a tenant are not done."""
    counted = sa.select(sa.func.count()).where(BATCHES.c.tenant == tenant, BATCHES.c.status.in_(STOPPABLE))
    return connection.execute(counted).scalar_one()
