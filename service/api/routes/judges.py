"""Judges over HTTP: how each compares with the people who labelled what it judged."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from starlette.requests import Request

from service.api.operations import Operation
from service.api.queries import read_query
from service.api.routes.labels import LabelRoutes
from service.core.models.kinds import FrozenModel
from service.engine import Engine
from service.labelling.standings import JudgeStanding, JudgeStandings, list_standings


class JudgeQuery(FrozenModel):
    """Which judges to list."""

    judge: Annotated[str, Field(max_length=256)] | None = None
    """The id of one judge; absent: all"""


class JudgeRoutes:
    """The handler over the labels of one store."""

    def __init__(self, labels: LabelRoutes, engine: Engine) -> None:
        self._labels = labels
        self._engine = engine

    def all(self) -> list[Operation]:
        """List the routes."""
        return [Operation("GET", "/v1/judges", self.list_judges, JudgeStandings, query=JudgeQuery)]

    async def list_judges(self, request: Request) -> JudgeStandings:
        """List judges beside people: how often they agree, on which side they differ, and by the judge's value."""
        return await self._list(request, read_query(request.query_params, JudgeQuery).judge)

    async def read(self, request: Request, judge: str) -> tuple[JudgeStanding, ...]:
        """Read the standing of one judge, by criterion."""
        return (await self._list(request, judge)).data

    async def _list(self, request: Request, judge: str | None) -> JudgeStandings:
        engine = self._engine
        return await self._labels.ask(request, lambda desk, tenant: list_standings(desk, engine, tenant, judge))
