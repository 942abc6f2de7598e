"""Chunks of batches as a worker sees them: lease, record outcomes exactly once, defer, close.

Leasing a chunk raises its attempt number. Every write names the attempt it belongs to, and is refused if another worker has
leased the chunk since: a replica that was frozen and wakes up cannot write over the one that took over its work.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from service.store.bulk import insert_rows
from service.store.database import Database
from service.store.jobs.items import ITEM_COLUMNS, build_item_row
from service.store.jobs.leases import (
    ChunkId,
    ChunkItem,
    ChunkSpending,
    Lease,
    LeasedChunk,
    LeasedElsewhere,
    OutcomeRow,
    OutcomeRows,
    Pause,
)
from service.store.jobs.queue import Queue
from service.store.jobs.suspects import Suspects, parse_suspects
from service.store.labelling.drafts import LabelItem
from service.store.labelling.items import ItemPlace, insert_items, name_batch_item
from service.store.tables import BATCHES, CHUNKS, ITEMS, RESULTS

RUNNING_STATUSES = frozenset({"in_progress", "paused_provider"})
"""The states of a batch whose items may run."""


# Statements that run for each commit of results are built once: building one takes longer than running it.

_IS_CHUNK = (CHUNKS.c.batch == sa.bindparam("of"), CHUNKS.c.number == sa.bindparam("at"))

_LOCK_LEASE = (
    sa.select(CHUNKS.c.number)
    .where(*_IS_CHUNK, CHUNKS.c.attempt == sa.bindparam("opening"), ~CHUNKS.c.done)
    .with_for_update()
)

_SELECT_DONE = sa.select(RESULTS.c.position).where(
    RESULTS.c.batch == sa.bindparam("of"),
    RESULTS.c.position >= sa.bindparam("start"),
    RESULTS.c.position < sa.bindparam("end"),
)

_ADD_COUNTS = (
    sa.update(CHUNKS)
    .where(*_IS_CHUNK)
    .values(
        completed=CHUNKS.c.completed + sa.bindparam("more_completed"),
        failed=CHUNKS.c.failed + sa.bindparam("more_failed"),
        tokens_in=CHUNKS.c.tokens_in + sa.bindparam("more_in"),
        tokens_out=CHUNKS.c.tokens_out + sa.bindparam("more_out"),
        cache_hits=CHUNKS.c.cache_hits + sa.bindparam("more_hits"),
        cost_usd=sa.bindparam("spent"),
        uncertain_usd=sa.bindparam("uncertain"),
        questions=sa.bindparam("asked"),
    )
    .returning(CHUNKS.c.completed + CHUNKS.c.failed == CHUNKS.c.size)
)
"""Adds to the sums of a chunk; returns whether all its items have outcomes."""

_RESULT_COLUMNS = ("batch", "position", "ok", "line")

_SELECT_TENANT = sa.select(BATCHES.c.tenant).where(BATCHES.c.id == sa.bindparam("of"))

_RESUME = (
    sa.update(BATCHES)
    .where(BATCHES.c.id == sa.bindparam("of"), BATCHES.c.status == "paused_provider")
    .values(status="in_progress", reason=None, resume_at=None)
)
"""Resumes a batch that waited for its provider: something of it was recorded."""


class Chunks:
    """The chunks in a database. What comes next goes into `queue` in the same transaction."""

    def __init__(self, database: Database, queue: Queue) -> None:
        self.database = database
        self._queue = queue

    def count_attempts(self, chunk: ChunkId) -> int:
        """Count how often a chunk was leased."""
        with self.database.read() as connection:
            return connection.execute(sa.select(CHUNKS.c.attempt).where(*_match_chunk(chunk))).scalar() or 0

    def lease(self, chunk: ChunkId, generation: int, *, attempts: int | None = None) -> LeasedChunk | None:
        """Lease a chunk; None where nothing is left to do: it is done, or its batch is over, which closes the chunk.

        None too if it was deferred or its batch was resumed since: then work of a later generation is in the queue.

        With `attempts`, leases only if nobody has leased the chunk since the caller counted them; else raises `LeasedElsewhere`.
        """
        with self.database.begin() as connection:
            batch = connection.execute(sa.select(BATCHES).where(BATCHES.c.id == chunk.batch)).one_or_none()
            if batch is None or batch.status == "paused_budget":
                return None
            waits = (*_match_chunk(chunk), ~CHUNKS.c.done, CHUNKS.c.generation == generation)
            row = connection.execute(sa.select(CHUNKS).where(*waits).with_for_update()).one_or_none()
            if row is None:
                return None
            if attempts not in (None, row.attempt):
                raise LeasedElsewhere
            if batch.status not in RUNNING_STATUSES:
                self._close(connection, chunk)
                return None
            done = _read_done(connection, chunk.batch, row.first, row.size)
            suspects = _find_suspects(row, done)
            values = _build_chunk_values(suspects, row) | {"attempt": row.attempt + 1, "under_way": True}
            connection.execute(sa.update(CHUNKS).where(*_match_chunk(chunk)).values(values))
            items = _list_items(row.first, _unpack_lines(row.payload, row.size), done)
            left_usd, left_questions = _find_left_to_spend(connection, batch)
        lease, spent = (
            Lease(chunk, row.attempt + 1),
            ChunkSpending(row.cost_usd, row.uncertain_usd, row.questions),
        )
        return LeasedChunk(lease, batch.tenant, items, left_usd, left_questions, spent, suspects)

    def mark_under_way(self, lease: Lease, suspects: Suspects) -> bool:
        """Record which items are about to begin; False if the lease no longer counts."""
        with self.database.begin() as connection:
            marked = sa.update(CHUNKS).where(*_match_lease(lease)).values(suspects=suspects.to_json())
            return connection.execute(marked).rowcount > 0

    def record(self, groups: Iterable[OutcomeRows]) -> list[bool]:
        """Record outcomes in one transaction; return for each group whether its lease counts. A refused group leaves no trace.

        Outcomes that were recorded before stay as they are.
        """
        with self.database.begin() as connection:
            found = [(group, self._select_new(connection, group)) for group in groups]
            rows = [(group.lease.chunk.batch, row) for group, new in found for row in new or ()]
            insert_rows(
                connection, RESULTS, _RESULT_COLUMNS, [(batch, one.position, one.ok, one.line) for batch, one in rows]
            )
            self._insert_label_items(connection, rows)
            listed = [build_item_row(batch, one.position, one.facts) for batch, one in rows if one.facts is not None]
            insert_rows(connection, ITEMS, ITEM_COLUMNS, listed)
            for batch in sorted({group.lease.chunk.batch for group, new in found if new}):
                connection.execute(_RESUME, {"of": batch})
            for group, new in found:
                if new is not None:
                    self._count(connection, group, new)
            return [new is not None for _, new in found]

    def _insert_label_items(self, connection: sa.Connection, rows: Iterable[tuple[str, OutcomeRow]]) -> None:
        by_batch: dict[str, list[tuple[ItemPlace, LabelItem]]] = {}
        for batch, row in rows:
            if row.label_items:
                place = name_batch_item(batch, row.position)
                by_batch.setdefault(batch, []).extend([(place, item) for item in row.label_items])
        for batch, items in by_batch.items():
            tenant: str = connection.execute(_SELECT_TENANT, {"of": batch}).scalar_one()
            insert_items(self.database, connection, tenant, items)

    def _select_new(self, connection: sa.Connection, group: OutcomeRows) -> list[OutcomeRow] | None:
        """Return the rows of a group that are not recorded yet; None if its lease no longer counts."""
        (batch, number), attempt = group.lease
        leased = connection.execute(_LOCK_LEASE, {"of": batch, "at": number, "opening": attempt}).one_or_none()
        if leased is None:
            return None
        if not group.rows:
            return []
        first, last = (which(row.position for row in group.rows) for which in (min, max))
        done = _read_done(connection, batch, first, last + 1 - first)
        return [row for row in group.rows if row.position not in done]

    def _count(self, connection: sa.Connection, group: OutcomeRows, new: Sequence[OutcomeRow]) -> None:
        chunk = group.lease.chunk
        completed = sum(row.ok for row in new)
        sums = {
            "more_completed": completed,
            "more_failed": len(new) - completed,
            "more_in": sum(row.tokens_in for row in new),
            "more_out": sum(row.tokens_out for row in new),
            "more_hits": sum(row.cache_hits for row in new),
            "spent": group.spent.usd,
            "uncertain": group.spent.uncertain_usd,
            "asked": group.spent.questions,
        }
        if connection.execute(_ADD_COUNTS, {"of": chunk.batch, "at": chunk.number, **sums}).scalar_one():
            self._close(connection, chunk)

    def defer(
        self,
        lease: Lease,
        *,
        delay: float,
        spent: ChunkSpending,
        pause: Pause | None = None,
        reason: str | None = None,
    ) -> int | None:
        """Leave a chunk for later, in `delay` seconds, and pause its batch where `pause` says so; return its new generation.

        None if the lease no longer counts. In a batch paused for its budget the chunk waits until the batch is resumed; in a
        batch that is over it is closed. `spent` covers the whole chunk.
        """
        with self.database.begin() as connection:
            batch = connection.execute(
                sa.select(BATCHES.c.status).where(BATCHES.c.id == lease.chunk.batch).with_for_update()
            ).scalar_one_or_none()
            generation = connection.execute(
                sa.update(CHUNKS)
                .where(*_match_lease(lease))
                .values(generation=CHUNKS.c.generation + 1, under_way=False, **_build_sums(spent))
                .returning(CHUNKS.c.generation)
            ).scalar_one_or_none()
            if generation is None:
                return None
            if batch not in RUNNING_STATUSES | {"paused_budget"}:
                self._close(connection, lease.chunk)
                return generation
            if pause is not None and batch in RUNNING_STATUSES:
                self._pause(connection, lease.chunk.batch, pause, delay, reason)
            if "paused_budget" not in (pause, batch):
                self._queue.enqueue_chunk(connection, *lease.chunk, generation=generation, delay=delay)
            return generation

    def _pause(self, connection: sa.Connection, batch: str, pause: Pause, delay: float, reason: str | None) -> None:
        resume_at = self.database.now() + delay if pause == "paused_provider" else None
        connection.execute(
            sa.update(BATCHES).where(BATCHES.c.id == batch).values(status=pause, reason=reason, resume_at=resume_at)
        )

    def close(self, lease: Lease, *, spent: ChunkSpending) -> bool:
        """Close a chunk of a cancelled or expired batch: its remaining items never run.

        `spent` as in `defer`. False if the lease no longer counts.
        """
        with self.database.begin() as connection:
            counts = connection.execute(
                sa.update(CHUNKS).where(*_match_lease(lease)).values(_build_sums(spent))
            ).rowcount
            if counts:
                self._close(connection, lease.chunk)
            return bool(counts)

    def find_over(self, batches: Iterable[str]) -> set[str]:
        """Return which of these batches must not be worked on any more."""
        candidates = set(batches)
        with self.database.read() as connection:
            running = sa.select(BATCHES.c.id).where(
                BATCHES.c.id.in_(candidates), BATCHES.c.status.in_(RUNNING_STATUSES)
            )
            return candidates - set(connection.execute(running).scalars())

    def _close(self, connection: sa.Connection, chunk: ChunkId) -> None:
        """Mark a chunk as done; end its batch after the last one, and in a serial batch enqueue the next one."""
        closed = sa.update(CHUNKS).where(*_match_chunk(chunk), ~CHUNKS.c.done).values(done=True, under_way=False)
        if not connection.execute(closed).rowcount:
            return
        batch = connection.execute(
            sa.update(BATCHES)
            .where(BATCHES.c.id == chunk.batch)
            .values(open_chunks=BATCHES.c.open_chunks - 1)
            .returning(BATCHES.c.open_chunks, BATCHES.c.serial, BATCHES.c.status)
        ).one()
        if not batch.open_chunks:
            connection.execute(
                sa.update(BATCHES)
                .where(BATCHES.c.id == chunk.batch)
                .values(status="finalizing", reason=None, resume_at=None)
            )
            self._queue.enqueue_finish(connection, chunk.batch)
        elif batch.serial:
            self._enqueue_next(connection, chunk.batch)

    def _enqueue_next(self, connection: sa.Connection, batch: str) -> None:
        following = connection.execute(
            sa.select(CHUNKS.c.number, CHUNKS.c.generation)
            .where(CHUNKS.c.batch == batch, ~CHUNKS.c.done)
            .order_by(CHUNKS.c.number)
            .limit(1)
        ).one()
        self._queue.enqueue_chunk(connection, batch, following.number, generation=following.generation)


def _find_suspects(row: sa.Row[Any], done: set[int]) -> Suspects:
    """Return what is known of deaths under a chunk; one that is still under way was left by a worker that died."""
    known = parse_suspects(row.deaths, row.suspects)
    return known.add_death(_find_left(row, done)) if row.under_way else known


def _build_chunk_values(suspects: Suspects, row: sa.Row[Any]) -> dict[str, object]:
    given_up = len(suspects.find_quarantined(range(row.first, row.first + row.size)))
    return {"deaths": suspects.deaths, "suspects": suspects.to_json(), "quarantined": given_up}


def _find_left(row: sa.Row[Any], done: set[int]) -> set[int]:
    return set(range(row.first, row.first + row.size)) - done


def _match_chunk(chunk: ChunkId) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    return CHUNKS.c.batch == chunk.batch, CHUNKS.c.number == chunk.number


def _match_lease(lease: Lease) -> tuple[sa.ColumnElement[bool], ...]:
    return (*_match_chunk(lease.chunk), CHUNKS.c.attempt == lease.attempt, ~CHUNKS.c.done)


def _read_done(connection: sa.Connection, batch: str, first: int, size: int) -> set[int]:
    return set(connection.execute(_SELECT_DONE, {"of": batch, "start": first, "end": first + size}).scalars())


def _unpack_lines(payload: bytes | None, size: int) -> list[bytes]:
    """Inflate the lines of the items; if the payload is damaged, return empty ones, which become errors of their own."""
    try:
        lines = zlib.decompress(payload or b"").splitlines()
    except zlib.error:
        lines = []
    return lines if len(lines) == size else [b""] * size


def _list_items(first: int, lines: Sequence[bytes], done: set[int]) -> tuple[ChunkItem, ...]:
    return tuple([ChunkItem(first + n, line) for n, line in enumerate(lines) if first + n not in done])


def _build_sums(spent: ChunkSpending) -> dict[str, float]:
    return {"cost_usd": spent.usd, "uncertain_usd": spent.uncertain_usd, "questions": spent.questions}


def _find_left_to_spend(connection: sa.Connection, batch: sa.Row[Any]) -> tuple[float | None, int | None]:
    """Return the dollars and the questions that a batch has left; None where it has no such limit.

    Counts what it may have cost without a bill, and what it may have asked.
    """
    if (batch.budget_usd, batch.max_questions) == (None, None):
        return None, None
    usd, questions = connection.execute(
        sa.select(
            sa.func.sum(CHUNKS.c.cost_usd + CHUNKS.c.uncertain_usd).label("usd"),
            sa.func.sum(CHUNKS.c.questions).label("questions"),
        ).where(CHUNKS.c.batch == batch.id)
    ).one()
    return (
        None if batch.budget_usd is None else max(0.0, batch.budget_usd - usd),
        None if batch.max_questions is None else max(0, batch.max_questions - int(questions)),
    )
