"""Jobs in the database: submit, find, cancel, pause, resume, retry, delete, expire. What workers do with them is in `chunks`.

Every change is one transaction, which also makes the work ready that follows from it.
"""

from __future__ import annotations

import json
import secrets
import zlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, Generic, TypeAlias, TypeVar, cast

import sqlalchemy as sa
from pydantic import JsonValue, TypeAdapter

from service.errors import InputError, JobGoneError, JobStateError, KeyReusedError, QueueFullError, UnknownJobError
from service.store.access.audit import SERVICE, Act, Actor, record
from service.store.database import Database, cut_page, insert_new
from service.store.jobs.closing import close_chunks, close_if_over
from service.store.jobs.job import (
    ENDED_STATUSES,
    ID_PREFIXES,
    PAUSED_STATUSES,
    SKIPPED_ITEMS,
    STATUSES,
    STOPPABLE_STATUSES,
    Job,
    JobList,
    Kind,
    Rejected,
    Status,
    parse_made_at,
    read_job,
    select_jobs,
)
from service.store.jobs.leases import QUARANTINE_DEATHS
from service.store.jobs.submission import DEFLATE_LEVEL, Chunk, JobSubmission
from service.store.labelling.labels import count_labels
from service.store.tables import BATCHES, CALIBRATIONS, CHUNKS, ITEMS, LABEL_ITEMS, RESULTS, SUBMISSIONS
from service.store.times import DAY_S

J = TypeVar("J", bound=Job)

ONE_JOB = sa.select(BATCHES).where(
    BATCHES.c.id == sa.bindparam("job_id"), BATCHES.c.tenant == sa.bindparam("job_tenant")
)


@dataclass(frozen=True, slots=True)
class Room:
    """How many items may wait: in all, and for one tenant. 0: unlimited."""

    max_items: int = 0
    max_tenant_items: int = 0

    def check(self, connection: sa.Connection, tenant: str, items: int = 0) -> None:
        """Raise QueueFullError if more items would wait, after adding so many."""
        for most, whose, scope in ((self.max_items, None, "in all"), (self.max_tenant_items, tenant, "of yours")):
            if most and (waiting := count_queued(connection, whose) + items) > most:
                raise QueueFullError(f"{waiting} items would wait {scope}; at most {most} may")


def count_queued(connection: sa.Connection, tenant: str | None = None) -> int:
    """Count the items that wait or are under way: of one tenant, or of all."""
    waiting = (
        sa.select(sa.func.coalesce(sa.func.sum(CHUNKS.c.size - CHUNKS.c.completed - CHUNKS.c.failed), 0))
        .join_from(BATCHES, CHUNKS, CHUNKS.c.batch == BATCHES.c.id)
        .where(BATCHES.c.status.not_in(ENDED_STATUSES), CHUNKS.c.state != "done")
    )
    if tenant is not None:
        waiting = waiting.where(BATCHES.c.tenant == tenant)
    return int(connection.execute(waiting).scalar_one())


