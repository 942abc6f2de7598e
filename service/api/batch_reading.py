"""Reading a batch over HTTP: its results and errors line by line, their summary, and how it gets on."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from typing import Any, cast

from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from service.api.batch_docs import BOUND, SUMMED
from service.api.batch_store import BatchStore
from service.api.openapi import JSON
from service.api.queries import read_query
from service.core.report import Report
from service.core.summary import Wishes
from service.errors import BatchStateError, InputError, UnknownBatchError
from service.io.engine import Engine
from service.io.jsonbody import Limits, parse
from service.io.store.batch import BATCH, Batch
from service.io.store.results import error_pages, result_pages, window
from service.summaries import (
    SummaryRequest,
    as_json,
    declared_in,
    families_of,
    read_report,
    read_summary_request,
    summarized,
)

NDJSON = "application/x-ndjson"
EVENTS = "text/event-stream"

POLL = 0.5
"""Seconds between two looks at a batch that is watched."""

SILENCE = 15.0
"""Seconds without a change after which a watcher is told that somebody is still there."""


MAX_SUMMED = 25_000
"""Reports that are summed up in one request at most: they are all in memory at once, some 8 KB for a small one."""


class Reading:
    """The handlers over one store."""

    def __init__(self, engine: Engine, limits: Limits, store: BatchStore, *, poll: float = POLL) -> None:
        """`poll`: seconds between two looks at a batch that is watched."""
        self._declared = declared_in(engine.shelf.find)
        self._limits = limits
        self._store = store
        self._poll = poll

    async def read_results(self, request: Request) -> Response:
        """Read the reports of a batch in the order of its items; while it runs, as far as all before them are done."""
        return await self._lines(request, result_pages)

    async def read_errors(self, request: Request) -> Response:
        """Read why items have no report; of a batch that has ended, of the items never run too."""
        return await self._lines(request, error_pages)

    async def summarize_batch(self, request: Request) -> Response:
        """Sum up the reports so far, with a gate on them if assertions are given."""
        batch = await self._store.found(request)
        wanted = _wanted(read_query(request.query_params, SUMMED), self._limits)
        if batch.request_counts.completed > MAX_SUMMED:
            told = f"{batch.request_counts.completed} reports, and at most {MAX_SUMMED} are summed up here"
            raise InputError.at("", f"{told}; read the results, and use `callgrade summarize`")
        return Response(await self._store.at_length(request, lambda: self._summary(batch, wanted)), media_type=JSON)

    async def watch_batch(self, request: Request) -> Response:
        """Watch a batch: an event with the whole of it whenever it changes, until it has ended."""
        batch = await self._store.found(request)
        told = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self._events(request, batch), headers=told, media_type=EVENTS)

    async def _lines(self, request: Request, pages: Callable[..., Iterator[bytes]]) -> Response:
        database = self._store.batches.database
        asked = cast("dict[str, Any]", read_query(request.query_params, BOUND))
        batch = await self._store.found(request)
        found = await self._store.asked(request, lambda: window(database, batch, **asked))
        told = {
            "x-callgrade-next-offset": str(found.end),
            "x-callgrade-complete": str(found.complete).lower(),
            "cache-control": "no-store",
        }
        return StreamingResponse(
            self._streamed(request, pages(database, batch, found)), headers=told, media_type=NDJSON
        )

    async def _streamed(self, request: Request, pages: Iterator[bytes]) -> AsyncGenerator[bytes]:
        while (page := await self._store.once(request, lambda: next(pages, None))) is not None:
            yield page

    def _summary(self, batch: Batch, wanted: SummaryRequest) -> bytes:
        reports = tuple(self._reports(batch))
        if not reports:
            raise BatchStateError("no item of the batch has a report yet")
        wishes = Wishes(families=families_of(reports, self._declared), by=wanted.by)
        return as_json(summarized(reports, wishes, wanted.assertions, wanted.labels))

    def _reports(self, batch: Batch) -> Iterator[Report]:
        database = self._store.batches.database
        for page in result_pages(database, batch, window(database, batch)):
            for line in page.splitlines():
                yield read_report(json.loads(line)["report"])

    async def _events(self, request: Request, batch: Batch) -> AsyncGenerator[bytes]:
        now = asyncio.get_running_loop().time
        last, at = request.headers.get("last-event-id"), now()
        yield b"retry: 2000\n\n"
        while True:
            data = BATCH.dump_json(batch)
            name = hashlib.sha256(data).hexdigest()[:16]
            if name != last or batch.ended:
                yield b"id: %b\nevent: batch\ndata: %b\n\n" % (name.encode(), data)
                last, at = name, now()
            if batch.ended:
                return
            if now() - at >= SILENCE:
                yield b": still here\n\n"
                at = now()
            await asyncio.sleep(self._poll)
            if request.app.state.stopping.is_set():  # whoever watches asks again, and another process answers
                return
            try:
                batch = await self._store.found(request)
            except UnknownBatchError:  # deleted meanwhile
                return


def _wanted(asked: Mapping[str, JsonValue], limits: Limits) -> SummaryRequest:
    """What of a summary is wanted; the reports are found later."""
    body: dict[str, JsonValue] = {"reports": [{}]}
    if "by" in asked:
        body["by"] = cast("list[JsonValue]", [name for name in str(asked["by"]).split(",") if name])
    for name in asked.keys() & {"assertions", "labels"}:
        try:
            body[name] = parse(str(asked[name]).encode(), limits)
        except InputError as error:  # in the URL it is no body that is malformed
            raise InputError.at("", f"query parameter {name}: {error.problems[0].message}") from None
    return read_summary_request(body)
