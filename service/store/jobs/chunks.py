"""The life of a chunk. Its row is its entry in the work queue, and one transaction each takes it a step further.

| from | to | by |
|---|---|---|
| - | ready | submission; the last chunk of a batch adds the row `finish`, the end of a job with a webhook the row `notice` |
| ready | running | `claim`, which raises `attempt` |
| running | ready | `put_off`, by the owner; `Workers.leave`, where it ends; `Workers.reclaim`, where its beats stand still |
| running | done | `record`, with the last outcome; in a batch that is over, also what else would make it ready |
| ready | done | `Jobs.cancel` and `Jobs.expire_due` |
| done | ready | `Jobs.retry` |

Every write of a worker names the attempt that it belongs to, and is refused if the chunk is no longer its own: one that was
frozen and wakes up cannot write over the one that took over its work. Locks never meet in two orders. What writes to
running chunks locks them first, in the order of their leases, then their batch. All else locks the batch first, and then only
chunks that do not run: a claim (the batch shared, so that claims of one batch need not wait for each other), `wake`, and what
users do (`Jobs`). Who also writes the row of a worker, to claim or to reclaim, does that before all else.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable
from dataclasses import asdict
from functools import cached_property
from typing import Any, Literal

import sqlalchemy as sa

from service.core.money import UsageAmount
from service.store.access.usage import COLUMNS
from service.store.database import Database, insert_new
from service.store.jobs.closing import close_chunks, close_if_over
from service.store.jobs.items import build_facts
from service.store.jobs.leases import ChunkItem, ClaimedChunk, Lease, OutcomeRow, OutcomeRows, Pause
from service.store.jobs.submission import DEFLATE_LEVEL
from service.store.jobs.workers import count_beat
from service.store.labelling.items import insert_items, name_batch_item, unpack_lines
from service.store.tables import BATCH_USAGE, BATCHES, CHUNKS, ITEMS, RESULTS
from service.store.times import DAY_S

Limit = Literal["budget_usd", "max_questions"]
"""What a batch may not pass."""

RUNNING_STATUSES = frozenset({"in_progress", "paused_provider"})
"""The states of a batch whose items may run."""

SPLIT_DEATHS = 2
"""Deaths after which a chunk is replaced by chunks of one item: the second death was its own."""

LITTLE_LEFT = 16
"""Chunks that are left of a small tenant's batches at most."""

SHARE_OF_LITTLE = 3
"""How many chunks of it run for one of a tenant of whom more is left: little is soon done, and much waits little longer."""

SHORTLY_S = 1.0
"""Seconds until a chunk is tried again that waits for what others have reserved of a budget, or whose judge answers again."""