class Jobs(ABC, Generic[J]):
    """The jobs of one kind in a database. Every method blocks on the database, so call it in a thread.

    Raises UnknownJobError for an id that does not exist, is another tenant's, or is of another kind.
    """

    kind: Kind
    adapter: TypeAdapter[J]
    """Serialises a job."""

    def __init__(self, database: Database, room: Room = Room()) -> None:  # noqa: B008 (frozen)
        self.database = database
        self._room = room

    def select(self, chosen: sa.Select[Any]) -> sa.Select[Any]:
        """Select the rows of `chosen`, a selection from BATCHES, with all columns that `build` needs."""
        return select_jobs(chosen)

    @abstractmethod
    def build(self, row: sa.RowMapping) -> J:
        """Build the job from a row of `select`."""

    def submit(self, submission: JobSubmission, chunks: Iterable[Chunk]) -> J:
        """Make a job, in one transaction with its chunks, which are read one at a time. A job without items ends at once.

        A submission repeated under the same key returns the earlier job. Raises KeyReusedError and JobGoneError as
        `find_submitted` does, and QueueFullError if there is no room for its items. (On PostgreSQL, simultaneous submissions
        do not see each other's items, and may pass the limit together.)
        """
        with self.database.begin() as connection:
            now: float = connection.execute(sa.select(self.database.now())).scalar_one()
            milliseconds = int(now * 1_000)
            job_id = f"{ID_PREFIXES[self.kind]}_{milliseconds:012x}{secrets.token_hex(10)}"
            made_at = milliseconds / 1_000
            if submission.key is not None:
                key = {"tenant": submission.tenant, "key_hash": _hash_key(submission.key)}
                own = {"fingerprint": submission.fingerprint, "batch": job_id, "created_at": now}
                if not insert_new(connection, SUBMISSIONS, key | own):
                    earlier = self._read_earlier(connection, submission.tenant, submission.key, submission.fingerprint)
                    return cast("J", earlier)
            values = {name: getattr(submission, name) for name in _COPIED} | {"id": job_id, "kind": self.kind}
            values |= {name: _dump(getattr(submission, name)) for name in ("options", "tags")}
            values["rejected"] = SKIPPED_ITEMS.dump_json(submission.skipped_items).decode()
            values |= {"created_at": made_at, "deadline_at": made_at + submission.hours * 3_600}
            connection.execute(BATCHES.insert().values(values))
            if (material := submission.material) is not None:
                deflated = {name: _deflate(getattr(material, name)) for name in ("labels", "predictions")}
                fitting = {"items": material.items, "options": _dump(material.options), **deflated}
                connection.execute(CALIBRATIONS.insert().values(batch=job_id, **fitting))
            count = total = 0
            for chunk in chunks:
                connection.execute(CHUNKS.insert().values(batch=job_id, **chunk._asdict()))
                count, total = count + 1, total + chunk.size
            self._room.check(connection, submission.tenant)
            close_chunks(connection, job_id, -count, total=total)
            return self._read_job(connection, submission.tenant, job_id)

    def find_submitted(self, tenant: str, key: str, fingerprint: str) -> J | None:
        """Find the job that was made under an Idempotency-Key; None if there is none.

        Raises KeyReusedError if the key stands for something else, JobGoneError if its job was deleted.
        """
        with self.database.read() as connection:
            return self._read_earlier(connection, tenant, key, fingerprint)

    def check_room(self, tenant: str, items: int = 1) -> None:
        """Raise QueueFullError if there is no room for so many items."""
        with self.database.read() as connection:
            self._room.check(connection, tenant, items)

    def find(self, tenant: str, job_id: str) -> J:
        """Find one job."""
        with self.database.read() as connection:
            return self._read_job(connection, tenant, job_id)

    def page(self, tenant: str, *, limit: int, after: str | None = None, status: Status | None = None) -> JobList[J]:
        """List a tenant's jobs, newest first: `limit` of those older than the job `after`, which may have been deleted.

        Raises InputError if `after` is not an id.
        """
        chosen = sa.select(BATCHES).where(BATCHES.c.tenant == tenant, BATCHES.c.kind == self.kind)
        if status is not None:
            chosen = chosen.where(BATCHES.c.status == status)
        if after is not None:
            if parse_made_at(after, self.kind) is None:
                raise InputError.at("", f"after: expected the id of a {ID_PREFIXES[self.kind]}")
            chosen = chosen.where(BATCHES.c.id < after)
        rows = self.database.read_rows(self.select(chosen.order_by(BATCHES.c.id.desc()).limit(limit + 1)))
        return cut_page(rows, limit, self.build, lambda job: job.id)

    def cancel(self, tenant: str, job_id: str, *, by: Actor | None = None) -> J:
        """Cancel a job: items that have not begun never run. Leave one that is ending or has ended as it is."""
        with self._change(tenant, job_id) as (connection, row):
            if row.status in STOPPABLE_STATUSES:
                self._record(connection, by, "cancel", row)
                _stop(connection, job_id, ending="cancelled", meanwhile="cancelling")
            return self._read_job(connection, tenant, job_id)

    def pause(self, tenant: str, job_id: str, *, by: Actor | None = None) -> J:
        """Pause a job until it is resumed: items under way finish. Raises JobStateError if it is not running.

        One that waits for a larger budget stays as it is.
        """
        with self._change(tenant, job_id, STOPPABLE_STATUSES, "only a running one can be paused") as (connection, row):
            if row.status not in ("paused", "paused_budget"):
                self._record(connection, by, "pause", row)
                _update(connection, job_id, status="paused")
            return self._read_job(connection, tenant, job_id)

    def retry(self, tenant: str, job_id: str, *, by: Actor | None = None) -> J:
        """Run the failed items of an ended job again, but none that took its workers down. Its deadline is as far off as before.

        Raises JobStateError if it has not ended by itself, or if no such item failed; QueueFullError if there is no room.
        """
        may = "only a completed or failed one can be retried"
        with self._change(tenant, job_id, ("completed", "failed"), may) as (connection, row):
            failed = (CHUNKS.c.batch == job_id, CHUNKS.c.failed > 0, CHUNKS.c.deaths < QUARANTINE_DEATHS)
            runs = connection.execute(sa.select(CHUNKS.c.first, CHUNKS.c.size).where(*failed)).all()
            if not runs:
                raise JobStateError("no item failed that can be tried again")
            for first, size in runs:
                within = (RESULTS.c.batch == job_id, RESULTS.c.position.between(first, first + size - 1), ~RESULTS.c.ok)
                again = connection.execute(sa.delete(RESULTS).where(*within).returning(RESULTS.c.position)).scalars()
                listed = (ITEMS.c.batch == job_id, ITEMS.c.position.in_(list(again)))
                connection.execute(sa.delete(ITEMS).where(*listed))
            ready = {"state": "ready", "due_at": 0.0, "failed": 0, "deaths": 0}
            connection.execute(sa.update(CHUNKS).where(*failed).values(ready))
            connection.execute(sa.delete(CHUNKS).where(CHUNKS.c.batch == job_id, CHUNKS.c.kind == "notice"))
            deadline = self.database.now() + (row.deadline_at - row.created_at)
            anew = {"open_chunks": len(runs), "webhook_status": None, "ended_at": None, "deadline_at": deadline}
            _update(connection, job_id, status="in_progress", **anew)
            self._room.check(connection, tenant)
            self._record(connection, by, "retry", row)
            return self._read_job(connection, tenant, job_id)

    def resume(
        self,
        tenant: str,
        job_id: str,
        *,
        budget_usd: float | None = None,
        max_questions: int | None = None,
        by: Actor | None = None,
    ) -> J:
        """Resume a paused job, with new limits where given. Raises JobStateError if it is not paused.

        Raises InputError for a limit no higher than what was spent or asked, the one that the job has included, and for one where
        the job had none.
        """
        with self._change(tenant, job_id, PAUSED_STATUSES, "only a paused one can be resumed") as (connection, row):
            job = self._read_job(connection, tenant, job_id)
            spent = (job.cost_usd or 0.0) + job.uncertain_usd
            limits: dict[str, JsonValue] = {}
            if budget_usd is not None:
                limits["budget_usd"] = budget_usd
                if job.budget_usd is None:
                    raise InputError.at("/budget_usd", "the batch was made without a budget")
            if max_questions is not None:
                limits["max_questions"] = max_questions
                if job.max_questions is None:
                    raise InputError.at("/max_questions", "the batch was made without a limit of questions")
            budget, most = limits.get("budget_usd", job.budget_usd), limits.get("max_questions", job.max_questions)
            if isinstance(budget, int | float) and budget <= spent:
                raise InputError.at("/budget_usd", f"expected more than the ${spent:.6f} already spent")
            if isinstance(most, int) and most <= job.questions:
                raise InputError.at("/max_questions", f"expected more than the {job.questions} already asked")
            raised = (budget_usd or 0.0) > (job.budget_usd or 0.0) or (max_questions or 0) > (job.max_questions or 0)
            if job.status == "paused_budget" and not raised and (budget is not None or most is not None):
                where = "/budget_usd" if budget is not None else "/max_questions"
                raise InputError.at(
                    where, "expected a higher limit: what is left of this one pays for no more questions"
                )
            _update(connection, job_id, status="in_progress", **limits)
            later = sa.update(CHUNKS).where(CHUNKS.c.batch == job_id, CHUNKS.c.state == "ready", CHUNKS.c.due_at > 0)
            connection.execute(later.values(due_at=0.0))
            self._record(connection, by, "resume", row, **{"budget_usd": None, **limits})
            return self._read_job(connection, tenant, job_id)

    def delete(self, tenant: str, job_id: str, *, by: Actor | None = None) -> None:
        """Delete a job that has ended, with its items and results. Raises JobStateError if it has not ended."""
        may = "cancel it first, and delete it when it has ended"
        with self._change(tenant, job_id, ENDED_STATUSES, may) as (connection, row):
            labels = count_labels(connection, LABEL_ITEMS.c.batch == job_id)
            connection.execute(BATCHES.delete().where(BATCHES.c.id == job_id))
            self._record(connection, by, "delete", row, **({"labels": labels} if labels else {}))

    def expire_due(self) -> list[str]:
        """Expire the jobs that missed their deadline; return their ids."""
        due = (BATCHES.c.status.in_(STOPPABLE_STATUSES), BATCHES.c.deadline_at <= self.database.now())
        expired: list[str] = []
        for job_id in self.database.read_column(sa.select(BATCHES.c.id).where(*due)):
            with self.database.begin() as connection:
                own = sa.select(BATCHES.c.id).where(BATCHES.c.id == job_id, *due).with_for_update()
                if connection.execute(own).one_or_none() is not None:  # else somebody was faster
                    _stop(connection, job_id, ending="expired", meanwhile="finalizing")
                    expired.append(job_id)
        return expired

    def forget_old(self, *, days: float) -> int:
        """Delete jobs that ended more than so many days ago; return how many.

        An Idempotency-Key is released after the same time, once its job is gone.
        """
        early = self.database.now() - days * DAY_S
        found = self.database.read_rows(sa.select(BATCHES.c.id, BATCHES.c.tenant).where(BATCHES.c.ended_at < early))
        for row in found:  # one transaction each, so that others need not wait for all
            with self.database.begin() as connection:
                if labels := count_labels(connection, LABEL_ITEMS.c.batch == row["id"]):
                    record(connection, SERVICE, "label.forget", target=row["id"], tenant=row["tenant"], labels=labels)
                connection.execute(BATCHES.delete().where(BATCHES.c.id == row["id"]))
        gone = ~sa.exists().where(BATCHES.c.id == SUBMISSIONS.c.batch)
        self.database.change(SUBMISSIONS.delete().where(SUBMISSIONS.c.created_at < early, gone))
        return len(found)

    def _record(
        self, connection: sa.Connection, by: Actor | None, verb: str, row: sa.Row[Any], **detail: JsonValue
    ) -> None:
        """Write into the audit log what somebody does to a job; nothing if nobody is named."""
        if by is not None:
            act = cast("Act", f"{ID_PREFIXES[self.kind]}.{verb}")
            detail = {"name": row.name, "status": row.status, **detail}
            record(connection, by, act, target=row.id, tenant=row.tenant, **detail)

    def _read_job(self, connection: sa.Connection, tenant: str, job_id: str) -> J:
        row = connection.execute(self._whole_job, self._name_job(tenant, job_id)).mappings().one_or_none()
        if row is None:
            raise self._build_unknown_error()
        return self.build(row)

    @contextmanager
    def _change(
        self, tenant: str, job_id: str, states: Collection[str] = STATUSES, may: str = ""
    ) -> Generator[tuple[sa.Connection, sa.Row[Any]]]:
        """Lock the row of a job for a transaction. Raises JobStateError with `may` if it is in none of these states."""
        with self.database.begin() as connection:
            row = connection.execute(ONE_JOB.with_for_update(), self._name_job(tenant, job_id)).one_or_none()
            if row is None:
                raise self._build_unknown_error()
            if row.status not in states:
                raise JobStateError(f"the batch is {row.status}; {may}")
            yield connection, row

    @cached_property
    def _whole_job(self) -> sa.Select[Any]:
        """`select` of one job, built once: watchers of jobs ask for them all the time."""
        return self.select(ONE_JOB)

    def _name_job(self, tenant: str, job_id: str) -> dict[str, str]:
        """Name a job to ONE_JOB. Rejects malformed ids without a query: they may hold characters that no database takes."""
        if parse_made_at(job_id, self.kind) is None:
            raise self._build_unknown_error()
        return {"job_id": job_id, "job_tenant": tenant}

    def _build_unknown_error(self) -> UnknownJobError:
        return UnknownJobError(f"no {ID_PREFIXES[self.kind]} of that id")

    def _read_earlier(self, connection: sa.Connection, tenant: str, key: str, fingerprint: str) -> J | None:
        own = (SUBMISSIONS.c.tenant == tenant, SUBMISSIONS.c.key_hash == _hash_key(key))
        earlier = connection.execute(sa.select(SUBMISSIONS).where(*own)).one_or_none()
        if earlier is None:
            return None
        if earlier.fingerprint != fingerprint:
            raise KeyReusedError("the Idempotency-Key was used for another body, or with other options")
        try:
            return self._read_job(connection, tenant, earlier.batch)
        except UnknownJobError:
            raise JobGoneError("the batch that was made under this Idempotency-Key was deleted") from None


