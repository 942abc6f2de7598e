"""Calibrations: jobs of labelled items, and the fits made from their judges' answers.

A worker also calls `find_pending_fit`, and stores the fit through `endings.end_job`.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any, TypeAlias

import sqlalchemy as sa
from pydantic import TypeAdapter

from service.errors import JobStateError, UnknownJobError
from service.store.database import Database
from service.store.jobs.job import Job, JobList, read_job, select_jobs
from service.store.jobs.jobs import Jobs
from service.store.jobs.submission import Material
from service.store.tables import BATCHES, CALIBRATIONS, RESULTS


@dataclass(frozen=True, slots=True)
class PendingFit:
    """A calibration that is judged, but not fitted yet."""

    name: str
    material: Material
    results: tuple[str, ...]
    """The result lines of the judged items."""


@dataclass(frozen=True, slots=True)
class FitOutcome:
    """The outcome of a fit."""

    report: str | None = None
    """JSON; None if there is none."""
    fits: str = "[]"
    """JSON: a list of `{"name": ..., "fit": {...}}`."""
    unanswered: int = 0
    """Questions that no judge answered."""
    reasons: tuple[str, ...] = ()
    """The first reasons why."""
    problem: str | None = None
    """Why nothing could be fitted."""


@dataclass(frozen=True, slots=True)
class Calibration(Job):
    """A calibration. Times are RFC 3339 in UTC, null where there is none.

    It is `completed` once it is fitted, so that there is a report. Its counts are of questions: each item `repeats` times; none
    where predictions were recorded.
    """

    items: int
    """How many labelled items there are."""
    unanswered: int | None
    """Questions that no judge answered; null until it is fitted."""
    reasons: tuple[str, ...]
    """The first reasons why."""
    fits: int
    """How many judges and juries were fitted."""
    rubric: str | None
    """The rubric whose judges were asked; null where predictions were recorded."""
    judges: str | None
    judge_model: str | None
    repeats: int
    method: str
    seed: str


CalibrationList: TypeAlias = JobList[Calibration]

CALIBRATION: TypeAdapter[Calibration] = TypeAdapter(Calibration)
CALIBRATION_LIST: TypeAdapter[CalibrationList] = TypeAdapter(CalibrationList)


class Calibrations(Jobs[Calibration]):
    """The calibrations in a database."""

    kind, adapter = "calibration", CALIBRATION

    def select(self, chosen: sa.Select[Any]) -> sa.Select[Any]:
        """Select as for any job, with the columns of the fit."""
        jobs = select_jobs(chosen)
        own = [CALIBRATIONS.c[name] for name in ("items", "unanswered", "reasons", "fits")]
        columns = [*own, CALIBRATIONS.c.options.label("fitting")]
        return jobs.add_columns(*columns).join(CALIBRATIONS, CALIBRATIONS.c.batch == jobs.selected_columns.id)

    def build(self, row: sa.RowMapping) -> Calibration:
        """Build the calibration from a row of `select`."""
        options = json.loads(row["fitting"])
        rubric = options["rubric"]
        return read_job(
            Calibration,
            row,
            **{name: options[name] for name in ("judges", "judge_model", "repeats", "method", "seed")},
            rubric=rubric and f"{rubric['id']}@{rubric['version']}",
            reasons=tuple(json.loads(row["reasons"] or "[]")),
            fits=len(json.loads(row["fits"] or "[]")),
        )

    def report(self, tenant: str, name: str) -> str:
        """Return the report as JSON. Raises JobStateError if there is none, or none yet."""
        return self._read_column(tenant, name, CALIBRATIONS.c.report)

    def fits(self, tenant: str, name: str) -> str:
        """Return the fits with their file names, as JSON. Raises JobStateError if there are none, or none yet."""
        return self._read_column(tenant, name, CALIBRATIONS.c.fits)

    def _read_column(self, tenant: str, name: str, column: sa.Column[Any]) -> str:
        job = self.find(tenant, name)
        if job.status != "completed":
            raise JobStateError(f"the calibration is {job.status}; only a completed one has a report and fits")
        found = next(iter(self.database.read_column(sa.select(column).where(CALIBRATIONS.c.batch == name))), None)
        if found is None:  # deleted meanwhile
            raise UnknownJobError("no calibration of that id")
        return found


def find_pending_fit(database: Database, batch: str) -> PendingFit | None:
    """Find what to fit before a batch ends; None if it is no calibration, was cancelled, or has ended."""
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


def store_fit_outcome(connection: sa.Connection, batch: str, outcome: FitOutcome) -> None:
    """Store the outcome of a calibration's fit."""
    values = {name: getattr(outcome, name) for name in ("unanswered", "fits", "report")}
    values["reasons"] = json.dumps(outcome.reasons)
    connection.execute(sa.update(CALIBRATIONS).where(CALIBRATIONS.c.batch == batch).values(values))