MAX_DELAY_S = DAY_S
"""The longest that a chunk is put off, in seconds, until a tenant's next day: one that is due even later was put off before
the clock was set back."""


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

    def claim(self, *, idle: bool = True, besides: Collection[str] = ()) -> ClaimedChunk | None:
        """Claim the next chunk; None if none is due, or if the next must run alone and may not begin yet.

        Next is the tenant with the fewest running chunks, of its batches the one with the fewest, of these the oldest. A
        tenant of whom little is left has three chunks for one of a tenant of whom much is.
        `idle`: whether this worker runs no chunk, so that one that must run alone may begin. `besides`: tenants whose chunks
        are left.
        """
        with self.database.read() as connection:
            batch = connection.execute(self._pick, {"besides": [*besides]}).scalar()
        if batch is None:
            return None
        with self.database.begin() as connection:
            count_beat(connection, self.owner, self.database.now())
            return self._claim(connection, batch, idle=idle)

    @cached_property
    def _pick(self) -> sa.Select[str]:
        """The batch of which a chunk is claimed next. Built once: a worker without work looks ten times a second."""
        busy = (
            sa.select(CHUNKS.c.batch, BATCHES.c.tenant, sa.func.count().label("n"))
            .join_from(CHUNKS, BATCHES, CHUNKS.c.batch == BATCHES.c.id)
            .where(CHUNKS.c.state == "running")
            .group_by(CHUNKS.c.batch, BATCHES.c.tenant)
            .cte("busy")
        )
        count = sa.select(sa.func.coalesce(sa.func.sum(busy.c.n), 0))
        left = (
            sa.select(BATCHES.c.tenant, sa.func.sum(BATCHES.c.open_chunks).label("n"))
            .where(BATCHES.c.status.in_(RUNNING_STATUSES))
            .group_by(BATCHES.c.tenant)
            .cte("left_over")
        )
        of_tenant = count.where(busy.c.tenant == BATCHES.c.tenant).correlate(BATCHES).scalar_subquery()
        weight = sa.case((left.c.n <= LITTLE_LEFT, 1), else_=SHARE_OF_LITTLE)
        of_batch = count.where(busy.c.batch == BATCHES.c.id).correlate(BATCHES).scalar_subquery()
        due = sa.exists().where(CHUNKS.c.batch == BATCHES.c.id, *self._match_due())
        chosen = sa.select(BATCHES.c.id).join_from(BATCHES, left, left.c.tenant == BATCHES.c.tenant)
        chosen = chosen.where(BATCHES.c.status.in_(RUNNING_STATUSES), due)
        chosen = chosen.where(BATCHES.c.tenant.not_in(sa.bindparam("besides", expanding=True)))
        return chosen.order_by((of_tenant + 1) * weight, of_batch, BATCHES.c.id).limit(1)

    def _match_due(self) -> list[sa.ColumnElement[bool]]:
        now = self.database.now()
        due = [CHUNKS.c.state == "ready", (CHUNKS.c.due_at <= now) | (CHUNKS.c.due_at > now + MAX_DELAY_S)]
        return due if self._judges else [*due, ~CHUNKS.c.waits]

    def _claim(self, connection: sa.Connection, name: str, *, idle: bool) -> ClaimedChunk | None:
        running = sa.select(BATCHES).where(BATCHES.c.id == name, BATCHES.c.status.in_(RUNNING_STATUSES))
        batch = connection.execute(running.with_for_update(read=True, key_share=True)).one_or_none()
        due = sa.select(CHUNKS).where(CHUNKS.c.batch == name, *self._match_due()).order_by(CHUNKS.c.first)
        row = batch and connection.execute(due.limit(1).with_for_update(skip_locked=True)).one_or_none()
        if batch is None or row is None:  # others were faster
            return None
        if row.deaths and not idle:
            return None
        done = _read_done(connection, name, row.first, row.size)
        lines = unpack_lines(row.payload)
        if len(lines) != row.size:  # damaged: empty ones become errors of their own
            lines = [b""] * row.size
        if row.deaths >= SPLIT_DEATHS and row.size > 1:
            _split(connection, row, lines, done)
            return self._claim(connection, name, idle=idle)
        lease = Lease(name, row.first, row.attempt + 1)
        taken = {"state": "running", "owner": self.owner, "attempt": lease.attempt}
        connection.execute(sa.update(CHUNKS).where(*match_row(lease)).values(taken))
        insert_new(connection, BATCH_USAGE, {"batch": name, "owner": self.owner})
        items = tuple([ChunkItem(n, line) for n, line in enumerate(lines, start=row.first) if n not in done])
        return ClaimedChunk(lease, batch.tenant, items, row.size, row.deaths, json.loads(batch.options))

    def wake(self) -> None:
        """Make due what waits in time for a provider or for a tenant's next day: a worker that starts may have other settings."""
        in_time = BATCHES.c.deadline_at > self.database.now()
        paused = sa.select(BATCHES.c.id).where(BATCHES.c.status == "paused_provider", in_time)
        with self.database.begin() as connection:
            batches = connection.execute(paused.order_by(BATCHES.c.id).with_for_update()).scalars().all()
            later = (CHUNKS.c.batch.in_(batches), CHUNKS.c.state == "ready", CHUNKS.c.due_at > 0)
            connection.execute(sa.update(CHUNKS).where(*later).values(due_at=0.0))

    def list_owned(self) -> frozenset[Lease]:
        """List the leases of this worker that count: also of rows that are no chunks."""
        columns = (CHUNKS.c.batch, CHUNKS.c.first, CHUNKS.c.attempt)
        owned = sa.select(*columns).where(CHUNKS.c.owner == self.owner, CHUNKS.c.state == "running")
        return frozenset([Lease(**row) for row in self.database.read_rows(owned)])

    # Outcomes.

    def record(self, groups: Iterable[OutcomeRows]) -> list[bool]:
        """Record outcomes in one transaction; return for each group whether its lease counts. A refused group leaves no trace.

        Outcomes that were recorded before stay as they are. What was used was used, whether or not the lease counts.
        """
        given = list(groups)
        with self.database.begin() as connection:
            found: dict[Lease, list[OutcomeRow] | None] = {}
            for group in sorted(given, key=lambda one: one.lease):
                found[group.lease] = _select_new(connection, group)
            for batch, used in {group.lease.batch: group.used for group in given}.items():
                self._write_used(connection, batch, used)
            full: list[str] = []
            for lease, new in found.items():
                if new:
                    self._insert(connection, lease.batch, new)
                    good, own = sum(row.ok for row in new), dict(zip(_NAMES, lease, strict=True))
                    counted = connection.execute(_COUNT, {**own, "good": good, "bad": len(new) - good})
                    full += [lease.batch] * (counted.scalar_one() == "done")
            for batch in sorted({lease.batch for lease, new in found.items() if new}):
                if connection.execute(_RESUME, {"of_batch": batch}).rowcount:
                    soon, own = self.database.now() + SHORTLY_S, (CHUNKS.c.batch == batch, CHUNKS.c.state == "ready")
                    connection.execute(sa.update(CHUNKS).where(*own, CHUNKS.c.due_at > soon).values(due_at=soon))
                if batch in full:
                    close_chunks(connection, batch, full.count(batch))
            return [found[group.lease] is not None for group in given]

    def _insert(self, connection: sa.Connection, batch: str, new: list[OutcomeRow]) -> None:
        """Insert outcomes, what they are listed by, and what people may label of them."""
        keys = [{"batch": batch, "position": row.position} for row in new]
        connection.execute(
            _RESULT, [{**key, "ok": row.ok, "line": row.line} for row, key in zip(new, keys, strict=True)]
        )
        if listed := [
            {**build_facts(row.facts), **key} for row, key in zip(new, keys, strict=True) if row.facts is not None
        ]:
            connection.execute(_ITEM, listed)
        if items := [(name_batch_item(batch, row.position), item) for row in new for item in row.label_items]:
            tenant: str = connection.execute(sa.select(BATCHES.c.tenant).where(BATCHES.c.id == batch)).scalar_one()
            insert_items(connection, tenant, items)

    # What a batch may spend.

    def read_used(self, batch: str) -> UsageAmount:
        """Return what this worker has used for a batch of which it has claimed a chunk."""
        own = (BATCH_USAGE.c.batch == batch, BATCH_USAGE.c.owner == self.owner)
        row = self.database.read_row(sa.select(*[BATCH_USAGE.c[name] for name in COLUMNS]).where(*own))
        return UsageAmount() if row is None else UsageAmount(**row)

    def hold(self, batch: str, used: UsageAmount) -> Limit | None:
        """Write what this worker has used and reserves, unless that passes a limit of the batch: then return which one."""
        with self.database.begin() as connection:
            self._refusing[batch], passed = find_passed_limit(connection, batch, self.owner, used)
            if passed is None:
                self._write_used(connection, batch, used)
                self._refusing[batch] = None
            return passed

    def write_used(self, batch: str, used: UsageAmount) -> None:
        """Write what this worker has used for a batch."""
        with self.database.begin() as connection:
            self._write_used(connection, batch, used)

    def _write_used(self, connection: sa.Connection, batch: str, used: UsageAmount | None) -> None:
        if used is not None:
            connection.execute(_USED, {"of_batch": batch, "of_owner": self.owner, **asdict(used)})

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
            owned = connection.execute(sa.update(CHUNKS).where(*match_lease(lease)).values(later)).rowcount
            self._write_used(connection, lease.batch, used)
            if not owned or lease.first < 0:  # what ends a batch or tells of it is ready again, whatever its state
                return owned > 0
            batch = close_if_over(connection, lease.batch)
            if pause is None or batch.status not in RUNNING_STATUSES:
                return True
            limits = batch.budget_usd, batch.max_questions
            refused = self._refusing.get(lease.batch, limits) == limits
            if pause == "paused_budget" and (not refused or self._is_reserved(connection, lease.batch)):
                shortly = self.database.now() + SHORTLY_S
                connection.execute(sa.update(CHUNKS).where(*match_row(lease)).values(due_at=shortly))
            else:
                resume_at = self.database.now() + delay if pause == "paused_provider" else None
                values = {"status": pause, "reason": reason, "resume_at": resume_at}
                connection.execute(sa.update(BATCHES).where(BATCHES.c.id == lease.batch).values(values))
            return True

    def _is_reserved(self, connection: sa.Connection, batch: str) -> bool:
        usage = BATCH_USAGE.c
        held = (usage.batch == batch, usage.owner != self.owner, (usage.held_questions > 0) | (usage.held_usd > 0))
        return connection.execute(sa.select(usage.owner).where(*held).limit(1)).one_or_none() is not None

    def find_stopped(self, batches: Iterable[str]) -> set[str]:
        """Return which of these batches must not be worked on now: they are paused, over or gone."""
        candidates = set(batches)
        running = sa.select(BATCHES.c.id).where(BATCHES.c.id.in_(candidates), BATCHES.c.status.in_(RUNNING_STATUSES))
        return candidates - set(self.database.read_column(running))


