"""The lists of batches and calibration runs, and the page of one calibration run."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from service.api.page_route import PageRoute
from service.api.parts import ApiParts
from service.api.routes.calibrations import ReportQuery
from service.api.routes.jobs import JobPageQuery
from service.store.jobs.job import STATUSES
from service.web.page import NavLink, PageSet, build_twin, page, read_query, render


class JobLists:
    """The handlers over the jobs of both kinds: each lists what its operation lists for the same query."""

    def __init__(self, parts: ApiParts) -> None:
        self._batches = parts.batches
        self._calibrations = parts.calibrations

    async def list_batches(self, request: Request) -> Response:
        """List batches, newest first."""
        jobs = await self._batches.list_jobs(request, read_query(request, JobPageQuery))
        return self._render(request, jobs, "/batches", "Batches")

    async def list_calibrations(self, request: Request) -> Response:
        """List calibration runs, newest first."""
        jobs = await self._calibrations.list_jobs(request, read_query(request, JobPageQuery))
        return self._render(request, jobs, "/calibrations", "Calibration runs")

    async def show_calibration(self, request: Request) -> Response:
        """Show a calibration: its progress, what was fitted, and its report."""
        calibration = await self._calibrations.show_job(request, request.path_params["calibration_id"])
        return render(request, "calibration.html", twin=f"/v1/calibrations/{calibration.id}", job=calibration)

    def _render(self, request: Request, jobs: object, base: str, title: str) -> Response:
        query = request.query_params
        return render(
            request,
            "jobs.html",
            twin=build_twin(request, "/v1/batches" if base == "/batches" else "/v1/calibrations"),
            jobs=jobs,
            base=base,
            title=title,
            statuses=STATUSES,
            chosen=query.get("status", ""),
            first="after" not in query,
        )


def build_job_lists(parts: ApiParts) -> Sequence[PageRoute]:
    """Build both lists, and the page of a calibration, its report and its fits."""
    lists, routes = JobLists(parts), parts.calibrations

    async def read_report(request: Request) -> Response:
        job_id, query = request.path_params["calibration_id"], read_query(request, ReportQuery)
        return await routes.read_calibration_report(request, job_id, query)

    async def read_fits(request: Request) -> Response:
        return await routes.read_fits(request, request.path_params["calibration_id"])

    return [
        page("/batches", lists.list_batches, needs="batch"),
        page("/calibrations", lists.list_calibrations, needs="calibrate"),
        page("/calibrations/{calibration_id}", lists.show_calibration, needs="calibrate"),
        page("/calibrations/{calibration_id}/report", read_report, needs="calibrate"),
        page("/calibrations/{calibration_id}/fits", read_fits, needs="calibrate"),
    ]


PAGES = PageSet(build_job_lists, NavLink(20, "Batches", "/batches", "batch"))
