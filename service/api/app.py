"""The application, wired once."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException

from service import __version__
from service.api.metrics import Metrics
from service.api.middleware import Front
from service.api.problems import ProblemDetails, details, details_of, problem
from service.api.routes import PROBLEM, Routes
from service.errors import CallgradeError, UnknownRubricError
from service.io.engine import Engine
from service.io.jsonbody import Limits
from service.io.settings import Settings
from service.io.shelf import Shelf
from service.request import ScoreRequest

LOG = logging.getLogger("callgrade.api")


def create_app(settings: Settings | None = None) -> FastAPI:
    """The HTTP application; `settings` default to those without environment variables."""
    settings = settings or Settings()
    metrics = Metrics()
    engine = Engine(Shelf(settings.rubric_dirs))
    limits = Limits(
        max_bytes=settings.max_body_bytes,
        max_depth=settings.max_depth,
        max_digits=settings.max_digits,
        max_string=settings.max_string,
        max_items=settings.max_items,
    )
    app = FastAPI(
        title="callgrade",
        version=__version__,
        summary="Scores what language models do with tools.",
        redirect_slashes=False,
    )
    app.include_router(Routes(engine, limits, max_many=settings.max_many, metrics=metrics).router())
    app.add_middleware(Front, metrics=metrics, max_concurrency=settings.max_concurrency)
    for kind in (CallgradeError, HTTPException, Exception):
        app.add_exception_handler(kind, _failed)
    app.openapi = lambda: _openapi(app)
    return app


async def _failed(request: Request, error: Exception) -> Response:
    """The problem document of whatever went wrong; what nobody foresaw is ours, and goes to the log alone."""
    if isinstance(error, UnknownRubricError) and request.method == "GET":
        return problem(details_of(error, status=404))
    if isinstance(error, CallgradeError):
        return problem(details_of(error), {"retry-after": "1"} if error.retryable else None)
    if isinstance(error, HTTPException):
        return problem(details(error.status_code, str(error.detail)), error.headers)
    LOG.error("unhandled error", exc_info=error)
    return problem(details(500, "an error of ours; it is in the log"))


def _openapi(app: FastAPI) -> dict[str, Any]:
    """FastAPI's description with the request model, which no handler declares since one parser reads every body."""
    if app.openapi_schema is None:
        described = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        template = "#/components/schemas/{model}"
        _, request = models_json_schema([(ScoreRequest, "validation")], ref_template=template)
        schemas = described.setdefault("components", {}).setdefault("schemas", {})
        schemas |= {name: schema for name, schema in request["$defs"].items() if name not in schemas}
        schemas[ProblemDetails.__name__] = PROBLEM.json_schema(ref_template=template)
        schemas |= schemas[ProblemDetails.__name__].pop("$defs", {})
        app.openapi_schema = described
    return app.openapi_schema
