"""A job as the API reports it, a batch or a calibration: its progress, its cost, and what was skipped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import sqlalchemy as sa
from pydantic import TypeAdapter

from service.core.money import Cost
from service.problems import Place
from service.store.database import Page, build_from_row
from service.store.tables import BATCH_USAGE, CHUNKS
from service.store.times import format_rfc3339

Status = Literal[
    "in_progress",
    "finalizing",
    "completed",
    "failed",
    "cancelling",
    "cancelled",
    "expired",
    "paused",
    "paused_budget",
    "paused_provider",
]
STATUSES: tuple[Status, ...] = get_args(Status)

ENDED_STATUSES = frozenset({"completed", "failed", "cancelled", "expired"})
"""Final states. `failed`: no item could be scored."""

PAUSED_STATUSES = frozenset({"paused", "paused_budget", "paused_provider"})
"""`paused`: by its submitter."""
STOPPABLE_STATUSES = PAUSED_STATUSES | {"in_progress"}
"""The states of a job that goes on if it is left alone, or once resumed."""

Kind = Literal["scores", "calibration"]
"""scores: the results are for the submitter. calibration: a fit is made of them."""

ID_PREFIXES: dict[Kind, str] = {"scores": "batch", "calibration": "calibration"}
"""The prefix of an id, by kind of job."""

ID_PATTERN = re.compile(r"(batch|calibration)_([0-9a-f]{12})[0-9a-f]{20}")
"""An id: the time it was made, in milliseconds since 1970, and 80 random bits."""


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """Item counts of a job. Once it has ended, completed, failed, cancelled and expired add up to total."""

    total: int
    """Items that were accepted."""
    completed: int
    failed: int
    rejected: int
    """Lines that `skip_invalid` left out; not part of total."""
    cancelled: int
    """Never run, because the batch was cancelled."""
    expired: int
    """Never run, because the batch missed its deadline."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A line that was left out, counted from 1, and what is wrong with it. Of a JSON body: the position of the item, from 1."""

    line: int
    errors: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Notified:
    """The webhook that is notified when a batch ends, and whether the notice arrived; null before."""

    url: str
    status: str | None


@dataclass(frozen=True, slots=True)
class Job:
    """What a batch and a calibration have in common. Times are RFC 3339 in UTC, null where there is none."""

    id: str
    name: str
    status: Status
    request_counts: RequestCounts
    cost_usd: float | None
    """Paid for judges, as far as their replies say; null where no price is known."""
    unpriced_calls: int
    """Requests without a known price, which `cost_usd` lacks."""
    uncertain_usd: float
    """The most that further calls may have cost, for which no bill came."""
    budget_usd: float | None
    questions: int
    """Requests to models: every vote, repair and retry is one. Includes requests that a worker is about to make, or may have made
    before it died."""
    max_questions: int | None
    tokens_in: int
    tokens_out: int
    cache_hits: int
    tags: dict[str, str]
    reason: str | None
    """Why it is paused or failed."""
    resume_at: str | None
    """When a paused job is tried again automatically."""
    created_at: str
    deadline_at: str
    ended_at: str | None
    webhook: Notified | None

    @property
    def ended(self) -> bool:
        """Whether the job is final."""
        return self.status in ENDED_STATUSES


J = TypeVar("J", bound=Job)


JobList: TypeAlias = Page[J, str]
"""Jobs, newest first."""


@dataclass(frozen=True, slots=True)
class SkippedItems:
    """The lines that skip_invalid left out: how many, and the first of them."""

    count: int = 0
    lines: tuple[Rejected, ...] = ()


SKIPPED_ITEMS: TypeAdapter[SkippedItems] = TypeAdapter(SkippedItems)

_SUMS: dict[str, tuple[sa.Table, sa.ColumnElement[Any]]] = {
    "completed": (CHUNKS, CHUNKS.c.completed),
    "failed": (CHUNKS, CHUNKS.c.failed),
    "cost_usd": (BATCH_USAGE, BATCH_USAGE.c.cost_usd),
    "unpriced_calls": (BATCH_USAGE, BATCH_USAGE.c.unpriced),
    "uncertain_usd": (BATCH_USAGE, BATCH_USAGE.c.uncertain_usd + BATCH_USAGE.c.held_usd),
    "questions": (BATCH_USAGE, BATCH_USAGE.c.questions + BATCH_USAGE.c.held_questions),
    "tokens_in": (BATCH_USAGE, BATCH_USAGE.c.tokens_in),
    "tokens_out": (BATCH_USAGE, BATCH_USAGE.c.tokens_out),
    "cache_hits": (BATCH_USAGE, BATCH_USAGE.c.cached),
}
"""What a job has done over all its chunks, and used over all its workers."""


def parse_made_at(job_id: str, kind: Kind) -> float | None:
    """Return when a job was made, in seconds since 1970, according to its id; None if it is not the id of such a job."""
    match = ID_PATTERN.fullmatch(job_id)
    return int(match[2], 16) / 1_000 if match and match[1] == ID_PREFIXES[kind] else None


def select_jobs(chosen: sa.Select[Any]) -> sa.Select[Any]:
    """Select the rows of `chosen`, a selection from BATCHES, with their counts and what they used: as of one moment."""
    page = chosen.subquery()
    found = sa.select(*page.c).order_by(page.c.id.desc())
    for table in (CHUNKS, BATCH_USAGE):
        sums = [sa.func.sum(column).label(name) for name, (of, column) in _SUMS.items() if of is table]
        summed = sa.select(table.c.batch, *sums).where(table.c.batch.in_(sa.select(page.c.id)))
        totals = summed.group_by(table.c.batch).subquery()
        columns = [sa.func.coalesce(totals.c[one.name], 0).label(one.name) for one in sums]
        found = found.add_columns(*columns).outerjoin(totals, totals.c.batch == page.c.id)
    return found


def read_job(kind: Callable[..., J], row: sa.RowMapping, **own: object) -> J:
    """Build a job from a row of `select_jobs`, and the fields that only jobs of its kind have."""
    times = {name: format_rfc3339(row[name]) for name in ("resume_at", "created_at", "deadline_at", "ended_at")}
    counts = ("completed", "failed", "unpriced_calls", "questions", "tokens_in", "tokens_out", "cache_hits")
    sums = {name: int(row[name]) for name in counts}
    completed, failed = sums.pop("completed"), sums.pop("failed")
    never_run = {row["status"]: row["total"] - completed - failed}
    request_counts = RequestCounts(
        total=row["total"],
        completed=completed,
        failed=failed,
        rejected=SKIPPED_ITEMS.validate_json(row["rejected"]).count,
        cancelled=never_run.get("cancelled", 0),
        expired=never_run.get("expired", 0),
    )
    return build_from_row(
        kind,
        row,
        request_counts=request_counts,
        cost_usd=Cost(float(row["cost_usd"]), sums["unpriced_calls"]).known_usd,
        uncertain_usd=max(0.0, float(row["uncertain_usd"])),  # a sum of additions and subtractions
        tags=json.loads(row["tags"]),
        webhook=None if row["webhook"] is None else Notified(row["webhook"], row["webhook_status"]),
        **times,
        **sums,
        **own,
    )
