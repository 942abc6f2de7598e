"""The items of a batch over HTTP: listed and counted by outcome, and each in full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import Request

from service.api.contract import JobId, QueryModel
from service.api.routes.batch_reading import MAX_ITEMS
from service.api.store_access import JobStore
from service.core.rubric import Stage
from service.reporting.breaks import Breakdown, OutcomeKind, build_breakdown
from service.store.database import Database
from service.store.jobs.items import (
    FailureGroup,
    ItemChoice,
    ListedItems,
    WholeItem,
    count_outcomes,
    find_item,
    group_failures,
    list_items,
)
from service.store.jobs.jobs import Batch

DEFAULT_LIMIT = 50
"""Items in a list if the query does not say."""


class ItemChoiceQuery(QueryModel):
    """Which items of a batch to take."""

    verdict: Literal["pass", "warn", "fail", "undecided", "not_applicable", "error"] | None = None
    """The verdict of the items; `error`: they could not be scored"""
    stage: Stage | None = None
    """The stage at which they failed first"""
    finding: Annotated[str, Field(max_length=200)] | None = None
    """The code of the first finding there, or the criterion if it has none"""
    tool: Annotated[str, Field(max_length=200)] | None = None
    """The tool of the call at which they failed; empty: at no call"""
    failed: Stage | None = None
    """A stage that failed, whether or not another one failed before it"""


class ItemPageQuery(ItemChoiceQuery):
    """Which items of a batch to list."""

    limit: int = Field(default=DEFAULT_LIMIT, ge=1, le=500)
    """Most items in the answer; absent: 50"""
    after: Annotated[int, Field(ge=0, le=MAX_ITEMS)] | None = None
    """The index of an item; only those after it are listed"""


@dataclass(frozen=True, slots=True)
class BatchBreakdown:
    """A summary of the outcomes of a batch."""

    whole: Breakdown
    failures: tuple[FailureGroup, ...]
    """The failed items by where they failed first, the largest group first; at most 200 groups."""


class BatchItemReading:
    """The handlers over one store."""

    def __init__(self, router: APIRouter, store: JobStore[Batch]) -> None:
        self._store = store
        router.get("/v1/batches/{batch_id}/breakdown")(self.break_down_batch)
        router.get("/v1/batches/{batch_id}/items")(self.list_batch_items)
        router.get("/v1/batches/{batch_id}/items/{index}")(self.show_batch_item)

    async def list_batch_items(
        self, request: Request, batch_id: JobId, query: Annotated[ItemPageQuery, Query()]
    ) -> ListedItems:
        """List the items of a batch that have an outcome, by outcome."""
        limit, after, choice = query.limit, query.after, build_choice(query)
        batch, database = await self._store.find(request, batch_id), self._store.jobs.database
        return await self._store.run(request, lambda: list_items(database, batch.id, choice, limit=limit, after=after))

    async def show_batch_item(
        self,
        request: Request,
        batch_id: JobId,
        index: Annotated[int, Path(ge=0, description="The position of the item in its batch, from 0")],
        query: Annotated[ItemChoiceQuery, Query()],
    ) -> WholeItem:
        """Show one item of a batch: what was sent, and its report or why it has none."""
        batch, database = await self._store.find(request, batch_id), self._store.jobs.database
        choice, place = build_choice(query), min(index, MAX_ITEMS)
        found = await self._store.run(request, lambda: find_item(database, batch.id, place, choice))
        if found is None:
            raise HTTPException(404, "no item at that index of the batch")
        return found

    async def break_down_batch(self, request: Request, batch_id: JobId) -> BatchBreakdown:
        """Count the outcomes of a batch so far: verdicts, stages, and where items failed first."""
        batch, database = await self._store.find(request, batch_id), self._store.jobs.database
        return await self._store.run(request, lambda: _break_down(database, batch))


def _break_down(database: Database, batch: Batch) -> BatchBreakdown:
    counts = {OutcomeKind(*kind): n for kind, n in count_outcomes(database, batch.id).items()}
    unfinished = max(0, batch.request_counts.total - sum(counts.values()))
    return BatchBreakdown(build_breakdown(counts, unfinished=unfinished), group_failures(database, batch.id))


def build_choice(query: ItemChoiceQuery) -> ItemChoice:
    """Build the choice that a query makes."""
    return ItemChoice(query.verdict, query.stage, query.finding, query.tool, query.failed)
