"""The application, wired once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache, partial
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from service import __version__
from service.api.metrics import Metrics
from service.api.middleware import Front
from service.api.openapi import described
from service.api.problems import details, details_of, problem
from service.api.routes import TYPES, Routes
from service.errors import CallgradeError
from service.io.bootstrap import engine_of, limits_of
from service.io.engine import Engine
from service.io.settings import Settings

DESCRIPTION = """Send a conversation with its tool calls, and what should have happened; get a verdict for every step.

Every answer carries `X-Request-Id`: the caller's own where it is 1 to 128 of `A-Z a-z 0-9 . _ -`, else a new one. Every error
is a problem document (RFC 9457) whose `errors` name the places in the body by JSON pointer."""


def create_app(settings: Settings | None = None, *, engine: Engine | None = None) -> FastAPI:
    """The HTTP application; `settings` default to those without environment variables, `engine` to what they give."""
    settings = settings or Settings()
    engine = engine or engine_of(settings)
    metrics = Metrics({rubric.digest: rubric.id for rubric in engine.shelf})
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
        lifespan=_closing(engine),
        routes=Routes(engine, limits_of(settings), max_many=settings.max_many, metrics=metrics).all(),
    )
    app.add_middleware(Front, metrics=metrics, max_concurrency=settings.max_concurrency)
    app.add_exception_handler(CallgradeError, _failed)
    app.add_exception_handler(HTTPException, _refused)
    app.openapi = cache(partial(described, app, TYPES))
    return app


def _closing(engine: Engine) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """At the end of the service its connections and files are let go of."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        yield
        await engine.close()

    return lifespan


async def _failed(_: Request, error: Any) -> Response:
    return problem(details_of(error), {"retry-after": "1"} if error.retryable else None)


async def _refused(_: Request, error: Any) -> Response:
    return problem(details(error.status_code, error.detail), error.headers)
