"""Render errors as HTTP responses: problem documents."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from starlette.exceptions import HTTPException
from starlette.responses import Response

from service.errors import AllowanceSpentError, CallgradeError, DiskFullError, JudgeDownError, QueueFullError
from service.problems import PROBLEM, ProblemDetails, build_details, build_problem

MEDIA_TYPE = "application/problem+json"


def render_problem(problem: ProblemDetails, headers: Mapping[str, str] | None = None) -> Response:
    """Render a problem document as a response."""
    return Response(PROBLEM.dump_json(problem), problem.status, headers, MEDIA_TYPE)


def render_refusal(error: HTTPException | CallgradeError) -> Response:
    """Render the response to a request that ended in an error; a retryable one says after how many seconds to try again."""
    if isinstance(error, HTTPException):
        return render_problem(build_details(error.status_code, error.detail), error.headers)
    wait = 30 if isinstance(error, QueueFullError | DiskFullError) else 1
    if isinstance(error, AllowanceSpentError | JudgeDownError):
        wait = max(1, ceil(error.retry_after))
    return render_problem(build_problem(error), {"retry-after": str(wait)} if error.retryable else None)
