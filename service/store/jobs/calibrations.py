"""Calibrations: jobs of labelled items, with what was fitted to what judges said of them.

What a worker does with them beyond the items is `find_due`, and what `endings.end` keeps.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter

from service.errors import JobStateError, UnknownJobError
from service.store.database import Database
from service.store.jobs.job import Job, JobList, read_head, select_jobs
from service.store.jobs.jobs import Jobs
from service.store.jobs.submission import Material
from service.store.tables import BATCHES, CALIBRATIONS, RESULTS


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
class Calibration(Job):
    """A calibration. Times are RFC 3339 in UTC, null where there is none.

    It is `completed` where it was fitted, so that there is a report. Its counts are of questions: each item as often as
    `repeats` says; none where predictions were recorded.
    """

    items: int
    """Labelled items."""
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


@dataclass(frozen=True, slots=True)
class CalibrationList(JobList[Calibration]):
    """Calibrations, newest first. `next`: what to ask for as `after` to go on; null at the end."""

    data: tuple[Calibration, ...]


CALIBRATION: TypeAdapter[Calibration] = TypeAdapter(Calibration)
CALIBRATION_LIST: TypeAdapter[JobList[Calibration]] = TypeAdapter(CalibrationList)

_OPTIONS = ("judges", "judge_model", "repeats", "method", "seed")

_COLUMNS = [CALIBRATIONS.c[name] for name in ("items", "unanswered", "reasons", "fits")]


class Calibrations(Jobs[Calibration]):
    """The calibrations in a database."""

    kind, form, listed = "calibration", CALIBRATION, CalibrationList

    def select(self, chosen: sa.Select[Any]) -> sa.Select[Any]:
        """As of any job, with what is fitted."""
        jobs = select_jobs(chosen)
        columns = [*_COLUMNS, CALIBRATIONS.c.options.label("fitting")]
        return jobs.add_columns(*columns).join(CALIBRATIONS, CALIBRATIONS.c.batch == jobs.selected_columns.id)

    def build(self, row: sa.RowMapping) -> Calibration:
        """The calibration in a row of `select`."""
        options = json.loads(row["fitting"])
        rubric = options["rubric"]
        return Calibration(
            **read_head(row),
            **{name: options[name] for name in _OPTIONS},
            items=row["items"],
            rubric=rubric and f"{rubric['id']}@{rubric['version']}",
            unanswered=row["unanswered"],
            reasons=tuple(json.loads(row["reasons"] or "[]")),
            fits=len(json.loads(row["fits"] or "[]")),
        )

    def report(self, tenant: str, name: str) -> str:
        """The report as JSON; JobStateError where there is none, or none yet."""
        return self._read_column(tenant, name, CALIBRATIONS.c.report)

    def fits(self, tenant: str, name: str) -> str:
        """The fits with the names of their files, as JSON; JobStateError where there is none, or none yet."""
        return self._read_column(tenant, name, CALIBRATIONS.c.fits)

    def _read_column(self, tenant: str, name: str, column: sa.Column[Any]) -> str:
        job = self.find(tenant, name)
        if job.status != "completed":
            raise JobStateError(f"the calibration is {job.status}; only a completed one has a report and fits")
        with self.database.read() as connection:
            found = connection.execute(sa.select(column).where(CALIBRATIONS.c.batch == name)).scalar_one_or_none()
        if found is None:  # deleted meanwhile
            raise UnknownJobError("no calibration of that id")
        return found


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