@dataclass(frozen=True, slots=True)
class Batch(Job):
    """A batch. Times are RFC 3339 in UTC, null where there is none."""

    rejected: tuple[Rejected, ...]
    """The first thousand lines that `skip_invalid` left out."""


BatchList: TypeAlias = JobList[Batch]

BATCH: TypeAdapter[Batch] = TypeAdapter(Batch)
BATCH_LIST: TypeAdapter[BatchList] = TypeAdapter(BatchList)


class Batches(Jobs[Batch]):
    """The batches in a database."""

    kind, adapter = "scores", BATCH

    def build(self, row: sa.RowMapping) -> Batch:
        """Build the batch from a row of `select`."""
        return read_job(Batch, row, rejected=SKIPPED_ITEMS.validate_json(row["rejected"]).lines)


_COPIED = ("tenant", "name", "budget_usd", "max_questions", "webhook")


def _stop(connection: sa.Connection, job_id: str, *, ending: Status, meanwhile: Status) -> None:
    """Close the chunks that nobody runs; those that run are closed by whoever gives them back."""
    _update(connection, job_id, status=meanwhile, ending=ending)
    close_if_over(connection, job_id)


def _update(connection: sa.Connection, job_id: str, **values: object) -> None:
    """Set columns of a job that no longer waits, for whatever reason it did."""
    connection.execute(BATCHES.update().where(BATCHES.c.id == job_id).values(reason=None, resume_at=None, **values))


def _hash_key(key: str) -> str:
    return sha256(key.encode()).hexdigest()


def _dump(value: Mapping[str, JsonValue]) -> str:
    return json.dumps(dict(value), separators=(",", ":"))


def _deflate(lines: bytes | None) -> bytes | None:
    return None if lines is None else zlib.compress(lines, DEFLATE_LEVEL)
