"""Batches over HTTP: jobs whose results are read by whoever sent them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from service.api.operations import JSON, TEXT, Answer, Operation, RequestBody, describe_named
from service.api.routes.batch_items import BatchBreakdown, BatchItemReading, ItemChoiceQuery, ItemPageQuery
from service.api.routes.batch_reading import EVENTS, NDJSON, BatchReading, BatchSummaryQuery, WindowQuery
from service.api.routes.jobs import JobPageQuery, JobRoutes
from service.jobs.admission import BatchDraft
from service.jobs.quotes import Quote
from service.jobs.submissions import BatchOptions, BatchRequest
from service.reporting.summary import Summary
from service.store.jobs.batches import Batch, BatchList
from service.store.jobs.items import ListedItems, WholeItem

EXAMPLE = {
    "items": [
        {
            "custom_id": "greeting",
            "trace": {"format": "openai", "messages": [{"role": "user", "content": "Hi"}]},
            "expected": {"calls": "none"},
        }
    ],
    "tags": {"suite": "nightly"},
}

INDEX = describe_named("index", "The position of an item in its batch, from 0", "0")

WINDOW = {
    "X-Callgrade-Next-Offset": {
        "description": "The offset to go on with: that of the first item which was not looked at",
        "schema": {"type": "integer"},
    },
    "X-Callgrade-Complete": {
        "description": "Whether nothing comes after it, now or later",
        "schema": {"type": "string", "enum": ["true", "false"]},
    },
}


class BatchPageQuery(JobPageQuery):
    """Which batches are listed."""

    after: Annotated[str, Field(pattern="^batch_[0-9a-f]{32}$")] | None = None
    """The id of a batch; those older than it are given"""


class BatchRoutes(JobRoutes[Batch]):
    """The handlers over batches."""

    noun, plural = "batch", "batches"
    record, listed, draft, options, page = Batch, BatchList, BatchDraft, BatchOptions, BatchPageQuery
    takes = RequestBody(BatchRequest, EXAMPLE, lines="lines of `BatchItem`")
    quotes = (Answer({JSON: Quote}, 200, "What the batch would take; nothing was kept"),)

    def list_own(self) -> list[Operation]:
        """Its results, its errors, their summary, and how it gets on."""
        self.reading, self.items = (
            BatchReading(self._engine, self._bounds.limits, self.store),
            BatchItemReading(self.store, self._engine.registry),
        )
        reading, items, build = self.reading, self.items, self.build_named
        results, errors = _describe_lines("`report`, a `Report`"), _describe_lines("`error`, a `ProblemDetails`")
        events = [Answer({EVENTS: TEXT | {"description": "Events named `batch`, each with a `Batch` as data"}})]
        return [
            build("GET", "/results", reading.read_results, results, 422, query=WindowQuery),
            build("GET", "/errors", reading.read_errors, errors, 422, query=WindowQuery),
            build("GET", "/summary", reading.summarize_batch, Summary, 409, 422, query=BatchSummaryQuery),
            build("GET", "/events", reading.watch_batch, events),
            build("GET", "/breakdown", items.break_down_batch, BatchBreakdown),
            build("GET", "/items", items.list_batch_items, ListedItems, 422, query=ItemPageQuery),
            build(
                "GET",
                "/items/{index}",
                items.show_batch_item,
                WholeItem,
                422,
                query=ItemChoiceQuery,
                parameters=[INDEX],
            ),
        ]


def _describe_lines(told: str) -> list[Answer]:
    """What an operation gives that answers with lines: JSON objects with `custom_id`, `index` and what is `told`."""
    lines = TEXT | {"description": f"A JSON object a line: `custom_id`, `index` (from 0) and {told}"}
    return [Answer({NDJSON: lines}, more={"headers": WINDOW})]
