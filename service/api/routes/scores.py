"""Kept scores over HTTP: traces of POST /v1/score with their reports, to be viewed and labelled."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from service.api.access import find_actor
from service.api.contract import JSON, build_router
from service.api.routes.batch_items import ItemChoiceQuery, build_choice
from service.api.store_access import StoreAccess
from service.errors import BusyError, InputError
from service.reporting.breaks import Breakdown, OutcomeKind, build_breakdown
from service.store.jobs.items import FailureGroup
from service.store.kept_scores import KeptScoreList, KeptScores
from service.store.labelling.drafts import ScoreDraft

LOG = logging.getLogger("callgrade.api")

SCORE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["id", "request", "report"],
    "description": "`id`, `request` as it was sent, and `report`",
}


class ScorePageQuery(ItemChoiceQuery):
    """Which kept scores to list."""

    limit: int = Field(default=20, ge=1, le=100)
    """Most scores in the answer; absent: 20"""
    after: Annotated[str, Field(pattern="^score_[0-9a-f]{32}$")] | None = None
    """The id of a score; only older ones are listed"""


MAX_SLICES = 200
"""Most slices in a breakdown."""


@dataclass(frozen=True, slots=True)
class TagSlice:
    """The kept scores with one value of a tag."""

    tag: str
    value: str
    whole: Breakdown


@dataclass(frozen=True, slots=True)
class ScoreBreakdown:
    """A summary of the outcomes of kept scores."""

    whole: Breakdown
    failures: tuple[FailureGroup, ...]
    """The failed ones by where they failed first, the largest group first; at most 200 groups."""
    slices: tuple[TagSlice, ...]
    """By tag and value, in their order; at most 200."""


class KeptScoreRoutes(StoreAccess[KeptScores]):
    """The handlers over kept scores."""

    def __init__(self, scores: KeptScores | None, *, always: bool = False) -> None:
        """`always`: keep a score of /v1/score also if its request does not say."""
        super().__init__(scores, "scores are kept in")
        self._always = always and scores is not None
        self.router = router = build_router("scores", 404, 507)
        shown: dict[int | str, Any] = {200: {"content": {JSON: {"schema": SCORE_SCHEMA}}}}
        router.get("/v1/scores")(self.list_scores)
        router.get("/v1/scores/breakdown")(self.break_down_scores)
        router.get("/v1/scores/{score_id}", responses=shown)(self.show_score)
        router.delete("/v1/scores/{score_id}", status_code=204)(self.delete_score)

    def should_keep(self, store: bool | None) -> bool:  # noqa: FBT001 (the request's own field)
        """Whether to keep a score, by the request's `store`; InputError if it asks for that and there is no store."""
        if store and self._store is None:
            raise InputError.at("/store", "keeping a score needs a database, and none is open here; expected false")
        return self._always if store is None else store

    async def keep(self, request: Request, draft: ScoreDraft | None, sent: bytes) -> dict[str, str]:
        """Store a score and return the header that names it; no header if it is not stored. `sent`: the request's JSON."""
        if draft is None:
            return {}
        complete = replace(draft, request=sent)
        try:
            name = await self.ask(request, lambda scores, tenant: scores.keep(tenant, complete))
        except BusyError as error:  # returning the report matters more than keeping it
            LOG.warning("the score could not be stored", extra={"fields": {"why": str(error)}})
            return {}
        return {"x-callgrade-score-id": name}

    async def list_scores(self, request: Request, query: Annotated[ScorePageQuery, Query()]) -> KeptScoreList:
        """List kept scores, newest first, by outcome."""
        choice, limit, after = build_choice(query), query.limit, query.after
        return await self.ask(request, lambda scores, tenant: scores.page(tenant, choice, limit=limit, after=after))

    async def break_down_scores(self, request: Request) -> ScoreBreakdown:
        """Count the outcomes of kept scores: verdicts, stages, where they failed first, and by tag."""

        def break_down(scores: KeptScores, tenant: str) -> ScoreBreakdown:
            whole, by_tag = scores.count_outcomes(tenant), scores.count_tags(tenant)
            slices = [TagSlice(*tag, _build_breakdown(by_tag[tag])) for tag in sorted(by_tag)[:MAX_SLICES]]
            return ScoreBreakdown(_build_breakdown(whole), scores.group_failures(tenant), tuple(slices))

        return await self.ask(request, break_down)

    async def show_score(self, request: Request, score_id: str) -> Response:
        """Show a kept score: the request as it was sent, and the report in its original bytes."""
        sent, report = await self.ask(request, lambda scores, tenant: scores.read(tenant, score_id))
        return Response(b'{"id":"%b","request":%b,"report":%b}' % (score_id.encode(), sent, report), media_type=JSON)

    async def delete_score(self, request: Request, score_id: str) -> None:
        """Delete a kept score with its labels."""
        by = find_actor(request)
        await self.ask(request, lambda scores, tenant: scores.delete(tenant, score_id, by=by))


def _build_breakdown(counts: Mapping[tuple[str, str, str], int]) -> Breakdown:
    return build_breakdown({OutcomeKind(*kind): n for kind, n in counts.items()})
