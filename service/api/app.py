"""The HTTP application, wired once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache, partial
from threading import Event
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from service import __version__
from service.api.access import Access
from service.api.contract import describe_api, read_error
from service.api.cross_site import is_loopback
from service.api.fairness import Fairness, UploadDisk
from service.api.key_cache import KeyCache
from service.api.metrics import BacklogCollector, ServiceMetrics
from service.api.middleware import RequestMiddleware
from service.api.parts import ApiParts
from service.api.problems import render_refusal
from service.api.readiness import Readiness, watch_stop_signals
from service.api.routes.batches import BatchRoutes
from service.api.routes.calibrations import CalibrationRoutes
from service.api.routes.docs import build_docs_route
from service.api.routes.fits import FitInstallRequest, FitRoutes
from service.api.routes.jobs import ResumeRequest
from service.api.routes.labels import LabelRequest, LabelRoutes
from service.api.routes.operating import AuditRoutes, UsageRoutes
from service.api.routes.overview import OverviewRoutes
from service.api.routes.scores import KeptScoreRoutes
from service.api.routes.scoring import ScoringRoutes
from service.asking.cache.guard import GuardedCache
from service.engine import Engine
from service.errors import CallgradeError
from service.fits.manager import FitManager
from service.jobs.submissions import JobBounds
from service.labelling.desk import LabelDesk
from service.reading.request import ScoreRequest
from service.scoring_process import ScoringProcess
from service.settings import Settings
from service.store.access.audit import Audit
from service.store.access.keys import Keys
from service.store.access.sessions import Sessions
from service.store.database import Database
from service.store.jobs.backlog import read_backlog
from service.store.jobs.calibrations import Calibrations
from service.store.jobs.jobs import Batches, Room
from service.store.kept_scores import KeptScores
from service.wiring import build_engine, build_limits, build_webhooks, load_judges, load_rubrics

S = TypeVar("S")

DESCRIPTION = """Send a conversation with its tool calls, and what should have happened; get a verdict for every step.

