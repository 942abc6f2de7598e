"""Calibrations in the database: batches of labelled items, with what was fitted to what judges said of them.

They are cancelled, resumed, listed and forgotten as batches are. What a worker does with them beyond that is `find_due` and what
`endings.end` keeps.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from pydantic import JsonValue, TypeAdapter

from service.errors import BatchStateError, UnknownBatchError
from service.store.audit import Actor
from service.store.batch import Batch, Notified, RequestCounts, Status
from service.store.batches import Batches
from service.store.database import Database
from service.store.submission import BatchSubmission, Chunk
from service.store.tables import BATCHES, CALIBRATIONS, RESULTS

LEVEL = 3
"""Of deflating, as of items."""


@dataclass(frozen=True, slots=True)
class Material:
    """What is calibrated with: kept when it is submitted, and read again when all is judged."""

    items: int
    """Labelled items."""
    labels: bytes
    """The labelled items, one JSON object a line, in the order in which they are judged."""
    predictions: bytes | None
    """Recorded predictions, likewise; None where judges are asked."""
    options: Mapping[str, JsonValue]
    """How it is judged and fitted."""


@dataclass(frozen=True, slots=True)
class PendingFit:
    """A calibration that is judged, and not fitted yet."""

    name: str
    material: Material
    results: tuple[str, ...]
    """The lines of the items that were judged."""


@dataclass(frozen=True, slots=True)
class FitOutcome:
    """What became of a calibration."""

    report: str | None = None
    """JSON; None where there is none."""
    fits: str = "[]"
    """JSON: a list of `{"name": ..., "fit": {...}}`."""
    unanswered: int = 0
    """Answers that no judge gave."""
    reasons: tuple[str, ...] = ()
    """Why not, the first of them."""
    problem: str | None = None
    """Why nothing could be fitted."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A calibration. Times are RFC 3339 in UTC, null where there is none."""

    id: str
    name: str
    status: Status
    """As of a batch; `completed` where it was fitted, so that there is a report."""
    items: int
    """Labelled items."""
    request_counts: RequestCounts
    """Questions: each item as often as `repeats` says; none where predictions were recorded."""
    unanswered: int | None
    """Questions that no judge answered; null before it is fitted."""
    reasons: tuple[str, ...]
    """Why not, the first of them."""
    fits: int
    """How many judges and juries were fitted."""
    rubric: str | None
    """Whose judges were asked; null where predictions were recorded."""
    judges: str | None
    judge_model: str | None
    repeats: int
    method: str
    seed: str
    cost_usd: float
    uncertain_usd: float
    budget_usd: float | None
    questions: int
    """Requests to models, as of a batch."""
    max_questions: int | None
    tokens_in: int
    tokens_out: int
    cache_hits: int
    tags: dict[str, str]
    reason: str | None
    """Of a pause, or of a failure."""
    resume_at: str | None
    created_at: str
    deadline_at: str
    ended_at: str | None
    webhook: Notified | None


@dataclass(frozen=True, slots=True)
class CalibrationList:
    """Calibrations, newest first. `next`: what to ask for as `after` to go on; null at the end."""

    data: tuple[Calibration, ...]
    has_more: bool
    next: str | None


CALIBRATION: TypeAdapter[Calibration] = TypeAdapter(Calibration)
CALIBRATION_LIST: TypeAdapter[CalibrationList] = TypeAdapter(CalibrationList)

_SHARED = (
    *("id", "name", "status", "request_counts", "cost_usd", "uncertain_usd", "budget_usd", "questions"),
    *("max_questions", "tokens_in", "tokens_out"),
    *("cache_hits", "tags", "reason", "resume_at", "created_at", "deadline_at", "ended_at", "webhook"),
)
"""What it has of the batch that it is."""

_OPTIONS = ("judges", "judge_model", "repeats", "method", "seed")

_TOLD = [CALIBRATIONS.c[name] for name in ("batch", "items", "options", "unanswered", "reasons", "fits")]


