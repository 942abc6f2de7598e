"""Chunks of batches as a worker sees them: opening, recording results exactly once, putting off, closing.

Opening a chunk raises its attempt number. Whoever writes names the number it was given, and is refused where another has
opened the chunk since: a replica that was frozen and wakes up cannot record over the one that took its work over.
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

RUNNING = frozenset({"in_progress", "paused_provider"})
"""The states of a batch whose items may be worked on."""


# What runs for each commit of results is built once: building a statement takes longer than running it.

_THIS = (CHUNKS.c.batch == sa.bindparam("of"), CHUNKS.c.number == sa.bindparam("at"))

_HELD = (
    sa.select(CHUNKS.c.number)
    .where(*_THIS, CHUNKS.c.attempt == sa.bindparam("opening"), ~CHUNKS.c.done)
    .with_for_update()
)

_DONE = sa.select(RESULTS.c.position).where(
    RESULTS.c.batch == sa.bindparam("of"),
    RESULTS.c.position >= sa.bindparam("start"),
    RESULTS.c.position < sa.bindparam("end"),
)

_COUNTED = (
    sa.update(CHUNKS)
    .where(*_THIS)
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
"""Adds to the sums of a chunk; tells whether all of it is there."""

_RESULT = ("batch", "position", "ok", "line")

_TENANT = sa.select(BATCHES.c.tenant).where(BATCHES.c.id == sa.bindparam("of"))

_RESUMED = (
    sa.update(BATCHES)
    .where(BATCHES.c.id == sa.bindparam("of"), BATCHES.c.status == "paused_provider")
    .values(status="in_progress", reason=None, resume_at=None)
)
"""A batch of which something was recorded does not wait any more."""


class Chunks:
    """The chunks in a database. What comes next is put into `queue` in the same transaction."""

    def __init__(self, database: Database, queue: Queue) -> None:
        self.database = database
        self._queue = queue

    def count_openings(self, chunk: ChunkId) -> int:
        """How often a chunk was opened."""
        with self.database.read() as connection:
            return connection.execute(sa.select(CHUNKS.c.attempt).where(*_match_chunk(chunk))).scalar() or 0

    def open(self, chunk: ChunkId, generation: int, *, openings: int | None = None) -> LeasedChunk | None:
        """Opens a chunk; None where nothing is to be done: it is done, or its batch is over, and then it is closed.

        None too where it was put off since, or its batch resumed: then work of a later generation is in the queue.

        With `openings`, only where nobody has opened it since the caller counted them; else raises `LeasedElsewhere`.
        """
        with self.database.begin() as connection:
            batch = connection.execute(sa.select(BATCHES).where(BATCHES.c.id == chunk.batch)).one_or_none()
            if batch is None or batch.status == "paused_budget":
                return None
            waits = (*_match_chunk(chunk), ~CHUNKS.c.done, CHUNKS.c.generation == generation)
            found = connection.execute(sa.select(CHUNKS).where(*waits).with_for_update()).one_or_none()
            if found is None:
                return None
            if openings not in (None, found.attempt):
                raise LeasedElsewhere
            if batch.status not in RUNNING:
                self._close(connection, chunk)
                return None
            done = _read_done(connection, chunk.batch, found.first, found.size)
            suspects = _find_suspects(found, done)
            values = _build_chunk_values(suspects, found) | {"attempt": found.attempt + 1, "under_way": True}
            connection.execute(sa.update(CHUNKS).where(*_match_chunk(chunk)).values(values))
            items = _list_items(found.first, _unpack_lines(found.payload, found.size), done)
            left_usd, left_questions = _find_left_to_spend(connection, batch)
        hold, spent = (
            Lease(chunk, found.attempt + 1),
            ChunkSpending(found.cost_usd, found.uncertain_usd, found.questions),
        )
        return LeasedChunk(hold, batch.tenant, items, left_usd, left_questions, spent, suspects)

    def mark(self, hold: Lease, suspects: Suspects) -> bool:
        """Writes down which items are about to be begun; False where the opening does not count any more."""
        with self.database.begin() as connection:
            marked = sa.update(CHUNKS).where(*_match_lease(hold)).values(suspects=suspects.as_json())
            return connection.execute(marked).rowcount > 0

    def record(self, groups: Iterable[OutcomeRows]) -> list[bool]:
        """Records outcomes in one transaction; for each group whether its opening still counts. A refused group leaves nothing.

        An item that was recorded before is left as it is.
        """
        with self.database.begin() as connection:
            found = [(group, self._select_new(connection, group)) for group in groups]
            rows = [(group.hold.chunk.batch, row) for group, new in found for row in new or ()]
            insert_rows(connection, RESULTS, _RESULT, [(batch, one.position, one.ok, one.line) for batch, one in rows])
            self._insert_label_items(connection, rows)
            listed = [build_item_row(batch, one.position, one.facts) for batch, one in rows if one.facts is not None]
            insert_rows(connection, ITEMS, ITEM_COLUMNS, listed)
            for batch in sorted({group.hold.chunk.batch for group, new in found if new}):
                connection.execute(_RESUMED, {"of": batch})
            for group, new in found:
                if new is not None:
                    self._count(connection, group, new)
            return [new is not None for _, new in found]

    def _insert_label_items(self, connection: sa.Connection, rows: Iterable[tuple[str, OutcomeRow]]) -> None:
        by_batch: dict[str, list[tuple[ItemPlace, LabelItem]]] = {}
        for batch, row in rows:
            if row.labelled:
                place = name_batch_item(batch, row.position)
                by_batch.setdefault(batch, []).extend([(place, item) for item in row.labelled])
        for batch, items in by_batch.items():
            tenant: str = connection.execute(_TENANT, {"of": batch}).scalar_one()
            insert_items(self.database, connection, tenant, items)

    def _select_new(self, connection: sa.Connection, group: OutcomeRows) -> list[OutcomeRow] | None:
        """What of a group is not recorded yet; None where its opening does not count any more."""
        (batch, number), attempt = group.hold
        held = connection.execute(_HELD, {"of": batch, "at": number, "opening": attempt}).one_or_none()
        if held is None:
            return None
        if not group.rows:
            return []
        first, last = (which(row.position for row in group.rows) for which in (min, max))
        done = _read_done(connection, batch, first, last + 1 - first)
        return [row for row in group.rows if row.position not in done]

    def _count(self, connection: sa.Connection, group: OutcomeRows, new: Sequence[OutcomeRow]) -> None:
        chunk = group.hold.chunk
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
        if connection.execute(_COUNTED, {"of": chunk.batch, "at": chunk.number, **sums}).scalar_one():
            self._close(connection, chunk)

    def put_off(
        self,
        hold: Lease,
        *,
        delay: float,
        spent: ChunkSpending,
        pause: Pause | None = None,
        reason: str | None = None,
    ) -> int | None:
        """Leaves a chunk for later, in `delay` seconds, with its batch paused where `pause` says so. Its new generation.

        None where the opening does not count any more. A chunk of a batch that is paused for its budget waits until it is
        resumed, one of a batch that is over is closed. `spent`: on the whole chunk.
        """
        with self.database.begin() as connection:
            batch = connection.execute(
                sa.select(BATCHES.c.status).where(BATCHES.c.id == hold.chunk.batch).with_for_update()
            ).scalar_one_or_none()
            generation = connection.execute(
                sa.update(CHUNKS)
                .where(*_match_lease(hold))
                .values(generation=CHUNKS.c.generation + 1, under_way=False, **_build_sums(spent))
                .returning(CHUNKS.c.generation)
            ).scalar_one_or_none()
            if generation is None:
                return None
            if batch not in RUNNING | {"paused_budget"}:
                self._close(connection, hold.chunk)
                return generation
            if pause is not None and batch in RUNNING:
                self._pause(connection, hold.chunk.batch, pause, delay, reason)
            if "paused_budget" not in (pause, batch):
                self._queue.enqueue_chunk(connection, *hold.chunk, generation=generation, delay=delay)
            return generation

    def _pause(self, connection: sa.Connection, batch: str, pause: Pause, delay: float, reason: str | None) -> None:
        resume_at = self.database.now() + delay if pause == "paused_provider" else None
        connection.execute(
            sa.update(BATCHES).where(BATCHES.c.id == batch).values(status=pause, reason=reason, resume_at=resume_at)
        )

    def close(self, hold: Lease, *, spent: ChunkSpending) -> bool:
        """Closes a chunk of a batch that was cancelled or has expired: its other items are not run.

        `spent` as in `put_off`. False where the opening does not count any more.
        """
        with self.database.begin() as connection:
            counts = connection.execute(
                sa.update(CHUNKS).where(*_match_lease(hold)).values(_build_sums(spent))
            ).rowcount
            if counts:
                self._close(connection, hold.chunk)
            return bool(counts)

    def ending(self, batches: Iterable[str]) -> set[str]:
        """Which of these batches are not to be worked on any more."""
        wanted = set(batches)
        with self.database.read() as connection:
            running = sa.select(BATCHES.c.id).where(BATCHES.c.id.in_(wanted), BATCHES.c.status.in_(RUNNING))
            return wanted - set(connection.execute(running).scalars())

    def _close(self, connection: sa.Connection, chunk: ChunkId) -> None:
        """Marks a chunk as done; the last one ends its batch, and one of a serial batch is followed by the next."""
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


def _find_suspects(found: sa.Row[Any], done: set[int]) -> Suspects:
    """What is known of deaths under a chunk that is opened: one that is under way was left by a worker that died."""
    known = parse_suspects(found.deaths, found.suspects)
    return known.after_death(_find_left(found, done)) if found.under_way else known


def _build_chunk_values(suspects: Suspects, found: sa.Row[Any]) -> dict[str, object]:
    given_up = len(suspects.find_quarantined(range(found.first, found.first + found.size)))
    return {"deaths": suspects.deaths, "suspects": suspects.as_json(), "quarantined": given_up}


def _find_left(found: sa.Row[Any], done: set[int]) -> set[int]:
    return set(range(found.first, found.first + found.size)) - done


def _match_chunk(chunk: ChunkId) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    return CHUNKS.c.batch == chunk.batch, CHUNKS.c.number == chunk.number


def _match_lease(hold: Lease) -> tuple[sa.ColumnElement[bool], ...]:
    return (*_match_chunk(hold.chunk), CHUNKS.c.attempt == hold.attempt, ~CHUNKS.c.done)


def _read_done(connection: sa.Connection, batch: str, first: int, size: int) -> set[int]:
    return set(connection.execute(_DONE, {"of": batch, "start": first, "end": first + size}).scalars())


def _unpack_lines(payload: bytes | None, size: int) -> list[bytes]:
    """The items' lines; empty ones, which are told as what is wrong with them, where the payload is damaged."""
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
    """The dollars and the questions that a batch has left; None where it has no limit of them.

    What it may have cost of which no bill came counts, and what it may have asked.
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
