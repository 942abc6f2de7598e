"""Errors on the wire: RFC 9457 problem details, one shape everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from pydantic import TypeAdapter
from starlette.responses import Response

from service.errors import (
    BusyError,
    CallgradeError,
    InputError,
    MalformedError,
    Problem,
    TooLargeError,
)

MEDIA_TYPE = "application/problem+json"
SHOWN = 100
"""How many places one problem document names at most."""


@dataclass(frozen=True, slots=True)
class Place:
    """One thing wrong: a JSON pointer into the request body, and what was expected there."""

    pointer: str
    detail: str


@dataclass(frozen=True, slots=True)
class ProblemDetails:
    """RFC 9457 with `errors`, the places in the body that are wrong (the first hundred)."""

    type: str
    title: str
    status: int
    detail: str
    errors: tuple[Place, ...] = ()


DETAILS: TypeAdapter[ProblemDetails] = TypeAdapter(ProblemDetails)

STATUS: Mapping[type[CallgradeError], int] = {
    MalformedError: 400,
    TooLargeError: 413,
    InputError: 422,
    BusyError: 503,
}


def status_of(error: CallgradeError) -> int:
    """The HTTP status of an error: that of its nearest class here, else 500."""
    return next((STATUS[cls] for cls in type(error).__mro__ if cls in STATUS), 500)


def details_of(error: CallgradeError, *, status: int | None = None) -> ProblemDetails:
    """The problem document of an error."""
    places = [Place(p.path, p.message) for p in error.problems] if isinstance(error, InputError) else []
    return details(status or status_of(error), _summary(error), places)


def details(status: int, detail: str, places: list[Place] | None = None) -> ProblemDetails:
    """A problem document for a status."""
    return ProblemDetails("about:blank", HTTPStatus(status).phrase, status, detail, tuple((places or [])[:SHOWN]))


def problem(found: ProblemDetails, headers: Mapping[str, str] | None = None) -> Response:
    """The response that carries a problem document."""
    return Response(DETAILS.dump_json(found), found.status, headers, MEDIA_TYPE)


def _summary(error: CallgradeError) -> str:
    if not isinstance(error, InputError):
        return str(error)
    first: Problem = error.problems[0]
    more = f" (and {len(error.problems) - 1} more)" if len(error.problems) > 1 else ""
    return f"{first}{more}"
