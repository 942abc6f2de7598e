"""What the start page and the pages of judges show: what is running, what ran last, and how judges compare with people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Query
from pydantic import Field
from starlette.requests import Request

from service.api.access import find_caller, find_tenant
from service.api.contract import QueryModel, build_router
from service.api.routes.labels import LabelRoutes
from service.api.store_access import JobStore
from service.core.report import STAND_IN
from service.engine import Engine
from service.labelling.agreement import JudgeAgreements, list_agreements
from service.store.jobs.calibrations import Calibration
from service.store.jobs.job import ENDED_STATUSES, STATUSES
from service.store.jobs.jobs import Batch, J

MAX_JOBS = 5
"""Most jobs of a kind in each list: those that are running, and the last ones."""


@dataclass(frozen=True, slots=True)
class JudgeHealth:
    """The state of the judge. `model` null: none is set, so what only a judge can say stays open."""

    model: str | None
    stand_in: bool
    """Whether rules stand in for a model, so that the verdicts mean nothing."""
    fits: int
    """Number of installed fits."""
    warnings: tuple[str, ...]
    """Judges whose verdicts stay open because no fit applies, and why this process's last request to a model had no answer."""


@dataclass(frozen=True, slots=True)
class Overview:
    """What the caller's tenant has, as far as the key's scopes allow; a list without its scope is empty."""

    running: tuple[Batch, ...]
    """Batches that have not ended, the newest first; at most five."""
    batches: tuple[Batch, ...]
    """The last five batches."""
    calibrating: tuple[Calibration, ...]
    """Calibrations that have not ended; at most five."""
    calibrations: tuple[Calibration, ...]
    """The last five calibrations."""
    waiting: dict[str, int]
    """Items by criterion that need a human and have no label."""
    judge: JudgeHealth


class JudgeQuery(QueryModel):
    """Which judges to list."""

    judge: Annotated[str, Field(max_length=256)] | None = None
    """The id of one judge; absent: all"""


class OverviewRoutes:
    """The handlers over the jobs of both kinds, and over labels."""

    def __init__(
        self, engine: Engine, batches: JobStore[Batch], calibrations: JobStore[Calibration], labels: LabelRoutes
    ) -> None:
        self._engine = engine
        self._labels = labels
        self._batches = batches
        self._calibrations = calibrations
        self.router = build_router("overview")
        self.router.get("/v1/overview")(self.show_overview)
        self.router.get("/v1/judges")(self.list_judges)

    async def show_overview(self, request: Request) -> Overview:
        """Show what is running, what ran last and the state of the judge.

        Covers the caller's tenant, as far as the key's scopes allow.
        """
        caller = find_caller(request)
        running, batches = await _read_jobs(request, self._batches) if caller.may("batch") else ((), ())
        fitting, fitted = await _read_jobs(request, self._calibrations) if caller.may("calibrate") else ((), ())
        waiting: dict[str, int] = {}
        if caller.may("label"):
            waiting = await self._labels.ask(request, lambda desk, tenant: desk.count_waiting(tenant))
        return Overview(running, batches, fitting, fitted, waiting, self._describe_judge())

    async def list_judges(self, request: Request, query: Annotated[JudgeQuery, Query()]) -> JudgeAgreements:
        """Compare judges with people: how often they agree, on which side they differ, and by the judge's value."""
        return await self._labels.ask(
            request, lambda desk, tenant: list_agreements(desk, self._engine, tenant, query.judge)
        )

    def _describe_judge(self) -> JudgeHealth:
        judging = self._engine.judging
        model = None if judging is None else judging.judges.model
        outage = [f"no answer when a model was asked last: {judging.outage}"] if judging and judging.outage else []
        return JudgeHealth(model, model == STAND_IN, len(self._engine.fits), (*self._engine.list_warnings(), *outage))


async def _read_jobs(request: Request, store: JobStore[J]) -> tuple[tuple[J, ...], tuple[J, ...]]:
    """Read the jobs of a tenant that have not ended, and its last ones."""
    tenant, jobs = find_tenant(request), store.jobs

    def read() -> tuple[tuple[J, ...], tuple[J, ...]]:
        under_way = [
            one
            for status in STATUSES
            if status not in ENDED_STATUSES
            for one in jobs.page(tenant, limit=MAX_JOBS, status=status).data
        ]
        newest = sorted(under_way, key=lambda job: (job.created_at, job.id), reverse=True)
        return tuple(newest[:MAX_JOBS]), jobs.page(tenant, limit=MAX_JOBS).data

    return await store.run(request, read)
