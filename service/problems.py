"""Errors as problem documents (RFC 9457): one shape for HTTP responses and batch results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from pydantic import TypeAdapter

from service.errors import (
    AllowanceSpentError,
    BadLinesError,
    BusyError,
    CallgradeError,
    DiskFullError,
    InputError,
    JobGoneError,
    JobStateError,
    JudgeDownError,
    KeyReusedError,
    MalformedError,
    OthersLabelError,
    QueueFullError,
    TooLargeError,
    UnknownItemError,
    UnknownJobError,
)

MAX_PLACES = 100
"""Most places that one problem document names."""


@dataclass(frozen=True, slots=True)
class Place:
    """One thing wrong: a JSON pointer into the request's body ("" for the whole body), and what was expected there."""

    pointer: str
    detail: str


@dataclass(frozen=True, slots=True)
class ProblemDetails:
    """A problem document (RFC 9457) with `errors`: the first hundred places in the body that are wrong."""

    type: str
    title: str
    status: int
    detail: str
    errors: tuple[Place, ...]


PROBLEM: TypeAdapter[ProblemDetails] = TypeAdapter(ProblemDetails)

STATUS: Mapping[type[CallgradeError], int] = {
    MalformedError: 400,
    TooLargeError: 413,
    BadLinesError: 400,
    InputError: 422,
    KeyReusedError: 422,
    UnknownItemError: 404,
    OthersLabelError: 403,
    UnknownJobError: 404,
    JobStateError: 409,
    JobGoneError: 410,
    QueueFullError: 429,
    AllowanceSpentError: 429,
    DiskFullError: 507,
    BusyError: 503,
    JudgeDownError: 503,
}


def find_status(error: CallgradeError) -> int:
    """Return the HTTP status of an error: that of its nearest class in `STATUS`, else 500."""
    return next((STATUS[cls] for cls in type(error).__mro__ if cls in STATUS), 500)


def describe_error(error: CallgradeError, *, status: int | None = None) -> ProblemDetails:
    """Build the problem document of an error. `status` overrides the error's own."""
    status = status or find_status(error)
    if isinstance(error, BadLinesError):
        return build_details(status, error.message, [Place(one.path, one.message) for one in error.problems])
    if not isinstance(error, InputError):
        return build_details(status, str(error))
    return build_details(status, _summarize(error), list_places(error))


def list_places(error: InputError) -> tuple[Place, ...]:
    """List what is wrong and where, up to the first hundred."""
    return tuple(Place(one.path, one.message) for one in error.problems[:MAX_PLACES])


def build_details(status: int, detail: str, places: Iterable[Place] = ()) -> ProblemDetails:
    """Build a problem document for a status."""
    return ProblemDetails("about:blank", HTTPStatus(status).phrase, status, detail, tuple(places))


def _summarize(error: InputError) -> str:
    more = len(error.problems) - 1
    return f"{error.problems[0]} (and {more} more)" if more else str(error.problems[0])
