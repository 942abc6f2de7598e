"""Reading a batch over HTTP: its results and errors line by line, their summary, and its progress."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query
from pydantic import Field, JsonValue
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from service.api.contract import JSON, JobId, LinesResponse, QueryModel, describe_problems
from service.api.store_access import JobStore
from service.core.report import Report
from service.errors import InputError, JobStateError, UnknownJobError
from service.reading.strict_json import Limits, parse_strictly
from service.reporting.summaries import (
    SummaryRequest,
    read_report,
    read_summary_request,
    render_json,
    summarize_reports,
)
from service.reporting.summary import Summary, SummaryOptions
from service.store.jobs.jobs import BATCH, Batch
from service.store.jobs.results import Window, find_window, read_error_pages, read_result_pages

POLL_S = 0.5
"""Seconds between two looks at a batch that is watched."""

KEEP_ALIVE_S = 15.0
"""Seconds without a change after which a watcher gets a comment to keep the connection alive."""


MAX_ITEMS = 10_000_000
"""The largest number of items that a setting may allow for a batch."""

MAX_SUMMARIZED_REPORTS = 25_000
"""Most reports that one request summarizes: they are all in memory at once, some 8 KB for a small one."""


_WINDOW_HEADERS = (
    ("Next-Offset", "The offset to go on with: that of the first item not looked at", {"type": "integer"}),
    ("Unfinished", "Items of the batch that were not done yet", {"type": "integer"}),
    ("Complete", "Whether nothing comes after it, now or later", {"type": "string", "enum": ["true", "false"]}),
)
LINES: dict[int | str, Any] = {
    200: {
        "description": "A JSON object a line: `custom_id`, `index` (from 0), and `report` or `error`",
        "headers": {
            f"X-Callgrade-{name}": {"description": text, "schema": form} for name, text, form in _WINDOW_HEADERS
        },
    }
}


class EventsResponse(StreamingResponse):
    """Server-sent events."""

    media_type = "text/event-stream"


class WindowQuery(QueryModel):
    """Which items of a batch to look at."""

    offset: Annotated[int, Field(ge=0, le=MAX_ITEMS)] | None = None
    """The position of the first item, from 0. With neither this nor `limit`: all items that are done, with gaps"""
    limit: Annotated[int, Field(ge=1, le=MAX_ITEMS)] | None = None
    """How many items to look at; each has a line in the results or in the errors"""


class BatchSummaryQuery(QueryModel):
    """What to put into the summary."""

    by: str | None = None
    """Tags to slice by, separated by commas. Absent: step, tool, difficulty and model, if items have them"""
    assertions: str | None = None
    """What must hold: a JSON list of assertions as `callgrade summarize --assert` takes them, e.g. ["pass_rate >= 0.95"]"""
    labels: str | None = None
    """People's labels of some of the reports: a JSON list of what `callgrade summarize --labels` takes as lines"""


