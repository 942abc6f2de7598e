"""The page of one batch: its progress, its outcomes and where it failed; its summary, and its downloads."""

from __future__ import annotations

import json
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from service.api.page_route import PageHandler, PageRoute
from service.api.parts import ApiParts
from service.api.routes.batch_reading import WindowQuery
from service.core.rubric import STAGES
from service.errors import InputError, JobStateError
from service.problems import find_status
from service.reporting.summaries import read_summary_request
from service.reporting.summary import Summary
from service.store.jobs.jobs import Batch
from service.web.page import PageSet, build_twin, page, redirect, render

MAX_INLINE_REPORTS = 400
"""Most reports that the page of a batch summarizes while its reader waits; for more there is a page of its own."""


class BatchPages:
    """The handlers over batches; each shows what an operation returns."""

    def __init__(self, parts: ApiParts) -> None:
        self._batches = parts.batches

    async def show_batch(self, request: Request) -> Response:
        """Show the page of a batch."""
        batch_id: str = request.path_params["batch_id"]
        if batch_id.startswith("calibration_"):
            return redirect(f"/calibrations/{batch_id}")
        batch = await self._batches.store.find(request, request.path_params["batch_id"])
        breakdown = await self._batches.items.break_down_batch(request, batch_id)
        small = batch.ended and 0 < batch.request_counts.completed <= MAX_INLINE_REPORTS
        return render(
            request,
            "batch.html",
            twin=f"/v1/batches/{batch.id}/breakdown",
            job=batch,
            base=f"/batches/{batch.id}",
            whole=breakdown.whole,
            failures=breakdown.failures,
            stages=STAGES,
            unlisted=batch.request_counts.completed + batch.request_counts.failed - breakdown.whole.items
            if batch.ended
            else 0,
            summary=await self._summarize(request, batch, ()) if small else None,
        )

    async def show_summary(self, request: Request) -> Response:
        """Show the summary of its reports, with a gate on them if something is asserted."""
        batch = await self._batches.store.find(request, request.path_params["batch_id"])
        asserted = request.query_params.get("assert", "")
        assertions = [line.strip() for line in asserted.splitlines() if line.strip()]
        query = {"assertions": json.dumps(assertions)} if assertions else {}
        twin = build_twin(request, f"/v1/batches/{batch.id}/summary", **query)
        summary, refusal, status = None, None, 200
        try:
            summary = await self._summarize(request, batch, assertions)
        except (InputError, JobStateError) as error:
            refusal, status = str(error), find_status(error)
        return render(
            request,
            "summary.html",
            status=status,
            twin=twin,
            job=batch,
            asserted=asserted,
            summary=summary,
            refusal=refusal,
        )

    async def _summarize(self, request: Request, batch: Batch, assertions: Sequence[str]) -> Summary:
        summary_request = read_summary_request({"assertions": list(assertions)} if assertions else {})
        return await self._batches.reading.summarize(request, batch, summary_request)


def build_batch_pages(parts: ApiParts) -> Sequence[PageRoute]:
    """Build the page of a batch, and what is below it."""
    pages, reading = BatchPages(parts), parts.batches.reading

    def name(request: Request) -> str:
        return request.path_params["batch_id"]

    below: dict[str, PageHandler] = {
        "": pages.show_batch,
        "/summary": pages.show_summary,
        "/events": lambda one: reading.watch_batch(one, name(one)),
        "/results": lambda one: reading.read_results(one, name(one), WindowQuery()),
        "/errors": lambda one: reading.read_errors(one, name(one), WindowQuery()),
    }
    return [page(f"/batches/{{batch_id}}{path}", handler, needs="batch") for path, handler in below.items()]


PAGES = PageSet(build_batch_pages)
