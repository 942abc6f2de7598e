"""The lists of runs: batches, and calibration runs."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from service.api.page_route import PageRoute
from service.api.parts import ApiParts
from service.store.jobs.job import STATUSES
from service.web.page import NavLink, PageSet, build_twin, page, render


class RunLists:
    """The handlers over the jobs of both kinds: each lists what its operation lists for the same query."""

    def __init__(self, parts: ApiParts) -> None:
        self._batches = parts.batches
        self._calibrations = parts.calibrations

    async def list_batches(self, request: Request) -> Response:
        """List batches, newest first."""
        return self._render(request, await self._batches.list_jobs(request), "/runs", "Batches")

    async def list_calibrations(self, request: Request) -> Response:
        """List calibration runs, newest first."""
        return self._render(request, await self._calibrations.list_jobs(request), "/calibrations", "Calibration runs")

    def _render(self, request: Request, jobs: object, base: str, title: str) -> Response:
        query = request.query_params
        return render(
            request,
            "runs.html",
            twin=build_twin(request, "/v1/batches" if base == "/runs" else "/v1/calibrations"),
            jobs=jobs,
            base=base,
            title=title,
            statuses=STATUSES,
            chosen=query.get("status", ""),
            first="after" not in query,
        )


def build_run_lists(parts: ApiParts) -> Sequence[PageRoute]:
    """Build both lists."""
    lists = RunLists(parts)
    return [
        page("/runs", lists.list_batches, needs="batch"),
        page("/calibrations", lists.list_calibrations, needs="calibrate"),
    ]


PAGES = PageSet(build_run_lists, NavLink(20, "Runs", "/runs", "batch"))
