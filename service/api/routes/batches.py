"""Batches over HTTP: jobs with a result for each item, for their sender to read."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from service.api.operations import JSON, TEXT, Answer, Operation, RequestBody
from service.api.routes.batch_items import BatchBreakdown, BatchItemReading, ItemChoiceQuery, ItemPageQuery
from service.api.routes.batch_reading import EVENTS, NDJSON, BatchReading, BatchSummaryQuery, WindowQuery
from service.api.routes.jobs import JobPageQuery, JobRoutes
from service.jobs.admission import BatchDraft
from service.jobs.quotes import Quote
from service.jobs.submissions import BatchOptions
from service.reporting.summary import Summary
from service.store.jobs.batches import Batch, BatchList
from service.store.jobs.items import ListedItems, WholeItem

EXAMPLE = {
    "custom_id": "greeting",
    "trace": {
        "format": "openai",
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}],
    },
    "expected": {"calls": "none"},
}

_WINDOW_HEADERS = (
    ("Next-Offset", "The offset to go on with: that of the first item not looked at", {"type": "integer"}),
    ("Unfinished", "Items of the batch that were not done yet", {"type": "integer"}),
    ("Complete", "Whether nothing comes after it, now or later", {"type": "string", "enum": ["true", "false"]}),
)
WINDOW = {f"X-Callgrade-{name}": {"description": text, "schema": form} for name, text, form in _WINDOW_HEADERS}


class BatchPageQuery(JobPageQuery):
    """Which batches to list."""

    after: Annotated[str, Field(pattern="^batch_[0-9a-f]{32}$")] | None = None
    """The id of a batch; only older ones are listed"""


class BatchRoutes(JobRoutes[Batch]):
    """The handlers over batches."""

    noun, plural = "batch", "batches"
    record, listed, draft, options, page = Batch, BatchList, BatchDraft, BatchOptions, BatchPageQuery
    body = RequestBody(None, lines="lines of `ScoreRequest`, each with a `custom_id` of its own", example=[EXAMPLE])
    quote_answers = (Answer({JSON: Quote}, 200, "What the batch would take; nothing was kept"),)

    def list_own(self) -> list[Operation]:
        """List its results, errors, summary, progress and items."""
        self.reading = reading = BatchReading(self._bounds.limits, self.store)
        self.items = items = BatchItemReading(self.store)
        results, errors = _describe_lines("`report`, a `Report`"), _describe_lines("`error`, a `ProblemDetails`")
        events = [Answer({EVENTS: TEXT | {"description": "Events named `batch`, each with a `Batch` as data"}})]
        one = "/{job_id}/items/{index}"
        return [
            self.build("GET", "/{job_id}/results", reading.read_results, results, query=WindowQuery),
            self.build("GET", "/{job_id}/errors", reading.read_errors, errors, query=WindowQuery),
            self.build("GET", "/{job_id}/summary", reading.summarize_batch, Summary, 409, query=BatchSummaryQuery),
            self.build("GET", "/{job_id}/events", reading.watch_batch, events),
            self.build("GET", "/{job_id}/breakdown", items.break_down_batch, BatchBreakdown),
            self.build("GET", "/{job_id}/items", items.list_batch_items, ListedItems, query=ItemPageQuery),
            self.build("GET", one, items.show_batch_item, WholeItem, query=ItemChoiceQuery),
        ]


def _describe_lines(description: str) -> list[Answer]:
    """Describe an answer in lines: JSON objects with `custom_id`, `index` and the member that `description` names."""
    lines = TEXT | {"description": f"A JSON object a line: `custom_id`, `index` (from 0) and {description}"}
    return [Answer({NDJSON: lines}, more={"headers": WINDOW})]
