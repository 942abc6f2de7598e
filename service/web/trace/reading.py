"""Read a request again, to show it beside its report."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import JsonValue

from service.core.expectations.expectation import Expectation
from service.core.trace import Trace
from service.errors import InputError
from service.request import ScoreRequest, find_expectation, read_request, read_request_trace


class SentTrace(NamedTuple):
    """A trace and its expectation."""

    trace: Trace
    expectation: Expectation | None
    expected: JsonValue
    """The expectation as it was sent."""


def read_sent(body: JsonValue) -> SentTrace:
    """Read the trace of a request. InputError if it cannot be read, as when it was scored."""
    request = read_request(body)
    trace = read_request_trace(request)
    sent = body.get("expected") if isinstance(body, dict) else None
    return SentTrace(trace, _find_readable(request, trace), sent)


def _find_readable(request: ScoreRequest, trace: Trace) -> Expectation | None:
    """Find the expectation; None for unusable gold, which the report explains."""
    try:
        return find_expectation(request, trace)
    except InputError:
        return None
