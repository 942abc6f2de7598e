"""The results and errors of a batch, in the order of its items, during the run and afterwards.

A window of a running batch ends at its front, the first item without an outcome: so the same offset always gives the same
bytes. Lines come in pages, each read on its own: a slow reader holds no lock and little memory.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass

import sqlalchemy as sa

from service.errors import UnknownJobError
from service.problem_types import NO_REPORT
from service.problems import PROBLEM, ProblemDetails
from service.store.database import Database
from service.store.jobs.jobs import Batch
from service.store.labelling.items import unpack_lines
from service.store.tables import BATCHES, CHUNKS, RESULTS

PAGE_LINES = 64
"""Lines that are read at a time."""

NEVER_RUN_PROBLEMS = {
    "cancelled": ProblemDetails(NO_REPORT, "Cancelled", 409, "the batch was cancelled before this item was run", ()),
    "expired": ProblemDetails(NO_REPORT, "Expired", 504, "the batch was not done by its deadline", ()),
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
    if batch.status in NEVER_RUN_PROBLEMS:
        within = (CHUNKS.c.first < window.end, CHUNKS.c.first + CHUNKS.c.size > window.start)
        for first, size in _list_unfinished(database, batch.id, *within):
            yield from _read_pages(database, batch.id, False, at, first)
            at, end = max(at, first), min(first + size, window.end)
            yield _merge_errors(database, batch, first, range(at, end))
            at = end
    yield from _read_pages(database, batch.id, False, at, window.end)
    _check_there(database, batch.id)


def _find_front(database: Database, batch_id: str, total: int) -> int:
    """Return the position of the first item without an outcome."""
    first, size = next(iter(_list_unfinished(database, batch_id, limit=1)), (total, 0))
    done = set(
        database.read_column(sa.select(RESULTS.c.position).where(*_match_between(batch_id, first, first + size)))
    )
    return next(n for n in range(first, first + size + 1) if n not in done)


def _list_unfinished(
    database: Database, batch_id: str, *within: sa.ColumnElement[bool], limit: int | None = None
) -> list[tuple[int, int]]:
    """List first position and size of the chunks that have items without an outcome."""
    left = (CHUNKS.c.batch == batch_id, CHUNKS.c.completed + CHUNKS.c.failed < CHUNKS.c.size)
    chosen = sa.select(CHUNKS.c.first, CHUNKS.c.size).where(*left, *within).order_by(CHUNKS.c.first).limit(limit)
    return [(row["first"], row["size"]) for row in database.read_rows(chosen)]


def _match_between(batch_id: str, start: int, end: int) -> tuple[sa.ColumnElement[bool], ...]:
    return RESULTS.c.batch == batch_id, RESULTS.c.position >= start, RESULTS.c.position < end


def _read_pages(database: Database, batch_id: str, ok: bool, start: int, end: int) -> Generator[bytes]:  # noqa: FBT001
    lines = sa.select(RESULTS.c.position, RESULTS.c.line).order_by(RESULTS.c.position).limit(PAGE_LINES)
    while start < end:
        rows = database.read_rows(lines.where(*_match_between(batch_id, start, end), RESULTS.c.ok == ok))
        if rows:
            yield _join_lines([row["line"] for row in rows])
        start = rows[-1]["position"] + 1 if len(rows) == PAGE_LINES else end


def _merge_errors(database: Database, batch: Batch, first: int, part: range) -> bytes:
    """Render the errors of a part of one chunk, with a line for each item that was never run."""
    rows = database.read_rows(sa.select(RESULTS).where(*_match_between(batch.id, part.start, part.stop)))
    lines: dict[int, str | None] = {row["position"]: None if row["ok"] else row["line"] for row in rows}
    payload = database.read_column(
        sa.select(CHUNKS.c.payload).where(CHUNKS.c.batch == batch.id, CHUNKS.c.first == first)
    )
    error = PROBLEM.dump_json(NEVER_RUN_PROBLEMS[batch.status]).decode()
    for n, item in enumerate(unpack_lines(next(iter(payload), None)), start=first):  # none of a batch deleted meanwhile
        if n in part and n not in lines:
            custom_id = json.dumps(json.loads(item)["custom_id"], ensure_ascii=False)
            lines[n] = f'{{"custom_id":{custom_id},"index":{n},"error":{error}}}'
    return _join_lines([line for _, line in sorted(lines.items()) if line is not None])


def _join_lines(lines: list[str]) -> bytes:
    return "".join([f"{line}\n" for line in lines]).encode()


def _check_there(database: Database, batch_id: str) -> None:
    if database.read_row(sa.select(BATCHES.c.id).where(BATCHES.c.id == batch_id)) is None:
        raise UnknownJobError("the batch was deleted while it was read")