def find_passed_limit(
    connection: sa.Connection, batch: str, owner: str, used: UsageAmount
) -> tuple[tuple[float | None, int | None], Limit | None]:
    """Return the limits of a batch, and which one is passed if the owner uses so much beside the others; locks the batch."""
    usage, others = BATCH_USAGE.c, (BATCH_USAGE.c.batch == batch, BATCH_USAGE.c.owner != owner)
    sums = [
        sa.func.coalesce(sa.func.sum(usage.questions + usage.held_questions), 0).label("questions"),
        sa.func.coalesce(sa.func.sum(usage.cost_usd + usage.uncertain_usd + usage.held_usd), 0).label("usd"),
    ]
    limits = sa.select(BATCHES.c.budget_usd, BATCHES.c.max_questions).where(BATCHES.c.id == batch)
    row = connection.execute(limits.with_for_update()).one_or_none()
    if row is None:  # it was deleted
        return (None, None), "max_questions"
    there = connection.execute(sa.select(*sums).where(*others)).one()
    if row.max_questions is not None and there.questions + used.questions + used.held_questions > row.max_questions:
        return (row.budget_usd, row.max_questions), "max_questions"
    usd = there.usd + used.cost_usd + used.uncertain_usd + used.held_usd
    passed = row.budget_usd is not None and usd > row.budget_usd
    return (row.budget_usd, row.max_questions), "budget_usd" if passed else None