class BatchReading:
    """The handlers over one store."""

    def __init__(self, router: APIRouter, limits: Limits, store: JobStore[Batch]) -> None:
        self._limits = limits
        self._store = store
        one = "/v1/batches/{batch_id}"
        router.get(f"{one}/results", response_class=LinesResponse, responses=LINES)(self.read_results)
        router.get(f"{one}/errors", response_class=LinesResponse, responses=LINES)(self.read_errors)
        router.get(f"{one}/summary", response_model=Summary, responses=describe_problems(409))(self.summarize_batch)
        router.get(f"{one}/events", response_class=EventsResponse)(self.watch_batch)

    async def read_results(self, request: Request, batch_id: JobId, query: Annotated[WindowQuery, Query()]) -> Response:
        """Read the reports of a batch in the order of its items; while it runs, those so far.

        With an `offset` or a `limit`, up to the first item that is not done: so the same ones always give the same bytes.
        """
        return await self._send_lines(request, batch_id, query, read_result_pages)

    async def read_errors(self, request: Request, batch_id: JobId, query: Annotated[WindowQuery, Query()]) -> Response:
        """Read why items have no report; of an ended batch, also for the items that were never run."""
        return await self._send_lines(request, batch_id, query, read_error_pages)

    async def summarize_batch(
        self, request: Request, batch_id: JobId, query: Annotated[BatchSummaryQuery, Query()]
    ) -> Response:
        """Summarize the reports so far, with a gate on them if assertions are given."""
        batch = await self._store.find(request, batch_id)
        summary_request = _read_summary_query(query.model_dump(exclude_none=True), self._limits)
        return Response(render_json(await self.summarize(request, batch, summary_request)), media_type=JSON)

    async def summarize(self, request: Request, batch: Batch, summary_request: SummaryRequest) -> Summary:
        """Summarize the reports so far; InputError if there are too many, JobStateError if there is none."""
        if batch.request_counts.completed > MAX_SUMMARIZED_REPORTS:
            excess = (
                f"{batch.request_counts.completed} reports, and at most {MAX_SUMMARIZED_REPORTS} are summed up here"
            )
            raise InputError.at("", f"{excess}; read the results, and use `callgrade summarize`")
        return await self._store.run_long(request, lambda: self._summarize(batch, summary_request))

    async def watch_batch(self, request: Request, batch_id: JobId) -> EventsResponse:
        """Watch a batch: an event with the whole batch whenever it changes, until it has ended."""
        batch = await self._store.find(request, batch_id)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return EventsResponse(self._send_events(request, batch), headers=headers)

    async def _send_lines(
        self, request: Request, batch_id: str, query: WindowQuery, pages: Callable[..., Iterator[bytes]]
    ) -> LinesResponse:
        database, offset, limit = self._store.jobs.database, query.offset, query.limit
        batch = await self._store.find(request, batch_id)
        window = await self._store.run(request, lambda: find_window(database, batch, offset=offset or 0, limit=limit))
        counts = batch.request_counts
        headers = {
            "x-callgrade-unfinished": str(0 if batch.ended else counts.total - counts.completed - counts.failed),
            "x-callgrade-next-offset": str(window.end),
            "x-callgrade-complete": str(window.complete).lower(),
            "cache-control": "no-store",
        }
        shown = Window(0, counts.total, complete=window.complete) if offset is None and limit is None else window
        lines = self._store.stream(request, pages(database, batch, shown))
        return LinesResponse(lines, headers=headers)

    def _summarize(self, batch: Batch, summary_request: SummaryRequest) -> Summary:
        reports = tuple(self._read_reports(batch))
        if not reports:
            raise JobStateError("no item of the batch has a report yet")
        options = SummaryOptions(by=summary_request.by)
        counts = batch.request_counts
        return summarize_reports(
            reports,
            options,
            summary_request.assertions,
            summary_request.labels,
            unfinished=max(0, counts.total - counts.failed - len(reports)),
            unscored=counts.failed,
        )

    def _read_reports(self, batch: Batch) -> Iterator[Report]:
        everything = Window(0, batch.request_counts.total, complete=batch.ended)
        for page in read_result_pages(self._store.jobs.database, batch, everything):
            for line in page.splitlines():
                yield read_report(json.loads(line)["report"])

    async def _send_events(self, request: Request, batch: Batch) -> AsyncGenerator[bytes]:
        now = asyncio.get_running_loop().time
        last, sent_at = request.headers.get("last-event-id"), now()
        yield b"retry: 2000\n\n"
        while True:
            data = BATCH.dump_json(batch)
            name = hashlib.sha256(data).hexdigest()[:16]
            if name != last or batch.ended:
                yield b"id: %b\nevent: batch\ndata: %b\n\n" % (name.encode(), data)
                last, sent_at = name, now()
            if batch.ended:
                return
            if now() - sent_at >= KEEP_ALIVE_S:
                yield b": still here\n\n"
                sent_at = now()
            await asyncio.sleep(POLL_S)
            if request.app.state.stopping.is_set():  # the watcher asks again, and another process answers
                return
            try:
                batch = await self._store.find(request, batch.id)
            except UnknownJobError:  # deleted meanwhile
                return


def _read_summary_query(query: Mapping[str, JsonValue], limits: Limits) -> SummaryRequest:
    """Read what to put into the summary; the reports are found later."""
    body: dict[str, JsonValue] = {}
    if "by" in query:
        body["by"] = cast("list[JsonValue]", [name for name in str(query["by"]).split(",") if name])
    for name in query.keys() & {"assertions", "labels"}:
        try:
            body[name] = parse_strictly(str(query[name]).encode(), limits)
        except InputError as error:  # the URL is wrong, not the body
            message = f"expected a JSON list, in the query: {error.problems[0].message}"
            raise InputError.at(f"/{name}", message) from None
    return read_summary_request(body)
