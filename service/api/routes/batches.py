"""Batches over HTTP: jobs with a result for each item, for their sender to read."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from service.api.contract import describe_lines
from service.api.routes.batch_items import BatchItemReading
from service.api.routes.batch_reading import BatchReading
from service.api.routes.jobs import IdempotencyKey, JobRoutes
from service.jobs.quotes import Quote
from service.jobs.submissions import BatchDraft, BatchOptions
from service.store.jobs.jobs import Batch, BatchList

EXAMPLE = {
    "custom_id": "greeting",
    "trace": {
        "format": "openai",
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}],
    },
    "expected": {"calls": "none"},
}


class BatchRoutes(JobRoutes[Batch]):
    """The handlers over batches."""

    noun, plural = "batch", "batches"
    record, listed, draft = Batch, BatchList, BatchDraft

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.reading = BatchReading(self.router, self.bounds.limits, self.store)
        self.items = BatchItemReading(self.router, self.store)
        body = describe_lines("lines of `ScoreRequest`, each with its own `custom_id`", [EXAMPLE])
        quote = {"description": "What the batch would take; nothing was kept", "model": Quote}
        self.add_submission(self.submit_batch, body, {200: quote})

    async def submit_batch(
        self, request: Request, options: Annotated[BatchOptions, Query()], idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Submit a batch as JSON Lines: an item a line, options in the query. Gzip is accepted."""
        return await self.submit(request, options, idempotency_key)
