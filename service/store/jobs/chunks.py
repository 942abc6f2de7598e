"""The life of a chunk. Its row is its entry in the work queue, and one transaction each takes it a step further.

| from | to | by |
|---|---|---|
| - | ready | submission; the last chunk of a batch adds the row `finish`, the end of a job with a webhook the row `notice` |
| ready | running | `claim`, which raises `attempt` |
| running | ready | `put_off`, by the owner; or `Workers.reclaim`, where the owner's beats stand still |
| running | done | `record`, with the last outcome; `put_off`, in a batch that is over |
| ready | done | `Jobs.cancel` and `Jobs.expire_due` |
| done | ready | `Jobs.retry` |

Every write of a worker names the attempt that it belongs to, and is refused if the chunk is no longer its own: one that was
frozen and wakes up cannot write over the one that took over its work. Locks are taken in one order, chunks before their batch;
what users do (`Jobs`) locks the batch first, and no chunk that is running.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from service.store.access.usage import COLUMNS, UsageAmount
from service.store.bulk import insert_rows
from service.store.database import Database
from service.store.jobs.items import ITEM_COLUMNS, build_item_row
from service.store.jobs.job import PAUSED_STATUSES
from service.store.jobs.leases import ChunkItem, ClaimedChunk, Lease, OutcomeRow, OutcomeRows, Pause
from service.store.jobs.submission import DEFLATE_LEVEL, build_chunk_values
from service.store.labelling.drafts import LabelItem
from service.store.labelling.items import ItemPlace, insert_items, name_batch_item
from service.store.tables import BATCH_USAGE, BATCHES, CHUNKS, ITEMS, RESULTS

RUNNING_STATUSES = frozenset({"in_progress", "paused_provider"})
"""The states of a batch whose items may run."""

SPLIT_DEATHS = 2
"""Deaths after which a chunk is replaced by chunks of one item: the second death was its own."""

SHORTLY_S = 1.0
"""Seconds until a chunk is tried again that waits for what other workers have reserved of a budget."""

FINISH, NOTICE = -1, -2
"""The `first` of the rows that end a batch and that tell of its end."""


# Statements that run for each commit of results are built once: building one takes longer than running it.

_IS_LEASED = (
    CHUNKS.c.batch == sa.bindparam("of"),
    CHUNKS.c.first == sa.bindparam("at"),
    CHUNKS.c.attempt == sa.bindparam("claim"),
    CHUNKS.c.state == "running",
)

_LOCK_LEASE = sa.select(CHUNKS.c.first).where(*_IS_LEASED).with_for_update()

_SELECT_DONE = sa.select(RESULTS.c.position, RESULTS.c.ok).where(
    RESULTS.c.batch == sa.bindparam("of"),
    RESULTS.c.position >= sa.bindparam("start"),
    RESULTS.c.position < sa.bindparam("end"),
)

_COMPLETED = CHUNKS.c.completed + sa.bindparam("more_completed", type_=sa.Integer)
_FAILED = CHUNKS.c.failed + sa.bindparam("more_failed", type_=sa.Integer)
_IS_FULL = CHUNKS.c.size == _COMPLETED + _FAILED
_COUNT = (
    sa.update(CHUNKS)
    .where(*_IS_LEASED)
    .values(
        completed=_COMPLETED,
        failed=_FAILED,
        state=sa.case((_IS_FULL, "done"), else_=CHUNKS.c.state),
        owner=sa.case((_IS_FULL, None), else_=CHUNKS.c.owner),
    )
    .returning(CHUNKS.c.state)
)

_WRITE_USED = (
    sa.update(BATCH_USAGE)
    .where(BATCH_USAGE.c.batch == sa.bindparam("of"), BATCH_USAGE.c.owner == sa.bindparam("by"))
    .values({name: sa.bindparam(f"new_{name}") for name in COLUMNS})
)

_RESULT_COLUMNS = ("batch", "position", "ok", "line")

_SELECT_TENANT = sa.select(BATCHES.c.tenant).where(BATCHES.c.id == sa.bindparam("of"))

_RESUME = (
    sa.update(BATCHES)
    .where(BATCHES.c.id == sa.bindparam("of"), BATCHES.c.status == "paused_provider")
    .values(status="in_progress", reason=None, resume_at=None)
)
"""Resumes a batch that waited for its provider: something of it was recorded."""


class Chunks:
    """The chunks in a database, as one worker sees them. Every method blocks on the database."""

    def __init__(self, database: Database, owner: str, *, judges: bool = True) -> None:
        """`owner`: the name of the worker; `judges`: whether it takes chunks that wait for judges or a sandbox."""
        self.database = database
        self.owner = owner
        self._judges = judges
        self._refusing: dict[str, tuple[float | None, int | None] | None] = {}
        """By batch, the limits that last refused this worker something; None: they have allowed something since."""

    # Claims.

    def claim(self, *, idle: bool = True) -> ClaimedChunk | Literal["alone"] | None:
        """Claim the next chunk; None if none is due.

        Next is the tenant with the fewest running chunks, of its batches the one with the fewest, of these the oldest.
        `idle`: whether this worker runs no chunk, so that one that must run alone may begin. "alone" if it is not and such a
        chunk is next: it lets the others end first.
        """
        with self.database.read() as connection:
            batch = connection.execute(self._build_pick()).scalar()
        if batch is None:
            return None
        with self.database.begin() as connection:
            return self._claim(connection, batch, idle=idle)

    def _build_pick(self) -> sa.Select[str]:
        busy = (
            sa.select(CHUNKS.c.batch, BATCHES.c.tenant, sa.func.count().label("n"))
            .join_from(CHUNKS, BATCHES, CHUNKS.c.batch == BATCHES.c.id)
            .where(CHUNKS.c.state == "running")
            .group_by(CHUNKS.c.batch, BATCHES.c.tenant)
            .cte("busy")
        )
        count = sa.select(sa.func.coalesce(sa.func.sum(busy.c.n), 0))
        of_tenant = count.where(busy.c.tenant == BATCHES.c.tenant).correlate(BATCHES).scalar_subquery()
        of_batch = count.where(busy.c.batch == BATCHES.c.id).correlate(BATCHES).scalar_subquery()
        due = sa.exists().where(CHUNKS.c.batch == BATCHES.c.id, *self._match_due())
        chosen = sa.select(BATCHES.c.id).where(BATCHES.c.status.in_(RUNNING_STATUSES), due)
        return chosen.order_by(of_tenant, of_batch, BATCHES.c.id).limit(1)

    def _match_due(self) -> list[sa.ColumnElement[bool]]:
        due = [CHUNKS.c.state == "ready", CHUNKS.c.due_at <= self.database.now()]
        return due if self._judges else [*due, ~CHUNKS.c.waits]

    def _claim(self, connection: sa.Connection, name: str, *, idle: bool) -> ClaimedChunk | Literal["alone"] | None:
        running = sa.select(BATCHES).where(BATCHES.c.id == name, BATCHES.c.status.in_(RUNNING_STATUSES))
        batch = connection.execute(running.with_for_update(read=True, key_share=True)).one_or_none()
        due = sa.select(CHUNKS).where(CHUNKS.c.batch == name, *self._match_due()).order_by(CHUNKS.c.first)
        row = batch and connection.execute(due.limit(1).with_for_update(skip_locked=True)).one_or_none()
        if batch is None or row is None:  # others were faster
            return None
        if row.deaths and not idle:
            return "alone"
        done = _read_done(connection, name, row.first, row.size)
        lines = _unpack_lines(row.payload, row.size)
        if row.deaths >= SPLIT_DEATHS and row.size > 1:
            _split(connection, row, lines, done)
            return self._claim(connection, name, idle=idle)
        values = {"state": "running", "owner": self.owner, "attempt": row.attempt + 1}
        connection.execute(sa.update(CHUNKS).where(*_match_row(row)).values(values))
        insert = sqlite.insert if self.database.is_sqlite else postgresql.insert
        nothing = {"batch": name, "owner": self.owner} | asdict(UsageAmount())
        connection.execute(insert(BATCH_USAGE).values(nothing).on_conflict_do_nothing())
        items = tuple([ChunkItem(n, line) for n, line in enumerate(lines, start=row.first) if n not in done])
        lease = Lease(name, row.first, row.attempt + 1)
        return ClaimedChunk(lease, batch.tenant, items, row.size, row.deaths, json.loads(batch.options))

    def list_owned(self) -> frozenset[Lease]:
        """List the leases of this worker that count: also of rows that are no chunks."""
        columns = (CHUNKS.c.batch, CHUNKS.c.first, CHUNKS.c.attempt)
        owned = sa.select(*columns).where(CHUNKS.c.owner == self.owner, CHUNKS.c.state == "running")
        with self.database.read() as connection:
            return frozenset([Lease(*row) for row in connection.execute(owned)])

    # Outcomes.

    def record(self, groups: Iterable[OutcomeRows]) -> list[bool]:
        """Record outcomes in one transaction; return for each group whether its lease counts. A refused group leaves no trace.

        Outcomes that were recorded before stay as they are. What was used was used, whether or not the lease counts.
        """
        given = list(groups)
        with self.database.begin() as connection:
            found = {
                group.lease: self._select_new(connection, group) for group in sorted(given, key=lambda one: one.lease)
            }
            rows = [(lease.batch, row) for lease, new in found.items() for row in new or ()]
            lines = [(batch, row.position, row.ok, row.line) for batch, row in rows]
            insert_rows(connection, RESULTS, _RESULT_COLUMNS, lines)
            self._insert_label_items(connection, rows)
            listed = [build_item_row(batch, row.position, row.facts) for batch, row in rows if row.facts is not None]
            insert_rows(connection, ITEMS, ITEM_COLUMNS, listed)
            for group in given:
                self._write_used(connection, group.lease.batch, group.used)
            full = [lease.batch for lease, new in found.items() if new and _count(connection, lease, new)]
            for batch in sorted({lease.batch for lease, new in found.items() if new}):
                connection.execute(_RESUME, {"of": batch})
                if batch in full:
                    close_chunks(connection, batch, full.count(batch))
            return [found[group.lease] is not None for group in given]

    def _select_new(self, connection: sa.Connection, group: OutcomeRows) -> list[OutcomeRow] | None:
        """Return the rows of a group that are not recorded yet; None if its lease no longer counts."""
        if connection.execute(_LOCK_LEASE, _bind(group.lease)).one_or_none() is None:
            return None
        if not group.rows:
            return []
        first, last = (which(row.position for row in group.rows) for which in (min, max))
        done = _read_done(connection, group.lease.batch, first, last + 1 - first)
        return [row for row in group.rows if row.position not in done]

    def _insert_label_items(self, connection: sa.Connection, rows: Iterable[tuple[str, OutcomeRow]]) -> None:
        by_batch: dict[str, list[tuple[ItemPlace, LabelItem]]] = {}
        for batch, row in rows:
            if row.label_items:
                place = name_batch_item(batch, row.position)
                by_batch.setdefault(batch, []).extend([(place, item) for item in row.label_items])
        for batch, items in by_batch.items():
            tenant: str = connection.execute(_SELECT_TENANT, {"of": batch}).scalar_one()
            insert_items(self.database, connection, tenant, items)

    # What a batch may spend.

    def read_used(self, batch: str) -> UsageAmount:
        """Return what this worker has used for a batch of which it has claimed a chunk."""
        chosen = sa.select(*[BATCH_USAGE.c[name] for name in COLUMNS])
        with self.database.read() as connection:
            own = (BATCH_USAGE.c.batch == batch, BATCH_USAGE.c.owner == self.owner)
            row = connection.execute(chosen.where(*own)).one_or_none()
        return UsageAmount() if row is None else UsageAmount(*row)

    def hold(self, batch: str, used: UsageAmount) -> Literal["budget_usd", "max_questions"] | None:
        """Write what this worker has used and reserves, unless that passes a limit of the batch: then return which one."""
        with self.database.begin() as connection:
            limits = sa.select(BATCHES.c.budget_usd, BATCHES.c.max_questions).where(BATCHES.c.id == batch)
            row = connection.execute(limits.with_for_update()).one_or_none()
            if row is None:  # it was deleted
                return "max_questions"
            usd, questions = _sum_others(connection, batch, self.owner)
            self._refusing[batch] = row.budget_usd, row.max_questions
            if row.max_questions is not None and questions + used.questions + used.held_questions > row.max_questions:
                return "max_questions"
            if row.budget_usd is not None and usd + used.cost_usd + used.uncertain_usd + used.held_usd > row.budget_usd:
                return "budget_usd"
            self._write_used(connection, batch, used)
            self._refusing[batch] = None
            return None

    def write_used(self, batch: str, used: UsageAmount) -> None:
        """Write what this worker has used for a batch."""
        with self.database.begin() as connection:
            self._write_used(connection, batch, used)

    def _write_used(self, connection: sa.Connection, batch: str, used: UsageAmount | None) -> None:
        if used is not None:
            values = {f"new_{name}": value for name, value in asdict(used).items()}
            connection.execute(_WRITE_USED, {"of": batch, "by": self.owner, **values})

    # Later, or never.

    def put_off(
        self,
        lease: Lease,
        *,
        delay: float = 0.0,
        used: UsageAmount | None = None,
        pause: Pause | None = None,
        reason: str | None = None,
    ) -> bool:
        """Leave a chunk for later, in `delay` seconds, and pause its batch if `pause` says so; False if it is another's.

        In a batch that is over it is done instead: its remaining items never run. A budget pauses a batch only if it still is
        the one that refused, and no other worker has reserved something of it, which it may give back.
        """
        later = {"state": "ready", "owner": None, "due_at": self.database.now() + delay}
        with self.database.begin() as connection:
            owned = connection.execute(sa.update(CHUNKS).where(*_match_lease(lease)).values(later)).rowcount
            self._write_used(connection, lease.batch, used)
            if not owned:
                return False
            columns = BATCHES.c.status, BATCHES.c.budget_usd, BATCHES.c.max_questions
            locked = sa.select(*columns).where(BATCHES.c.id == lease.batch).with_for_update()
            status, *limits = connection.execute(locked).one()
            refused = self._refusing.get(lease.batch, tuple(limits)) == tuple(limits)
            row = sa.update(CHUNKS).where(CHUNKS.c.batch == lease.batch, CHUNKS.c.first == lease.first)
            if status not in RUNNING_STATUSES | PAUSED_STATUSES:
                connection.execute(row.values(state="done"))
                close_chunks(connection, lease.batch)
            elif pause == "paused_budget" and (not refused or _is_reserved(connection, lease.batch, self.owner)):
                connection.execute(row.values(due_at=self.database.now() + SHORTLY_S))
            elif pause is not None and status in RUNNING_STATUSES:
                resume_at = self.database.now() + delay if pause == "paused_provider" else None
                values = {"status": pause, "reason": reason, "resume_at": resume_at}
                connection.execute(sa.update(BATCHES).where(BATCHES.c.id == lease.batch).values(values))
            return True

    def make_due(self, batch: str, first: int) -> None:
        """Make a chunk that was put off due now, whatever the clock says."""
        waits = (CHUNKS.c.batch == batch, CHUNKS.c.first == first, CHUNKS.c.state == "ready")
        with self.database.begin() as connection:
            connection.execute(sa.update(CHUNKS).where(*waits).values(due_at=0.0))

    def find_stopped(self, batches: Iterable[str]) -> set[str]:
        """Return which of these batches must not be worked on now: they are paused, over or gone."""
        candidates = set(batches)
        running = sa.select(BATCHES.c.id).where(BATCHES.c.id.in_(candidates), BATCHES.c.status.in_(RUNNING_STATUSES))
        with self.database.read() as connection:
            return candidates - set(connection.execute(running).scalars())


def close_chunks(connection: sa.Connection, batch: str, number: int = 1) -> None:
    """Count chunks of a batch as done; after the last one the batch is to be ended."""
    closed = sa.update(BATCHES).where(BATCHES.c.id == batch).values(open_chunks=BATCHES.c.open_chunks - number)
    if not connection.execute(closed.returning(BATCHES.c.open_chunks)).scalar_one():
        values = {"status": "finalizing", "reason": None, "resume_at": None}
        connection.execute(sa.update(BATCHES).where(BATCHES.c.id == batch).values(values))
        add_duty(connection, batch, "finish")


def add_duty(connection: sa.Connection, batch: str, kind: Literal["finish", "notice"]) -> None:
    """Add the row that has a worker end a batch, or tell of its end."""
    values = build_chunk_values(batch, FINISH if kind == "finish" else NOTICE, size=0, waits=False, payload=None)
    connection.execute(CHUNKS.insert().values(values | {"kind": kind}))


def _count(connection: sa.Connection, lease: Lease, new: Sequence[OutcomeRow]) -> bool:
    """Count the outcomes of a chunk; True if it is done."""
    completed = sum(row.ok for row in new)
    more = {"more_completed": completed, "more_failed": len(new) - completed}
    return connection.execute(_COUNT, {**_bind(lease), **more}).scalar_one() == "done"


def _split(connection: sa.Connection, row: sa.Row[Any], lines: Sequence[bytes], done: dict[int, bool]) -> None:
    """Replace a chunk by one for each item. They inherit the death that was the chunk's own: two more, and one is given up."""
    connection.execute(sa.delete(CHUNKS).where(*_match_row(row)))
    found: list[dict[str, object]] = []
    for position, line in enumerate(lines, start=row.first):
        payload = zlib.compress(line, DEFLATE_LEVEL)
        values = build_chunk_values(row.batch, position, size=1, waits=row.waits, payload=payload)
        if position in done:
            values |= {"state": "done", "completed": int(done[position]), "failed": int(not done[position])}
        else:
            values |= {"deaths": row.deaths - 1}
        found.append(values | {"attempt": row.attempt})
    connection.execute(CHUNKS.insert(), found)
    more = BATCHES.c.open_chunks + len(lines) - len(done) - 1
    connection.execute(sa.update(BATCHES).where(BATCHES.c.id == row.batch).values(open_chunks=more))