def match_row(lease: Lease) -> tuple[sa.ColumnElement[bool], ...]:
    """Match the row of a chunk."""
    return CHUNKS.c.batch == lease.batch, CHUNKS.c.first == lease.first


def match_lease(lease: Lease) -> tuple[sa.ColumnElement[bool], ...]:
    """Match the row of a chunk if its lease counts."""
    return (*match_row(lease), CHUNKS.c.attempt == lease.attempt, CHUNKS.c.state == "running")


# What runs with every commit is built once.

_NAMES = ("of_batch", "of_first", "of_attempt")
_BATCH: sa.BindParameter[str] = sa.bindparam("of_batch")
_OWN = (CHUNKS.c.batch == _BATCH, CHUNKS.c.first == sa.bindparam("of_first"), CHUNKS.c.state == "running")
_LEASE = (*_OWN, CHUNKS.c.attempt == sa.bindparam("of_attempt"))
_LOCK = sa.select(CHUNKS.c.first).where(*_LEASE).with_for_update()
_GOOD, _BAD = CHUNKS.c.completed + sa.bindparam("good"), CHUNKS.c.failed + sa.bindparam("bad")
_STATE = sa.case((CHUNKS.c.size == _GOOD + _BAD, "done"), else_=CHUNKS.c.state)
_COUNT = sa.update(CHUNKS).where(*_LEASE).values(completed=_GOOD, failed=_BAD, state=_STATE).returning(CHUNKS.c.state)
_USED = sa.update(BATCH_USAGE).where(BATCH_USAGE.c.batch == _BATCH, BATCH_USAGE.c.owner == sa.bindparam("of_owner"))
_WAITS = sa.update(BATCHES).where(BATCHES.c.id == _BATCH, BATCHES.c.status == "paused_provider")
_RESUME = _WAITS.values(status="in_progress", reason=None, resume_at=None)
_RESULT, _ITEM = RESULTS.insert(), ITEMS.insert()
_BETWEEN = RESULTS.c.position.between(sa.bindparam("of_first"), sa.bindparam("of_last"))
_DONE = sa.select(RESULTS.c.position, RESULTS.c.ok).where(RESULTS.c.batch == _BATCH, _BETWEEN)


