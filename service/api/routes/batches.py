"""Batches over HTTP: jobs with a result for each item, for their sender to read."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from service.api.operations import JSON, TEXT, Answer, Operation, RequestBody, describe_path_parameter
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

INDEX = describe_path_parameter("index", "The position of an item in its batch, from 0", "0")

WINDOW = {
    "X-Callgrade-Next-Offset": {
        "description": "The offset to go on with: that of the first item not looked at",
        "schema": {"type": "integer"},
    },
    "X-Callgrade-Unfinished": {
        "description": "Items of the batch that were not done yet",
        "schema": {"type": "integer"},
    },
    "X-Callgrade-Complete": {
        "description": "Whether nothing comes after it, now or later",
        "schema": {"type": "string", "enum": ["true", "false"]},
    },
}


class BatchPageQuery(JobPageQuery):
    """Which batches to list."""

    after: Annotated[str, Field(pattern="^batch_[0-9a-f]{32}$")] | None = None
    """The id of a batch; only older ones are listed"""


class BatchRoutes(JobRoutes[Batch]):
    """The handlers over batches."""

    noun, plural = "batch", "batches"
    record, listed, draft, options, page = Batch, BatchList, BatchDraft, BatchOptions, BatchPageQuery
    body = RequestBody(BatchRequest, EXAMPLE, lines="lines of `BatchItem`")
    quote_answers = (Answer({JSON: Quote}, 200, "What the batch would take; nothing was kept"),)

    def list_own(self) -> list[Operation]:
        """List its results, errors, summary, progress and items."""
        self.reading, self.items = (
            BatchReading(self._engine, self._bounds.limits, self.store),
            BatchItemReading(self.store),
        )
        reading, items, build = self.reading, self.items, self.build_job_operation
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


def _describe_lines(description: str) -> list[Answer]:
    """Describe an answer in lines: JSON objects with `custom_id`, `index` and the member that `description` names."""
    lines = TEXT | {"description": f"A JSON object a line: `custom_id`, `index` (from 0) and {description}"}
    return [Answer({NDJSON: lines}, more={"headers": WINDOW})]