def _match_row(row: sa.Row[Any]) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    return CHUNKS.c.batch == row.batch, CHUNKS.c.first == row.first


def _match_lease(lease: Lease) -> tuple[sa.ColumnElement[bool], ...]:
    row = (CHUNKS.c.batch == lease.batch, CHUNKS.c.first == lease.first)
    return (*row, CHUNKS.c.attempt == lease.attempt, CHUNKS.c.state == "running")


def _bind(lease: Lease) -> dict[str, Any]:
    return {"of": lease.batch, "at": lease.first, "claim": lease.attempt}


def _read_done(connection: sa.Connection, batch: str, first: int, size: int) -> dict[int, bool]:
    """Return the positions that have an outcome, and whether it is a report."""
    found = connection.execute(_SELECT_DONE, {"of": batch, "start": first, "end": first + size})
    return {row.position: row.ok for row in found}


def _unpack_lines(payload: bytes | None, size: int) -> list[bytes]:
    """Inflate the lines of the items; if the payload is damaged, return empty ones, which become errors of their own."""
    try:
        lines = zlib.decompress(payload or b"").splitlines()
    except zlib.error:
        lines = []
    return lines if len(lines) == size else [b""] * size


def _sum_others(connection: sa.Connection, batch: str, owner: str) -> tuple[float, int]:
    """Return the dollars and the questions that other workers have used for a batch or have reserved."""
    usage = BATCH_USAGE.c
    usd, questions = usage.cost_usd + usage.uncertain_usd + usage.held_usd, usage.questions + usage.held_questions
    sums = {"usd": usd, "questions": questions}
    chosen = sa.select(*[sa.func.coalesce(sa.func.sum(one), 0).label(name) for name, one in sums.items()])
    row = connection.execute(chosen.where(usage.batch == batch, usage.owner != owner)).one()
    return float(row.usd), int(row.questions)


def _is_reserved(connection: sa.Connection, batch: str, owner: str) -> bool:
    """Whether another worker has reserved something of a batch."""
    usage = BATCH_USAGE.c
    held = (usage.batch == batch, usage.owner != owner, (usage.held_questions > 0) | (usage.held_usd > 0))
    return connection.execute(sa.select(usage.owner).where(*held).limit(1)).one_or_none() is not None
