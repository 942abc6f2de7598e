"""Calibrations over HTTP: judges are asked about labelled items as in a batch, then their replies are fitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar, cast

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from service.api.operations import JSON, TEXT, Answer, Operation, RequestBody
from service.api.queries import read_query
from service.api.routes.jobs import JobPageQuery, JobRoutes
from service.core.judging.fits import Fit
from service.core.models.kinds import FrozenModel, Several
from service.jobs.calibrations import MAX_BODY_BYTES, CalibrationDraft, CalibrationOptions
from service.store.jobs.calibrations import Calibration, CalibrationList, Calibrations

T = TypeVar("T")

EXAMPLE = [
    {
        "id": "refund-1",
        "criterion": "result_groundedness",
        "group": "refund-1",
        "payload": {"amount_cents": 5400},
        "answer": "Refunded $54.00.",
        "labels": [{"annotator": "ana", "label": True}],
    },
    {"id": "refund-1", "criterion": "result_groundedness", "raw": 1.0},
]

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


class CalibrationPageQuery(JobPageQuery):
    """Which calibrations to list."""

    after: Annotated[str, Field(pattern="^calibration_[0-9a-f]{32}$")] | None = None
    """The id of a calibration; only older ones are listed"""


class ReportQuery(FrozenModel):
    """The format of a report."""

    format: Literal["json", "markdown", "html"] = "json"
    """How the report is written; absent: json"""


class CalibrationRoutes(JobRoutes[Calibration]):
    """The handlers over calibrations."""

    noun, plural = "calibration", "calibrations"
    record, listed, draft = Calibration, CalibrationList, CalibrationDraft
    options, page = CalibrationOptions, CalibrationPageQuery
    body = RequestBody(None, lines="lines of `LabelledItem`, and of `Prediction` (those with `raw`)", example=EXAMPLE)
    max_job_bytes = MAX_BODY_BYTES

    def list_own(self) -> list[Operation]:
        """List its report and its fits."""
        report = [Answer({JSON: REPORT_SCHEMA, "text/markdown": TEXT, "text/html": TEXT})]
        return [
            self.build("GET", "/{job_id}/report", self.read_calibration_report, report, 409, query=ReportQuery),
            self.build("GET", "/{job_id}/fits", self.read_fits, Fits, 409),
        ]

    async def submit_job(self, request: Request) -> Response:
        """Submit labelled items as JSON Lines, with options in the query. Gzip is accepted.

        Judges are asked about the items as in a batch, unless there are recorded predictions; then calibration maps are
        fitted.
        """
        return await super().submit_job(request)

    async def cancel_job(self, request: Request) -> Calibration:
        """Cancel a calibration: nothing is fitted. One that has ended stays as it is."""
        return await super().cancel_job(request)

    async def read_calibration_report(self, request: Request) -> Response:
        """Read the report of a completed calibration, as JSON, Markdown or one HTML page."""
        form = read_query(request.query_params, ReportQuery).format
        report = await self.store.change(request, self._calibrations.report)
        if form == "json":
            return Response(report, media_type=JSON)
        page = await self.store.run_long(request, lambda: _render_report(report, form))
        return Response(page, headers=SANDBOX_HEADERS, media_type=f"text/{form}")

    async def read_report(self, request: Request, work: Callable[[Callable[[str, str], str]], T]) -> T:
        """Call `work` with a reader of the tenant's reports, and return its result; it may take long."""
        return await self.store.run_long(request, lambda: work(self._calibrations.report))

    async def read_fits(self, request: Request) -> Response:
        """Read the fits of a completed calibration. Reading does not apply them."""
        files = await self.store.change(request, self._calibrations.fits)
        return Response(f'{{"data":{files}}}', media_type=JSON)

    @property
    def _calibrations(self) -> Calibrations:
        return cast("Calibrations", self.store.jobs)


def _render_report(report: str, form: str) -> str:
    from service.calibration.report import rendering  # noqa: PLC0415 (it loads scipy, and few requests need it)
    from service.calibration.results import read_report  # noqa: PLC0415

    render = rendering.render_report_markdown if form == "markdown" else rendering.render_report_page
    return render(read_report(report))
