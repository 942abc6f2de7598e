"""The application, wired once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache, partial
from threading import Event
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from service import __version__
from service.api.access import Access
from service.api.batches import TYPES as BATCH_TYPES
from service.api.batches import BatchRoutes
from service.api.buckets import Buckets
from service.api.calibrations import TYPES as CALIBRATION_TYPES
from service.api.calibrations import CalibrationRoutes
from service.api.callers import Callers
from service.api.fairness import Fairness, Load
from service.api.foreign import is_loopback
from service.api.metrics import Metrics
from service.api.middleware import Front
from service.api.openapi import described
from service.api.problems import refusal
from service.api.readiness import Readiness
from service.api.routes import TYPES, Routes
from service.api.stock import Stock
from service.api.stopping import heard
from service.errors import CallgradeError
from service.io.admission import Bounds
from service.io.bootstrap import engine_of, limits_of, load_judges, load_rubrics, webhooks_of
from service.io.engine import Engine
from service.io.settings import Settings
from service.io.store.backlog import backlog
from service.io.store.batches import Batches, Room

if TYPE_CHECKING:
    from service.io.store.database import Database
    from service.io.store.queue import Queue

DESCRIPTION = """Send a conversation with its tool calls, and what should have happened; get a verdict for every step.

Every answer carries `X-Request-Id`: the caller's own where it is 1 to 128 of `A-Z a-z 0-9 . _ -`, else a new one. Every error
is a problem document (RFC 9457) whose `errors` name the places in the body by JSON pointer."""


def create_app(
    settings: Settings | None = None,
    *,
    engine: Engine | None = None,
    database: Database | None = None,
    queue: Queue | None = None,
) -> FastAPI:
    """The HTTP application; `settings` default to those without environment variables, `engine` to what they give.

    `database`: where keys and batches are kept, its tables up to date. None: whoever reaches the application may do
    everything but what batches are for. `queue`: where the work of batches is put; default, that of the database's workers.
    """
    settings = settings or Settings()
    engine = engine or engine_of(settings)
    stopping = Event()
    readiness = Readiness(_loads(settings, engine, database), stopping)
    stock = None if database is None else Stock(partial(backlog, database))
    metrics = Metrics({rubric.digest: rubric.id for rubric in engine.shelf}, stock=stock)
    app = FastAPI(
        title="callgrade",
        version=__version__,
        summary="Scores what language models do with tools.",
        description=DESCRIPTION,
        redirect_slashes=False,
        redoc_url=None,
        # Its spans and records would hold what an exception says, and that may be a payload.
        telemetry={"tracing": False, "metrics": False, "logs": False},
        # Given whole instead of included: a router between costs as much again for every request.
        lifespan=_living(engine, database, readiness),
        routes=[
            *Routes(
                engine, limits_of(settings), max_many=settings.max_many, metrics=metrics, readiness=readiness
            ).all(),
            *[found for routes in _batch_routes(settings, engine, database, queue) for found in routes.all()],
        ],
    )
    app.state.stopping = stopping
    app.add_middleware(Fairness, load=_load_of(settings))
    app.add_middleware(
        Access,
        routes=app.routes,
        callers=_callers_of(database),
        opened=is_loopback(settings.host),
        hosts=settings.allowed_hosts,
        rates=Buckets(rate) if (rate := settings.tenant_requests_per_minute) else None,
    )
    app.add_middleware(Front, metrics=metrics)
    app.add_exception_handler(CallgradeError, _refused)
    app.add_exception_handler(HTTPException, _refused)
    app.openapi = cache(
        partial(described, app, {**TYPES, **BATCH_TYPES, **CALIBRATION_TYPES}, keys=database is not None)
    )
    return app


def _batch_routes(
    settings: Settings, engine: Engine, database: Database | None, queue: Queue | None
) -> tuple[BatchRoutes, CalibrationRoutes]:
    bounds = Bounds(
        limits=limits_of(settings),
        chunk=settings.batch_chunk,
        max_items=settings.batch_max_items,
        hours=settings.batch_hours,
    )
    batches = None if database is None else _batches_of(settings, database, queue)
    given: dict[str, Any] = {"max_bytes": settings.batch_max_bytes, "batches": batches}
    given["receivers"] = webhooks_of(settings)
    return BatchRoutes(engine, bounds, **given), CalibrationRoutes(engine, bounds, **given)


def _batches_of(settings: Settings, database: Database, queue: Queue | None) -> Batches:
    if queue is None:
        from service.io.batches import Enqueuer  # noqa: PLC0415 (the batch engine is not loaded for nothing)

        queue = Enqueuer(database)
    return Batches(database, queue, Room(settings.batch_max_queued, settings.tenant_max_queued))


def _callers_of(database: Database | None) -> Callers | None:
    if database is None:
        return None
    from service.io.store.keys import Keys  # noqa: PLC0415 (SQLAlchemy is not loaded for nothing)

    return Callers(Keys(database))


def _load_of(settings: Settings) -> Load:
    return Load(
        requests=settings.max_concurrency,
        each=settings.tenant_max_concurrency or None,
        streams=settings.max_streams,
        body_bytes=settings.max_bodies_bytes,
        largest=settings.max_body_bytes,
    )


def _loads(settings: Settings, engine: Engine, database: Database | None) -> dict[str, Callable[[], Awaitable[object]]]:
    """What a process must have loaded before requests are sent to it."""
    loads: dict[str, Callable[[], Awaitable[object]]] = {"rubrics": partial(load_rubrics, engine)}
    if settings.judge_model:
        loads["judges"] = partial(load_judges, settings)
    if database is not None:
        from service.io.store.keys import Keys  # noqa: PLC0415 (SQLAlchemy is not loaded for nothing)

        loads["store"] = partial(asyncio.to_thread, Keys(database).any_key)
    return loads


def _living(
    engine: Engine, database: Database | None, readiness: Readiness
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """From the start of the service, when it loads what it needs, to its end, when connections and files are let go of."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        with heard(app.state.stopping):
            readiness.begin()
            yield
        readiness.end()
        await engine.close()
        if database is not None:
            database.close()

    return lifespan


async def _refused(_: Request, error: Any) -> Response:
    return refusal(error)