Every answer carries `X-Request-Id`: the caller's own if it is 1 to 128 of `A-Z a-z 0-9 . _ -`, else a new one. Every error
is a problem document (RFC 9457) whose `errors` name the places in the body by JSON pointer."""


def create_app(
    settings: Settings | None = None,
    *,
    engine: Engine | None = None,
    database: Database | None = None,
    large_scorer: ScoringProcess | None = None,
) -> FastAPI:
    """Build the HTTP application; `settings` default to those of an empty environment, `engine` to what they build.

    `database`: where keys and batches are kept, its tables migrated. None: anybody who reaches the application may do
    everything except what needs a database. `large_scorer`: scores large requests, and is closed with the application; None:
    threads do.
    """
    settings = settings or Settings()
    engine = engine or build_engine(settings, database)
    stopping = Event()
    readiness = Readiness(_list_loads(settings, engine, database), stopping)
    metrics = _build_metrics(engine, database)

    def over(build: Callable[[Database], S]) -> S | None:
        return None if database is None else build(database)

    limits, disk = build_limits(settings), UploadDisk(settings.max_uploads_bytes)
    scores = KeptScoreRoutes(over(KeptScores), always=settings.store_scores)
    scoring = ScoringRoutes(
        engine,
        limits,
        metrics=metrics,
        readiness=readiness,
        keeper=scores,
        large_scorer=large_scorer,
    )
    room = Room(settings.batch_max_queued, settings.tenant_max_queued)
    kept_calibrations = over(partial(Calibrations, room=room))
    jobs: dict[str, Any] = {"max_bytes": settings.batch_max_bytes, "disk": disk, "receivers": build_webhooks(settings)}
    bounds = _build_bounds(settings)
    batches = BatchRoutes(engine, bounds, jobs=over(partial(Batches, room=room)), **jobs)
    calibrations = CalibrationRoutes(engine, bounds, jobs=kept_calibrations, **jobs)
    labels = LabelRoutes(over(partial(LabelDesk, engine=engine)), limits, disk)
    manager = over(partial(FitManager, engine=engine, folder=settings.home / "fits"))
    parts = ApiParts(
        settings=settings,
        engine=engine,
        database=database,
        scoring=scoring,
        batches=batches,
        calibrations=calibrations,
        overview=OverviewRoutes(engine, batches.store, calibrations.store, labels),
        keys=None if database is None else KeyCache(Keys(database)),
        sessions=None if database is None else KeyCache(Sessions(database)),
        labels=labels,
        fits=FitRoutes(manager, kept_calibrations, limits),
        scores=scores,
    )
    app = FastAPI(
        title="callgrade",
        version=__version__,
        summary="Scores what language models do with tools.",
        description=DESCRIPTION,
        redirect_slashes=False,
        docs_url=None,  # its page would load third-party scripts
        redoc_url=None,
        # Spans and records would hold exception texts, which may quote a payload.
        telemetry={"tracing": False, "metrics": False, "logs": False},
        # Passed directly: an included router would double the cost of every request.
        lifespan=_build_lifespan(engine, database, readiness, large_scorer),
        routes=[
            *scoring.router.routes,
            *scoring.probes.routes,
            *UsageRoutes(engine.days).router.routes,
            *batches.router.routes,
            *calibrations.router.routes,
            *parts.scores.router.routes,
            *labels.router.routes,
            *parts.fits.router.routes,
            *parts.overview.router.routes,
            *AuditRoutes(over(Audit)).router.routes,
            build_docs_route(),
        ],
    )
    app.state.stopping = stopping
    app.state.parts = parts
    fairness = Fairness(
        requests=settings.max_concurrency,
        each=settings.tenant_max_concurrency or None,
        streams=settings.max_streams,
        body_bytes=settings.max_bodies_bytes,
        largest=settings.max_body_bytes,
    )
    access = Access(
        routes=app.routes,
        keys=parts.keys,
        sessions=parts.sessions,
        open_without_keys=is_loopback(settings.host),
        hosts=settings.allowed_hosts,
    )
    app.add_middleware(RequestMiddleware, access=access, fairness=fairness, metrics=metrics)
    app.add_exception_handler(CallgradeError, _render_error)
    app.add_exception_handler(HTTPException, _render_error)
    app.add_exception_handler(RequestValidationError, _render_misfit)
    bodies = (ScoreRequest, LabelRequest, FitInstallRequest, ResumeRequest)
    app.openapi = cache(partial(describe_api, app, bodies, keys=database is not None))
    return app


def _build_metrics(engine: Engine, database: Database | None) -> ServiceMetrics:
    models = {model for judge in engine.registry.judges.values() for model in judge.models}
    if engine.judging is not None:
        judges = engine.judging.judges
        models |= {judges.model, *judges.allowed}
    backlog = None if database is None else BacklogCollector(partial(read_backlog, database))
    metrics = ServiceMetrics({rubric.digest: rubric.id for rubric in engine.registry}, backlog=backlog, models=models)
    if engine.judging is not None:
        engine.judging.observers.append(metrics.count_ask)
        if isinstance(engine.judging.cache, GuardedCache):
            metrics.watch_cache(engine.judging.cache)
    return metrics


def _build_bounds(settings: Settings) -> JobBounds:
    return JobBounds(
        limits=build_limits(settings),
        chunk_items=settings.batch_chunk,
        max_items=settings.batch_max_items,
        default_hours=settings.batch_hours,
        max_usd=settings.batch_max_usd,
        max_questions=settings.batch_max_questions or None,
    )


def _list_loads(
    settings: Settings, engine: Engine, database: Database | None
) -> dict[str, Callable[[], Awaitable[object]]]:
    """List what a process must load before it receives requests."""
    loads: dict[str, Callable[[], Awaitable[object]]] = {"rubrics": partial(load_rubrics, engine)}
    if settings.judge_model:
        loads["judges"] = partial(load_judges, settings)
    if database is not None:
        loads["store"] = partial(asyncio.to_thread, Keys(database).any_key)
    return loads


def _build_lifespan(
    engine: Engine, database: Database | None, readiness: Readiness, large_scorer: ScoringProcess | None
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Load what the service needs when it starts; close connections and files when it ends."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        with watch_stop_signals(app.state.stopping):
            readiness.begin()
            yield
        readiness.end()
        if large_scorer is not None:
            large_scorer.close()
        await engine.close()
        if database is not None:
            database.close()

    return lifespan


async def _render_error(_: Request, error: Any) -> Response:
    return render_refusal(error)


async def _render_misfit(_: Request, error: Any) -> Response:
    return render_refusal(read_error(error))
