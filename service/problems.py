"""Errors as problem documents (RFC 9457): one shape for HTTP responses and batch results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus

from pydantic import TypeAdapter

from service.errors import BadLinesError, CallgradeError, InputError
from service.problem_types import BY_ERROR, BY_STATUS, ProblemType

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


def find_status(error: CallgradeError) -> int:
    """Return the HTTP status of an error."""
    return _find_type(error).status


def build_problem(error: CallgradeError) -> ProblemDetails:
    """Build the problem document of an error."""
    if isinstance(error, BadLinesError):
        return _build(_find_type(error), error.message, [Place(one.path, one.message) for one in error.problems])
    if not isinstance(error, InputError):
        return _build(_find_type(error), str(error))
    return _build(_find_type(error), _summarize(error), list_places(error))


def list_places(error: InputError) -> tuple[Place, ...]:
    """List what is wrong and where, up to the first hundred."""
    return tuple(Place(one.path, one.message) for one in error.problems[:MAX_PLACES])


def build_details(status: int, detail: str) -> ProblemDetails:
    """Build a problem document for a status; of one that the service does not give itself, the type is unknown."""
    if status in BY_STATUS:
        return _build(BY_STATUS[status], detail)
    return ProblemDetails("about:blank", HTTPStatus(status).phrase, status, detail, ())


def _find_type(error: CallgradeError) -> ProblemType:
    return next((BY_ERROR[cls] for cls in type(error).__mro__ if cls in BY_ERROR), BY_STATUS[500])


def _build(kind: ProblemType, detail: str, places: Iterable[Place] = ()) -> ProblemDetails:
    return ProblemDetails(kind.uri, kind.title, kind.status, detail, tuple(places))


def _summarize(error: InputError) -> str:
    more = len(error.problems) - 1
    return f"{error.problems[0]} (and {more} more)" if more else str(error.problems[0])