def _select_new(connection: sa.Connection, group: OutcomeRows) -> list[OutcomeRow] | None:
    """Return the rows of a group that are not recorded yet; None if its lease no longer counts."""
    if connection.execute(_LOCK, dict(zip(_NAMES, group.lease, strict=True))).one_or_none() is None:
        return None
    if not group.rows:
        return []
    first, last = (which(row.position for row in group.rows) for which in (min, max))
    done = _read_done(connection, group.lease.batch, first, last + 1 - first)
    return [row for row in group.rows if row.position not in done]


def _split(connection: sa.Connection, row: sa.Row[Any], lines: list[bytes], done: dict[int, bool]) -> None:
    """Replace a chunk by one for each item. They inherit the death that was the chunk's own: two more, and one is given up."""
    connection.execute(sa.delete(CHUNKS).where(CHUNKS.c.batch == row.batch, CHUNKS.c.first == row.first))
    found: list[dict[str, object]] = []
    for position, line in enumerate(lines, start=row.first):
        ok = done.get(position)
        left = {"state": "ready", "completed": 0, "failed": 0, "deaths": row.deaths - 1}
        over = {"state": "done", "completed": int(ok is True), "failed": int(ok is False), "deaths": 0}
        own: dict[str, object] = {"batch": row.batch, "first": position, "payload": zlib.compress(line, DEFLATE_LEVEL)}
        same = {"size": 1, "waits": row.waits, "attempt": row.attempt}
        found.append(own | same | (left if ok is None else over))
    connection.execute(CHUNKS.insert(), found)
    more = BATCHES.c.open_chunks + len(lines) - len(done) - 1
    connection.execute(sa.update(BATCHES).where(BATCHES.c.id == row.batch).values(open_chunks=more))


def _read_done(connection: sa.Connection, batch: str, first: int, size: int) -> dict[int, bool]:
    """Return the positions that have an outcome, and whether it is a report."""
    found = connection.execute(_DONE, {"of_batch": batch, "of_first": first, "of_last": first + size - 1})
    return {row.position: row.ok for row in found}
