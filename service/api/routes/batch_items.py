"""The items of a batch over HTTP: listed and counted by what came of them, and each of them whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import Request

from service.api.queries import read_query
from service.api.routes.batch_reading import MAX_ITEMS
from service.api.routes.job_store import JobStore
from service.core.models.kinds import FrozenModel
from service.core.rubric import Stage
from service.jobs.items import read_outcome
from service.registry import Registry
from service.reporting.breakdown import Breakdown, OutcomeKind, build_breakdown
from service.store.database import Database
from service.store.jobs.batches import Batch
from service.store.jobs.items import (
    ALL_ITEMS,
    FailureGroup,
    ItemChoice,
    ListedItems,
    WholeItem,
    add_missing_items,
    count_outcomes,
    find_item,
    group_failures,
    list_items,
)

LISTED = 50
"""Items of a list where nothing else is said."""


class ItemChoiceQuery(FrozenModel):
    """Which items of a batch are meant."""

    verdict: Literal["pass", "warn", "fail", "abstain", "not_applicable", "error"] | None = None
    """The verdict of those that are listed; `error`: they could not be scored"""
    stage: Stage | None = None
    """The stage at which they broke first"""
    finding: Annotated[str, Field(max_length=200)] | None = None
    """The code of the first finding there, or the criterion where it has none"""
    tool: Annotated[str, Field(max_length=200)] | None = None
    """The tool of the call at which they broke; empty: no call did"""
    failed: Stage | None = None
    """A stage that failed, whether or not another one broke before it"""


class ItemPageQuery(ItemChoiceQuery):
    """Which items of a batch are listed."""

    limit: int = Field(default=LISTED, ge=1, le=500)
    """How many are given at most; absent: 50"""
    after: Annotated[int, Field(ge=0, le=MAX_ITEMS)] | None = None
    """The index of an item; those behind it are given"""


@dataclass(frozen=True, slots=True)
class BatchBreakdown:
    """A batch in short."""

    whole: Breakdown
    failures: tuple[FailureGroup, ...]
    """The items that failed by where they broke first, the largest group first; 200 of them at most."""


class BatchItemReading:
    """The handlers over one store. `registry`: the rubrics at hand."""

    def __init__(self, store: JobStore[Batch], registry: Registry) -> None:
        self._store = store
        self._registry = registry

    async def list_batch_items(self, request: Request) -> ListedItems:
        """List the items of a batch that have an outcome, by what came of them."""
        asked = read_query(request.query_params, ItemPageQuery)
        limit, after, choice = asked.limit, asked.after, build_choice(asked)
        batch, database = await self._store.find(request), self._store.jobs.database
        return await self._store.run_insisting(
            request, lambda: list_items(database, batch.id, choice, limit=limit, after=after)
        )

    async def show_batch_item(self, request: Request) -> WholeItem:
        """Show one item of a batch: what was sent, and its report or why it has none."""
        return await self.find_item(request, build_choice(read_query(request.query_params, ItemChoiceQuery)))

    async def find_item(self, request: Request, choice: ItemChoice = ALL_ITEMS) -> WholeItem:
        """The item that a path names, among those that are chosen; HTTPException 404 where there is none."""
        index = _read_index(request)
        batch, database = await self._store.find(request), self._store.jobs.database
        found = await self._store.run_insisting(request, lambda: find_item(database, batch.id, index, choice))
        if found is None:
            raise HTTPException(404, "no item at that index of the batch")
        return found

    async def break_down_batch(self, request: Request) -> BatchBreakdown:
        """Count what came of the items of a batch so far: verdicts, stages, and where they broke first.

        Items that an earlier version scored are taken in first, some at each request.
        """
        batch, database = await self._store.find(request), self._store.jobs.database
        await self._store.run_insisting(request, lambda: catch_up(database, batch, self._registry))
        return await self._store.run_insisting(
            request,
            lambda: BatchBreakdown(
                build_breakdown({OutcomeKind(*kind): n for kind, n in count_outcomes(database, batch.id).items()}),
                group_failures(database, batch.id),
            ),
        )


def catch_up(database: Database, batch: Batch, registry: Registry) -> int:
    """Takes in items of a batch that has ended which an earlier version scored, to be counted and labelled; how many."""
    counts = batch.request_counts
    if not batch.ended or not counts.completed + counts.failed:
        return 0
    return add_missing_items(
        database, batch.id, lambda line: read_outcome(line, registry), whole=counts.completed + counts.failed
    )


def build_choice(asked: ItemChoiceQuery) -> ItemChoice:
    """The choice that a query makes."""
    return ItemChoice(asked.verdict, asked.stage, asked.finding, asked.tool, asked.failed)


def _read_index(request: Request) -> int:
    given: str = request.path_params["index"]
    if not (given.isascii() and given.isdigit() and len(given) <= 9 and int(given) <= MAX_ITEMS):
        raise HTTPException(404, "no item at that index of the batch")
    return int(given)
