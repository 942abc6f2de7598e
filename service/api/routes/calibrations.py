"""Calibrations over HTTP: judges are asked about labelled items as in a batch, then their replies are fitted."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar, cast

from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from service.api.contract import JSON, JobId, QueryModel, describe_lines
from service.api.routes.jobs import IdempotencyKey, JobRoutes
from service.api.routes.labels import LABELLED_EXAMPLE, LABELLED_LINES
from service.core.judging.fits.fit import Fit
from service.core.models.kinds import FrozenModel, Several
from service.jobs.calibrations import MAX_BODY_BYTES, CalibrationDraft, CalibrationOptions
from service.store.jobs.calibrations import Calibration, CalibrationList, Calibrations

T = TypeVar("T")

REPORT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["version", "source", "seed", "share", "draws", "labels", "judges", "juries", "remarks", "libraries"],
    "description": "What `callgrade calibrate run` writes as report.json",
}


SANDBOX_HEADERS = {"content-security-policy": "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'"}
"""A report quotes what models and people wrote: whatever that is, none of it may run."""


class FitFile(FrozenModel):
    """A fit with the name of its file."""

    name: str
    fit: Fit


class Fits(FrozenModel):
    """The fits of a calibration. They apply once an operator installs them, or puts them into `fits` in CALLGRADE_HOME."""

    data: Several[FitFile]


class ReportQuery(QueryModel):
    """The format of a report."""

    format: Literal["json", "markdown", "html"] = "json"
    """How the report is written; absent: json"""


class CalibrationRoutes(JobRoutes[Calibration]):
    """The handlers over calibrations."""

    noun, plural = "calibration", "calibrations"
    record, listed, draft = Calibration, CalibrationList, CalibrationDraft
    max_job_bytes = MAX_BODY_BYTES

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        text = {"schema": {"type": "string"}}
        report: dict[int | str, Any] = {
            200: {"content": {JSON: {"schema": REPORT_SCHEMA}, "text/markdown": text, "text/html": text}}
        }
        one = "/v1/calibrations/{calibration_id}"
        self.router.get(f"{one}/report", responses=report)(self.read_calibration_report)
        self.router.get(f"{one}/fits", response_model=Fits)(self.read_fits)
        self.add_submission(self.submit_calibration, describe_lines(LABELLED_LINES, LABELLED_EXAMPLE))

    async def submit_calibration(
        self, request: Request, options: Annotated[CalibrationOptions, Query()], idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Submit labelled items as JSON Lines, with options in the query. Gzip is accepted.

        Judges are asked about the items as in a batch, unless there are recorded predictions; then calibration maps are
        fitted.
        """
        return await self.submit(request, options, idempotency_key)

    async def cancel_job(self, request: Request, job_id: JobId) -> Calibration:
        """Cancel a calibration: nothing is fitted. One that has ended stays as it is."""
        return await super().cancel_job(request, job_id)

    async def read_calibration_report(
        self, request: Request, calibration_id: JobId, query: Annotated[ReportQuery, Query()]
    ) -> Response:
        """Read the report of a completed calibration, as JSON, Markdown or one HTML page."""
        form = query.format
        report = await self.store.change(request, calibration_id, self._calibrations.report)
        if form == "json":
            return Response(report, media_type=JSON)
        page = await self.store.run_long(request, lambda: _render_report(report, form))
        return Response(page, headers=SANDBOX_HEADERS, media_type=f"text/{form}")

    async def read_fits(self, request: Request, calibration_id: JobId) -> Response:
        """Read the fits of a completed calibration. Reading does not apply them."""
        files = await self.store.change(request, calibration_id, self._calibrations.fits)
        return Response(f'{{"data":{files}}}', media_type=JSON)

    @property
    def _calibrations(self) -> Calibrations:
        return cast("Calibrations", self.store.jobs)


def _render_report(report: str, form: str) -> str:
    from service.calibration.report import rendering  # noqa: PLC0415 (it loads scipy, and few requests need it)
    from service.calibration.results import parse_calibration_report  # noqa: PLC0415

    render = rendering.render_report_markdown if form == "markdown" else rendering.render_report_page
    return render(parse_calibration_report(report))
