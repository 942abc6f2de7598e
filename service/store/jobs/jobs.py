"""Jobs in the database: submit, find, cancel, pause, resume, retry, delete, expire. What workers do with them is in `chunks`.

Every change is one transaction, which also makes the work ready that follows from it.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeVar, cast

import sqlalchemy as sa
from pydantic import JsonValue, TypeAdapter

from service.errors import (
    InputError,
    JobGoneError,
    JobStateError,
    KeyReusedError,
    UnknownJobError,
)
from service.store.access.audit import SERVICE, Act, Actor, record
from service.store.access.keyed import claim, hash_key
from service.store.database import Database
from service.store.jobs.chunks import add_duty
from service.store.jobs.job import (
    ENDED_STATUSES,
    ID_PREFIXES,
    PAUSED_STATUSES,
    STOPPABLE_STATUSES,
    Job,
    JobList,
    Kind,
    Status,
    parse_made_at,
    select_jobs,
)
from service.store.jobs.leases import QUARANTINE_DEATHS
from service.store.jobs.room import Room
from service.store.jobs.submission import (
    Chunk,
    JobSubmission,
    build_chunk_values,
    build_job_values,
    build_material_values,
)
from service.store.labelling.labels import count_labels
from service.store.tables import BATCHES, CALIBRATIONS, CHUNKS, ITEMS, RESULTS, SUBMISSIONS

J = TypeVar("J", bound=Job)

DAY_S = 86_400.0


class Jobs(ABC, Generic[J]):
    """The jobs of one kind in a database. Every method blocks on the database, so call it in a thread.

    Raises UnknownJobError for an id that does not exist, is another tenant's, or is of another kind.
    """

    kind: Kind
    adapter: TypeAdapter[J]
    """Serialises a job."""
    list_type: type[JobList[J]]

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
            key = submission.key
            if key is not None and not self._claim(connection, submission, key, (job_id, now)):
                return self._read_earlier(connection, submission.tenant, key, submission.fingerprint)
            values = build_job_values(submission, job_id, milliseconds / 1_000) | {"kind": self.kind}
            connection.execute(BATCHES.insert().values(values))
            if submission.material is not None:
                connection.execute(CALIBRATIONS.insert().values(build_material_values(submission.material, job_id)))
            self._insert(connection, submission, job_id, chunks)
            return self._read_job(connection, submission.tenant, job_id)

    def find_submitted(self, tenant: str, key: str, fingerprint: str) -> J | None:
        """Find the job that was made under an Idempotency-Key; None if there is none.

        Raises KeyReusedError if the key stands for something else, JobGoneError if its job was deleted.
        """
        with self.database.read() as connection:
            if connection.execute(_select_submission(tenant, key)).one_or_none() is None:
                return None
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
            made_at = parse_made_at(after, self.kind)
            if made_at is None:
                raise InputError.at("", f"after: expected the id of a {ID_PREFIXES[self.kind]}")
            chosen = chosen.where(sa.tuple_(BATCHES.c.created_at, BATCHES.c.id) < (made_at, after))
        chosen = chosen.order_by(BATCHES.c.created_at.desc(), BATCHES.c.id.desc()).limit(limit + 1)
        with self.database.read() as connection:
            found = [self.build(row) for row in connection.execute(self.select(chosen)).mappings()]
        more = len(found) > limit
        return self.list_type(tuple(found[:limit]), more, found[limit - 1].id if more else None)

    def cancel(self, tenant: str, job_id: str, *, by: Actor | None = None) -> J:
        """Cancel a job: items that have not begun never run. Leave one that is ending or has ended as it is."""
        with self.database.begin() as connection:
            row = self._lock_job(connection, job_id, tenant)
            if row.status in STOPPABLE_STATUSES:
                self._record(connection, by, "cancel", row)
                self._stop(connection, row, ending="cancelled", meanwhile="cancelling")
            return self._read_job(connection, tenant, job_id)

    def pause(self, tenant: str, job_id: str, *, by: Actor | None = None) -> J:
        """Pause a job until it is resumed: items under way finish. Raises JobStateError if it is not running.

        One that waits for a larger budget stays as it is.
        """
        with self.database.begin() as connection:
            row = self._lock_job(connection, job_id, tenant)
            if row.status not in STOPPABLE_STATUSES:
                raise JobStateError(f"the batch is {row.status}; only a running one can be paused")
            if row.status not in ("paused", "paused_budget"):
                self._record(connection, by, "pause", row)
                values = {"status": "paused", "reason": None, "resume_at": None}
                connection.execute(BATCHES.update().where(BATCHES.c.id == job_id).values(values))
            return self._read_job(connection, tenant, job_id)

    def retry(self, tenant: str, job_id: str, *, by: Actor | None = None) -> J:
        """Run the failed items of an ended job again, but none that took its workers down. Its deadline is as far off as before.

        Raises JobStateError if it has not ended by itself, or if no such item failed; QueueFullError if there is no room.
        """
        with self.database.begin() as connection:
            row = self._lock_job(connection, job_id, tenant)
            if row.status not in ("completed", "failed"):
                raise JobStateError(f"the batch is {row.status}; only a completed or failed one can be retried")
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
            values = {"status": "in_progress", "reason": None, "open_chunks": len(runs), "webhook_status": None}
            deadline = self.database.now() + (row.deadline_at - row.created_at)
            values |= {"ended_at": None, "deadline_at": deadline}
            connection.execute(BATCHES.update().where(BATCHES.c.id == job_id).values(values))
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

        Raises InputError for a limit no higher than what was spent or asked, and for one where the job had none.
        """
        with self.database.begin() as connection:
            row = self._lock_job(connection, job_id, tenant)
            if row.status not in PAUSED_STATUSES:
                raise JobStateError(f"the batch is {row.status}; only a paused one can be resumed")
            found = self._read_job(connection, tenant, job_id)
            limits: dict[str, JsonValue] = {}
            if budget_usd is not None:
                limits["budget_usd"] = _check_budget(found, budget_usd)
            if max_questions is not None:
                limits["max_questions"] = _check_questions(found, max_questions)
            values = {"status": "in_progress", "reason": None, "resume_at": None, **limits}
            connection.execute(BATCHES.update().where(BATCHES.c.id == job_id).values(values))
            later = sa.update(CHUNKS).where(CHUNKS.c.batch == job_id, CHUNKS.c.state == "ready", CHUNKS.c.due_at > 0)
            connection.execute(later.values(due_at=0.0))
            self._record(connection, by, "resume", row, **{"budget_usd": None, **limits})
            return self._read_job(connection, tenant, job_id)

    def delete(self, tenant: str, job_id: str, *, by: Actor | None = None) -> None:
        """Delete a job that has ended, with its items and results. Raises JobStateError if it has not ended."""
        with self.database.begin() as connection:
            row = self._lock_job(connection, job_id, tenant)
            if row.status not in ENDED_STATUSES:
                raise JobStateError(f"the batch is {row.status}; cancel it first, and delete it when it has ended")
            labels = count_labels(connection, batch=job_id)
            connection.execute(BATCHES.delete().where(BATCHES.c.id == job_id))
            self._record(connection, by, "delete", row, **({"labels": labels} if labels else {}))

    def expire_due(self) -> list[str]:
        """Expire the jobs that missed their deadline; return their ids."""
        due = sa.select(BATCHES.c.id).where(
            BATCHES.c.status.in_(STOPPABLE_STATUSES), BATCHES.c.deadline_at <= self.database.now()
        )
        with self.database.read() as connection:
            found = list(connection.execute(due).scalars())
        return [job_id for job_id in found if self._expire(job_id)]

    def _expire(self, job_id: str) -> bool:
        with self.database.begin() as connection:
            row = connection.execute(sa.select(BATCHES).where(BATCHES.c.id == job_id).with_for_update()).one_or_none()
            if row is None or row.status not in STOPPABLE_STATUSES:  # somebody was faster
                return False
            self._stop(connection, row, ending="expired", meanwhile="finalizing")
            return True

    def forget_old(self, *, days: float) -> int:
        """Delete jobs that ended more than so many days ago; return how many.

        An Idempotency-Key is released after the same time, once its job is gone.
        """
        old = sa.select(BATCHES.c.id, BATCHES.c.tenant).where(BATCHES.c.ended_at < self.database.now() - days * DAY_S)
        with self.database.read() as connection:
            found = connection.execute(old).all()
        for job_id, tenant in found:  # one transaction each, so that others need not wait for all
            with self.database.begin() as connection:
                if labels := count_labels(connection, batch=job_id):
                    detail = {"labels": labels}
                    record(
                        connection,
                        self.database.now(),
                        SERVICE,
                        "label.forget",
                        target=job_id,
                        tenant=tenant,
                        detail=detail,
                    )
                connection.execute(BATCHES.delete().where(BATCHES.c.id == job_id))
        with self.database.begin() as connection:
            connection.execute(
                SUBMISSIONS.delete().where(
                    SUBMISSIONS.c.created_at < self.database.now() - days * DAY_S,
                    ~sa.exists().where(BATCHES.c.id == SUBMISSIONS.c.batch),
                )
            )
        return len(found)

    def _claim(self, connection: sa.Connection, submission: JobSubmission, key: str, job: tuple[str, float]) -> bool:
        """Claim the Idempotency-Key; return whether it is ours now."""
        row = {
            "tenant": submission.tenant,
            "key_hash": hash_key(key),
            "fingerprint": submission.fingerprint,
            "batch": job[0],
            "created_at": job[1],
        }
        return claim(self.database, connection, SUBMISSIONS, row)

    def _insert(
        self, connection: sa.Connection, submission: JobSubmission, job_id: str, chunks: Iterable[Chunk]
    ) -> None:
        count = total = 0
        for chunk in chunks:
            connection.execute(CHUNKS.insert().values(build_chunk_values(job_id, **chunk._asdict())))
            count, total = count + 1, total + chunk.size
        self._room.check(connection, submission.tenant)
        counted = BATCHES.update().where(BATCHES.c.id == job_id)
        connection.execute(counted.values(total=total, open_chunks=count))
        if not count:
            connection.execute(counted.values(status="finalizing"))
            add_duty(connection, job_id, "finish")

    def _record(
        self, connection: sa.Connection, by: Actor | None, verb: str, row: sa.Row[Any], **detail: JsonValue
    ) -> None:
        """Write into the audit log what somebody does to a job; nothing if nobody is named."""
        if by is not None:
            act = cast("Act", f"{ID_PREFIXES[self.kind]}.{verb}")
            detail = {"name": row.name, "status": row.status, **detail}
            record(connection, self.database.now(), by, act, target=row.id, tenant=row.tenant, detail=detail)

    def _stop(self, connection: sa.Connection, row: sa.Row[Any], *, ending: Status, meanwhile: Status) -> None:
        """Close the chunks that nobody runs; their owners close the others."""
        closing = CHUNKS.update().where(CHUNKS.c.batch == row.id, CHUNKS.c.state == "ready")
        left = row.open_chunks - connection.execute(closing.values(state="done")).rowcount
        values = {"status": meanwhile if left else "finalizing", "ending": ending, "open_chunks": left}
        values |= {"reason": None, "resume_at": None}
        connection.execute(BATCHES.update().where(BATCHES.c.id == row.id).values(values))
        if not left:
            add_duty(connection, row.id, "finish")

    def _read_job(self, connection: sa.Connection, tenant: str, job_id: str) -> J:
        row = connection.execute(self.select(self._select_job(tenant, job_id))).mappings().one_or_none()
        if row is None:
            raise self._build_unknown_error()
        return self.build(row)

    def _lock_job(self, connection: sa.Connection, job_id: str, tenant: str) -> sa.Row[Any]:
        """Lock the row of a job, so that nobody else changes it."""
        row = connection.execute(self._select_job(tenant, job_id).with_for_update()).one_or_none()
        if row is None:
            raise self._build_unknown_error()
        return row

    def _select_job(self, tenant: str, job_id: str) -> sa.Select[Any]:
        """Select a job. Rejects malformed ids without a query: they may hold characters that no database takes."""
        if parse_made_at(job_id, self.kind) is None:
            raise self._build_unknown_error()
        return sa.select(BATCHES).where(BATCHES.c.id == job_id, BATCHES.c.tenant == tenant)

    def _build_unknown_error(self) -> UnknownJobError:
        return UnknownJobError(f"no {ID_PREFIXES[self.kind]} of that id")

    def _read_earlier(self, connection: sa.Connection, tenant: str, key: str, fingerprint: str) -> J:
        """Read the job of an earlier submission."""
        earlier = connection.execute(_select_submission(tenant, key)).one()
        if earlier.fingerprint != fingerprint:
            raise KeyReusedError("the Idempotency-Key was used for another body, or with other options")
        try:
            return self._read_job(connection, tenant, earlier.batch)
        except UnknownJobError:
            raise JobGoneError("the batch that was made under this Idempotency-Key was deleted") from None


def _select_submission(tenant: str, key: str) -> sa.Select[str, str]:
    return sa.select(SUBMISSIONS.c.fingerprint, SUBMISSIONS.c.batch).where(
        SUBMISSIONS.c.tenant == tenant, SUBMISSIONS.c.key_hash == hash_key(key)
    )


def _check_budget(job: Job, budget_usd: float) -> float:
    spent = (job.cost_usd or 0.0) + job.uncertain_usd
    if job.budget_usd is None:
        raise InputError.at("/budget_usd", "the batch was made without a budget")
    if budget_usd <= spent:
        raise InputError.at("/budget_usd", f"expected more than the ${spent:.6f} already spent")
    return budget_usd


def _check_questions(job: Job, max_questions: int) -> int:
    if job.max_questions is None:
        raise InputError.at("/max_questions", "the batch was made without a limit of questions")
    if max_questions <= job.questions:
        raise InputError.at("/max_questions", f"expected more than the {job.questions} already asked")
    return max_questions
