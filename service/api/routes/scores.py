"""Kept scores over HTTP: traces of POST /v1/score with their reports, to be viewed and labelled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from service.api.access import find_actor, find_caller, find_payer
from service.api.fairness.threads import Threads
from service.api.operations import JSON, Answer, Operation, describe_path_parameter
from service.api.queries import read_query
from service.api.routes.batch_items import ItemChoiceQuery, build_choice
from service.jobs.admission import DATABASE_PATIENCE_S
from service.reporting.breakdown import Breakdown, OutcomeKind, build_breakdown
from service.store.database import insist
from service.store.jobs.items import FailureGroup
from service.store.kept_scores import KeptScoreList, KeptScores

NO_STORE = "scores are kept in a database, and none is open here"
SCORE_ID = describe_path_parameter("score_id", "The id of a kept score", "score_019aa5b3c4d000112233445566778899")
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
    """The failed ones by where they broke first, the largest group first; at most 200 groups."""
    slices: tuple[TagSlice, ...]
    """By tag and value, in their order; at most 200."""


def _break_down(counts: Mapping[tuple[str, str, str], int]) -> Breakdown:
    return build_breakdown({OutcomeKind(*kind): n for kind, n in counts.items()})


def _list_slices(counts: Mapping[tuple[str, str], Mapping[tuple[str, str, str], int]]) -> tuple[TagSlice, ...]:
    return tuple([TagSlice(*tag, _break_down(counts[tag])) for tag in sorted(counts)[:MAX_SLICES]])


class KeptScoreRoutes:
    """The handlers over one store; without a store each of them answers 503."""

    def __init__(self, scores: KeptScores | None) -> None:
        self._scores = scores
        self._threads = Threads(2, name="scores")

    def all(self) -> list[Operation]:
        """List the routes."""
        deleted = [Answer({}, 204, "It is deleted, with its labels")]
        return [
            Operation("GET", "/v1/scores", self.list_scores, KeptScoreList, 422, 503, query=ScorePageQuery),
            Operation("GET", "/v1/scores/breakdown", self.break_down_scores, ScoreBreakdown, 503),
            Operation("GET", "/v1/scores/{score_id}", self.show_score, SCORE_SCHEMA, 404, 503, parameters=[SCORE_ID]),
            Operation(
                "DELETE", "/v1/scores/{score_id}", self.delete_score, deleted, 404, 503, 507, parameters=[SCORE_ID]
            ),
        ]

    async def list_scores(self, request: Request) -> KeptScoreList:
        """List kept scores, newest first, by outcome."""
        scores, tenant = self._find_scores(), find_caller(request).tenant
        query = read_query(request.query_params, ScorePageQuery)
        choice = build_choice(query)
        return await self._run(request, lambda: scores.page(tenant, choice, limit=query.limit, after=query.after))

    async def break_down_scores(self, request: Request) -> ScoreBreakdown:
        """Count the outcomes of kept scores: verdicts, stages, where they broke first, and by tag."""
        scores, tenant = self._find_scores(), find_caller(request).tenant
        return await self._run(
            request,
            lambda: ScoreBreakdown(
                _break_down(scores.count_outcomes(tenant)),
                scores.group_failures(tenant),
                _list_slices(scores.count_tags(tenant)),
            ),
        )

    async def show_score(self, request: Request) -> Response:
        """Show a kept score: the request as it was sent, and the report in its original bytes."""
        scores, tenant, name = self._find_scores(), find_caller(request).tenant, request.path_params["score_id"]
        sent, report = await self._run(request, lambda: scores.read(tenant, name))
        return Response(b'{"id":"%b","request":%b,"report":%b}' % (name.encode(), sent, report), media_type=JSON)

    async def delete_score(self, request: Request) -> Response:
        """Delete a kept score with its labels."""
        scores, tenant, name = self._find_scores(), find_caller(request).tenant, request.path_params["score_id"]
        by = find_actor(request)
        await self._run(request, lambda: scores.delete(tenant, name, by=by))
        return Response(status_code=204)

    def _find_scores(self) -> KeptScores:
        if self._scores is None:
            raise HTTPException(503, NO_STORE)
        return self._scores

    async def _run(self, request: Request, work: Any) -> Any:
        return await self._threads.run(find_payer(request.scope), lambda: insist(work, give_up=DATABASE_PATIENCE_S))
