"""Errors on the wire: problem documents as responses."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.responses import Response

from service.errors import CallgradeError, QueueFullError
from service.io.problems import PROBLEM, Place, ProblemDetails, details, details_of, places_of, status_of

__all__ = [
    "MEDIA_TYPE",
    "PROBLEM",
    "Place",
    "ProblemDetails",
    "details",
    "details_of",
    "places_of",
    "problem",
    "refusal",
    "status_of",
]

MEDIA_TYPE = "application/problem+json"


def problem(found: ProblemDetails, headers: Mapping[str, str] | None = None) -> Response:
    """The response that carries a problem document."""
    return Response(PROBLEM.dump_json(found), found.status, headers, MEDIA_TYPE)


def refusal(error: HTTPException | CallgradeError) -> Response:
    """The response to a request that ended in an error."""
    if isinstance(error, HTTPException):
        return problem(details(error.status_code, error.detail), error.headers)
    wait = "30" if isinstance(error, QueueFullError) else "1"
    return problem(details_of(error), {"retry-after": wait} if error.retryable else None)