class Calibrations:
    """The calibrations among batches of their kind. All of it waits for the database, and so belongs into a thread."""

    def __init__(self, batches: Batches) -> None:
        self.batches = batches

    def submit(self, submission: BatchSubmission, chunks: Iterable[Chunk], material: Material) -> Calibration:
        """Makes a calibration, as `Batches.submit`; what it is fitted to is kept in the same transaction."""
        values = {
            "items": material.items,
            "options": json.dumps(material.options, separators=(",", ":")),
            "labels": zlib.compress(material.labels, LEVEL),
            "predictions": None if material.predictions is None else zlib.compress(material.predictions, LEVEL),
        }

        def keep(connection: sa.Connection, batch: str) -> None:
            connection.execute(CALIBRATIONS.insert().values(batch=batch, **values))

        return self._read_calibration(self.batches.submit(submission, chunks, also=keep))

    def find_submitted(self, tenant: str, key: str, fingerprint: str) -> Calibration | None:
        """The one that was made under an Idempotency-Key, as `Batches.find_submitted`."""
        found = self.batches.find_submitted(tenant, key, fingerprint)
        return None if found is None else self._read_calibration(found)

    def find(self, tenant: str, name: str) -> Calibration:
        """One calibration; UnknownBatchError where it is not there, or is another tenant's."""
        return self._read_calibration(self.batches.find(tenant, name))

    def page(
        self, tenant: str, *, limit: int, after: str | None = None, status: Status | None = None
    ) -> CalibrationList:
        """A tenant's calibrations, newest first, as `Batches.page`."""
        found = self.batches.page(tenant, limit=limit, after=after, status=status)
        return CalibrationList(self._read_calibrations(found.data), found.has_more, found.next)

    def cancel(self, tenant: str, name: str, *, by: Actor | None = None) -> Calibration:
        """As `Batches.cancel`. What was judged by then is not fitted."""
        return self._read_calibration(self.batches.cancel(tenant, name, by=by))

    def resume(
        self,
        tenant: str,
        name: str,
        *,
        budget_usd: float | None = None,
        max_questions: int | None = None,
        by: Actor | None = None,
    ) -> Calibration:
        """As `Batches.resume`."""
        found = self.batches.resume(tenant, name, budget_usd=budget_usd, max_questions=max_questions, by=by)
        return self._read_calibration(found)

    def delete(self, tenant: str, name: str, *, by: Actor | None = None) -> None:
        """As `Batches.delete`."""
        self.batches.delete(tenant, name, by=by)

    def report(self, tenant: str, name: str) -> str:
        """The report as JSON; BatchStateError where there is none, or none yet."""
        return self._read_column(tenant, name, CALIBRATIONS.c.report)

    def fits(self, tenant: str, name: str) -> str:
        """The fits with the names of their files, as JSON; BatchStateError where there is none, or none yet."""
        return self._read_column(tenant, name, CALIBRATIONS.c.fits)

    def _read_column(self, tenant: str, name: str, column: sa.Column[Any]) -> str:
        batch = self.batches.find(tenant, name)
        if batch.status != "completed":
            raise BatchStateError(f"the calibration is {batch.status}; only a completed one has a report and fits")
        with self.batches.database.read() as connection:
            found = connection.execute(sa.select(column).where(CALIBRATIONS.c.batch == name)).scalar_one_or_none()
        if found is None:  # deleted meanwhile
            raise UnknownBatchError("no calibration of that id")
        return found

    def _read_calibration(self, batch: Batch) -> Calibration:
        found = self._read_calibrations([batch])
        if not found:  # deleted meanwhile
            raise UnknownBatchError("no calibration of that id")
        return found[0]

    def _read_calibrations(self, batches: Iterable[Batch]) -> tuple[Calibration, ...]:
        wanted = {batch.id: batch for batch in batches}
        with self.batches.database.read() as connection:
            rows = connection.execute(sa.select(*_TOLD).where(CALIBRATIONS.c.batch.in_(wanted))).all()
        by_id = {row.batch: row for row in rows}
        return tuple([_build_calibration(batch, by_id[name]) for name, batch in wanted.items() if name in by_id])


def _build_calibration(batch: Batch, row: sa.Row[Any]) -> Calibration:
    options = json.loads(row.options)
    rubric = options["rubric"]
    return Calibration(
        **{name: getattr(batch, name) for name in _SHARED},
        **{name: options[name] for name in _OPTIONS},
        items=row.items,
        rubric=rubric and f"{rubric['id']}@{rubric['version']}",
        unanswered=row.unanswered,
        reasons=tuple(json.loads(row.reasons or "[]")),
        fits=len(json.loads(row.fits or "[]")),
    )


def find_due(database: Database, batch: str) -> PendingFit | None:
    """What is to be fitted before a batch is ended; None where nothing is: it is none, was cancelled, or is done."""
    with database.read() as connection:
        found = connection.execute(
            sa.select(CALIBRATIONS, BATCHES.c.name)
            .join_from(CALIBRATIONS, BATCHES, CALIBRATIONS.c.batch == BATCHES.c.id)
            .where(BATCHES.c.id == batch, BATCHES.c.status == "finalizing", BATCHES.c.ending.is_(None))
        ).one_or_none()
        if found is None:
            return None
        lines = sa.select(RESULTS.c.line).where(RESULTS.c.batch == batch, RESULTS.c.ok).order_by(RESULTS.c.position)
        results = tuple(connection.execute(lines).scalars())
    predictions = None if found.predictions is None else zlib.decompress(found.predictions)
    material = Material(found.items, zlib.decompress(found.labels), predictions, json.loads(found.options))
    return PendingFit(found.name, material, results)


def keep(connection: sa.Connection, batch: str, fitted: FitOutcome) -> None:
    """Keeps what became of a calibration."""
    values = {
        "unanswered": fitted.unanswered,
        "reasons": json.dumps(fitted.reasons),
        "fits": fitted.fits,
        "report": fitted.report,
    }
    connection.execute(sa.update(CALIBRATIONS).where(CALIBRATIONS.c.batch == batch).values(values))
