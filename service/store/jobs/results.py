"""The results and errors of a batch, in the order of its items, during the run and afterwards.

A window of a running batch ends at its front, the first item without an outcome: so the same offset always gives the same
bytes. Lines come in pages, each read on its own: a slow reader holds no lock and little memory.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from service.errors import UnknownJobError
from service.problems import PROBLEM, ProblemDetails
from service.store.database import Database
from service.store.jobs.batches import Batch
from service.store.tables import BATCHES, CHUNKS, RESULTS

PAGE_LINES = 64
"""Lines that are read at a time."""

NEVER_RUN_PROBLEMS = {
    "cancelled": ProblemDetails(
        "about:blank", "Cancelled", 409, "the batch was cancelled before this item was run", ()
    ),
    "expired": ProblemDetails("about:blank", "Expired", 504, "the batch was not done by its deadline", ()),
}
"""The problem of an item that was never run, by the status of its batch."""


@dataclass(frozen=True, slots=True)
class Window:
    """Items of a batch, by position: from `start` up to `end`, exclusive."""

    start: int
    end: int
    complete: bool
    """Whether nothing will ever follow."""


def find_window(database: Database, batch: Batch, *, offset: int = 0, limit: int | None = None) -> Window:
    """Find the readable part of at most `limit` items from `offset` on; empty if the batch is not that far.

    `batch` may be out of date: at least what was readable then is included.
    """
    total = batch.request_counts.total
    front = total if batch.ended else _find_front(database, batch.id, total)
    end = front if limit is None else min(front, offset + limit)
    end = max(end, offset)
    return Window(offset, end, complete=batch.ended and end >= total)


def read_result_pages(database: Database, batch: Batch, window: Window) -> Generator[bytes]:
    """Yield the lines of the items that were scored. Raises UnknownJobError if the batch is deleted meanwhile."""
    yield from _read_pages(database, batch.id, True, window.start, window.end)
    _check_there(database, batch.id)


def read_error_pages(database: Database, batch: Batch, window: Window) -> Generator[bytes]:
    """Yield the lines of the items that failed; in an ended batch, also those of the items that were never run."""
    at = window.start
    for first, size in _find_unfinished(database, batch.id, window) if batch.status in NEVER_RUN_PROBLEMS else ():
        yield from _read_pages(database, batch.id, False, at, first)
        at = max(at, first)
        end = min(first + size, window.end)
        yield _merge_errors(database, batch, first, at, end)
        at = end
    yield from _read_pages(database, batch.id, False, at, window.end)
    _check_there(database, batch.id)


def _find_front(database: Database, batch_id: str, total: int) -> int:
    """Return the position of the first item without an outcome."""
    unfinished = sa.select(CHUNKS.c.first, CHUNKS.c.size).where(*_is_unfinished(batch_id))
    with database.read() as connection:
        chunk = connection.execute(unfinished.order_by(CHUNKS.c.first).limit(1)).one_or_none()
        if chunk is None:
            return total
        there = _read_positions(connection, batch_id, chunk.first, chunk.first + chunk.size)
    return next(n for n in range(chunk.first, chunk.first + chunk.size + 1) if n not in there)


def _is_unfinished(batch_id: str) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    return CHUNKS.c.batch == batch_id, CHUNKS.c.completed + CHUNKS.c.failed < CHUNKS.c.size


def _find_unfinished(database: Database, batch_id: str, window: Window) -> list[tuple[int, int]]:
    """List first position and size of the chunks in a window that have items never run."""
    within = (CHUNKS.c.first < window.end, CHUNKS.c.first + CHUNKS.c.size > window.start)
    chosen = sa.select(CHUNKS.c.first, CHUNKS.c.size).where(*_is_unfinished(batch_id), *within)
    with database.read() as connection:
        return [(row.first, row.size) for row in connection.execute(chosen.order_by(CHUNKS.c.first))]


def _read_positions(connection: sa.Connection, batch_id: str, start: int, end: int) -> set[int]:
    chosen = sa.select(RESULTS.c.position).where(*_match_between(batch_id, start, end))
    return set(connection.execute(chosen).scalars())


def _match_between(batch_id: str, start: int, end: int) -> tuple[sa.ColumnElement[bool], ...]:
    return RESULTS.c.batch == batch_id, RESULTS.c.position >= start, RESULTS.c.position < end


def _read_pages(database: Database, batch_id: str, ok: bool, start: int, end: int) -> Generator[bytes]:  # noqa: FBT001
    """Yield pages of recorded lines."""
    lines = sa.select(RESULTS.c.position, RESULTS.c.line).order_by(RESULTS.c.position).limit(PAGE_LINES)
    while start < end:
        with database.read() as connection:
            rows = connection.execute(lines.where(*_match_between(batch_id, start, end), RESULTS.c.ok == ok)).all()
        if rows:
            yield _join_lines([row.line for row in rows])
        start = rows[-1].position + 1 if len(rows) == PAGE_LINES else end


def _merge_errors(database: Database, batch: Batch, first: int, start: int, end: int) -> bytes:
    """Render the errors of a part of one chunk, with a line for each item that was never run."""
    with database.read() as connection:
        there = _read_positions(connection, batch.id, start, end)
        rows: Any = connection.execute(
            sa.select(RESULTS.c.position, RESULTS.c.line).where(*_match_between(batch.id, start, end), ~RESULTS.c.ok)
        )
        lines = {row.position: row.line for row in rows}
        payload = connection.execute(
            sa.select(CHUNKS.c.payload).where(CHUNKS.c.batch == batch.id, CHUNKS.c.first == first)
        ).scalar_one_or_none()
    if payload is None:  # deleted meanwhile, which is raised at the end
        return b""
    for n, item in enumerate(zlib.decompress(payload).splitlines(), start=first):
        if start <= n < end and n not in there:
            lines[n] = _render_never_run(batch, n, item)
    return _join_lines([lines[n] for n in sorted(lines)])


def _render_never_run(batch: Batch, position: int, item: bytes) -> str:
    custom_id = json.dumps(json.loads(item)["custom_id"], ensure_ascii=False)
    error = PROBLEM.dump_json(NEVER_RUN_PROBLEMS[batch.status]).decode()
    return f'{{"custom_id":{custom_id},"index":{position},"error":{error}}}'


def _join_lines(lines: list[str]) -> bytes:
    return "".join([f"{line}\n" for line in lines]).encode()


def _check_there(database: Database, batch_id: str) -> None:
    with database.read() as connection:
        if connection.execute(sa.select(BATCHES.c.id).where(BATCHES.c.id == batch_id)).one_or_none() is None:
            raise UnknownJobError("the batch was deleted while it was read")
