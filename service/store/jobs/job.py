"""A job as it is told, a batch or a calibration: how far it is, what it cost, what was left out of it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, get_args

import sqlalchemy as sa
from pydantic import TypeAdapter

from service.problems import Place
from service.store.tables import CHUNKS
from service.store.times import format_rfc3339

Status = Literal[
    "in_progress",
    "finalizing",
    "completed",
    "failed",
    "cancelling",
    "cancelled",
    "expired",
    "paused_budget",
    "paused_provider",
]
STATUSES: tuple[Status, ...] = get_args(Status)

ENDED = frozenset({"completed", "failed", "cancelled", "expired"})
"""What stays as it is. `failed`: no item could be scored."""

PAUSED = frozenset({"paused_budget", "paused_provider"})
STOPPABLE = PAUSED | {"in_progress"}
"""The states of a batch that goes on if it is left alone."""

Kind = Literal["scores", "calibration"]
"""scores: its results are for whoever sent it. calibration: something is fitted to them."""

STEMS: dict[Kind, str] = {"scores": "batch", "calibration": "calibration"}
"""What an id begins with, by the kind of the batch."""

ID = re.compile(r"(batch|calibration)_([0-9a-f]{12})[0-9a-f]{20}")
"""An id: when the batch was made, in milliseconds since 1970, and 80 bits of chance."""


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """The items of a job. Once it has ended, completed, failed, cancelled and expired add up to total."""

    total: int
    """Those that were taken."""
    completed: int
    failed: int
    rejected: int
    """Lines that were left out by `skip_invalid`; they are not in total."""
    cancelled: int
    """Never run, for the batch was cancelled."""
    expired: int
    """Never run, for the batch was not done by its deadline."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A line, from 1, that was left out, and what is wrong with it. Of a JSON body: the position of the item, from 1."""

    line: int
    errors: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Notified:
    """Who is told of the end of a batch, and what came of it; null before."""

    url: str
    status: str | None


@dataclass(frozen=True, slots=True)
class Job:
    """What a batch and a calibration have in common. Times are RFC 3339 in UTC, null where there is none."""

    id: str
    name: str
    status: Status
    request_counts: RequestCounts
    cost_usd: float
    """Paid for judges, as far as replies said."""
    uncertain_usd: float
    """The most that calls may have cost besides, of which no bill came."""
    budget_usd: float | None
    questions: int
    """Requests to models: every vote, every repair and every retry is one; of a job with a limit of them those too that a
    worker which died may have made."""
    max_questions: int | None
    tokens_in: int
    tokens_out: int
    cache_hits: int
    tags: dict[str, str]
    reason: str | None
    """Of a pause, or of a failure."""
    resume_at: str | None
    """When a paused one is tried again by itself."""
    created_at: str
    deadline_at: str
    ended_at: str | None
    webhook: Notified | None

    @property
    def ended(self) -> bool:
        """Whether it stays as it is."""
        return self.status in ENDED


J = TypeVar("J", bound=Job)


@dataclass(frozen=True, slots=True)
class JobList(Generic[J]):
    """Jobs, newest first. `next`: what to ask for as `after` to go on; null at the end."""

    data: tuple[J, ...]
    has_more: bool
    next: str | None


@dataclass(frozen=True, slots=True)
class SkippedItems:
    """What skip_invalid left out: how many lines, and the first of them."""

    count: int = 0
    lines: tuple[Rejected, ...] = ()


LEFT_OUT: TypeAdapter[SkippedItems] = TypeAdapter(SkippedItems)

_AS_STORED = ("id", "name", "status", "budget_usd", "max_questions", "reason")

SUMMED = ("completed", "failed", "cost_usd", "uncertain_usd", "questions", "tokens_in", "tokens_out", "cache_hits")


def parse_made_at(job_id: str, kind: Kind) -> float | None:
    """When a job was made, by its id, in seconds since 1970; None for what is no id of one of this kind."""
    found = ID.fullmatch(job_id)
    return int(found[2], 16) / 1_000 if found and found[1] == STEMS[kind] else None


def select_jobs(chosen: sa.Select[Any]) -> sa.Select[Any]:
    """The rows of `chosen`, a choice of whole BATCHES, each with the sums of its chunks: one statement, so one moment."""
    page = chosen.subquery()
    sums = (
        sa.select(CHUNKS.c.batch, *[sa.func.sum(CHUNKS.c[name]).label(name) for name in SUMMED])
        .where(CHUNKS.c.batch.in_(sa.select(page.c.id)))
        .group_by(CHUNKS.c.batch)
        .subquery()
    )
    columns = [sa.func.coalesce(sums.c[name], 0).label(name) for name in SUMMED]
    return (
        sa.select(*page.c, *columns)
        .outerjoin_from(page, sums, sums.c.batch == page.c.id)
        .order_by(page.c.created_at.desc(), page.c.id.desc())
    )


def read_head(found: sa.RowMapping) -> dict[str, Any]:
    """The fields of a `Job`, from a row of `select_jobs`."""
    head = {name: found[name] for name in _AS_STORED}
    head |= {name: format_rfc3339(found[name]) for name in ("resume_at", "created_at", "deadline_at", "ended_at")}
    return head | {
        "request_counts": _build_counts(found),
        "cost_usd": float(found["cost_usd"]),
        "uncertain_usd": float(found["uncertain_usd"]),
        **{name: int(found[name]) for name in ("questions", "tokens_in", "tokens_out", "cache_hits")},
        "tags": json.loads(found["tags"]),
        "webhook": None if found["webhook"] is None else Notified(found["webhook"], found["webhook_status"]),
    }


def _build_counts(found: sa.RowMapping) -> RequestCounts:
    status, completed, failed = found["status"], int(found["completed"]), int(found["failed"])
    never_run = found["total"] - completed - failed
    return RequestCounts(
        total=found["total"],
        completed=completed,
        failed=failed,
        rejected=LEFT_OUT.validate_json(found["rejected"]).count,
        cancelled=never_run if status == "cancelled" else 0,
        expired=never_run if status == "expired" else 0,
    )
