"""What somebody who comes back wants to know first: what runs, what ran last, and how judges stand."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.routing import BaseRoute

from service.api.access import find_caller
from service.api.operations import Operation
from service.api.routes.job_store import JobStore
from service.api.routes.labels import LabelRoutes
from service.core.report import STAND_IN
from service.engine import Engine
from service.store.jobs.batches import Batch
from service.store.jobs.calibrations import Calibration
from service.store.jobs.job import ENDED_STATUSES, STATUSES
from service.store.jobs.jobs import J

LATEST = 5
"""Jobs of a kind that are told, those under way and the last ones."""


@dataclass(frozen=True, slots=True)
class JudgeHealth:
    """How judges stand. `model` null: none is set up, so what only a judge can say stays open."""

    model: str | None
    stand_in: bool
    """Whether rules stand in for a model, so that what they say means nothing."""
    fits: int
    """Fits that are installed."""
    warnings: tuple[str, ...]
    """Whose verdicts stay open for want of a fit that applies."""


@dataclass(frozen=True, slots=True)
class Overview:
    """What there is of the caller's tenant, as far as the key's scopes go: empty lists for what they do not open."""

    running: tuple[Batch, ...]
    """Batches that have not ended, the newest first: five at most."""
    batches: tuple[Batch, ...]
    """The last five."""
    calibrating: tuple[Calibration, ...]
    """Calibrations that have not ended: five at most."""
    calibrations: tuple[Calibration, ...]
    """The last five."""
    waiting: dict[str, int]
    """Items by criterion that judges have left to humans, and that nobody has labelled."""
    judge: JudgeHealth


class OverviewRoutes:
    """The handler over the jobs of both kinds."""

    def __init__(
        self, engine: Engine, batches: JobStore[Batch], calibrations: JobStore[Calibration], labels: LabelRoutes
    ) -> None:
        self._engine = engine
        self._labels = labels
        self._batches = batches
        self._calibrations = calibrations

    def all(self) -> list[BaseRoute]:
        """The route."""
        return [Operation("GET", "/v1/overview", self.show_overview, Overview, 503)]

    async def show_overview(self, request: Request) -> Overview:
        """Tell what runs, what ran last and how judges stand: of the caller's tenant, as far as the key's scopes go."""
        caller = find_caller(request)
        running, batches = await _read_jobs(request, self._batches) if caller.may("batch") else ((), ())
        fitting, fitted = await _read_jobs(request, self._calibrations) if caller.may("calibrate") else ((), ())
        waiting = await self._count_waiting(request) if caller.may("label") else {}
        return Overview(running, batches, fitting, fitted, waiting, self._describe_judge())

    async def _count_waiting(self, request: Request) -> dict[str, int]:
        desk, tenant = self._labels.find_desk(), find_caller(request).tenant
        return await self._labels.run(request, lambda: desk.count_waiting(tenant))

    def _describe_judge(self) -> JudgeHealth:
        judging = self._engine.judging
        model = None if judging is None else judging.judges.model
        return JudgeHealth(model, model == STAND_IN, len(self._engine.fits), tuple(self._engine.list_warnings()))


async def _read_jobs(request: Request, store: JobStore[J]) -> tuple[tuple[J, ...], tuple[J, ...]]:
    """The jobs of a tenant that have not ended, and the last ones."""
    tenant, jobs = find_caller(request).tenant, store.jobs

    def read() -> tuple[tuple[J, ...], tuple[J, ...]]:
        under_way = [
            one
            for status in STATUSES
            if status not in ENDED_STATUSES
            for one in jobs.page(tenant, limit=LATEST, status=status).data
        ]
        newest = sorted(under_way, key=lambda job: (job.created_at, job.id), reverse=True)
        return tuple(newest[:LATEST]), jobs.page(tenant, limit=LATEST).data

    return await store.run_insisting(request, read)
