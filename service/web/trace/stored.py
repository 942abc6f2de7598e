"""Read requests and stored reports again, to show them."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from pydantic import JsonValue

from service.core.expectations.expectation import Expectation
from service.core.trace import Trace
from service.errors import InputError
from service.reading.request import find_expectation, read_request, read_request_trace
from service.reporting.summaries import read_report
from service.web.trace.build import ScoredTrace, build_trace_view
from service.web.trace.view import TraceView


class SentTrace(NamedTuple):
    """A trace and its expectation."""

    trace: Trace
    expectation: Expectation | None
    """None also for gold that cannot be used, which the report explains."""
    expected: JsonValue
    """The expectation as it was sent."""


def read_sent(body: JsonValue) -> SentTrace:
    """Read the trace of a request. InputError if it cannot be read, as when it was scored."""
    request = read_request(body)
    trace = read_request_trace(request)
    try:
        expectation = find_expectation(request, trace)
    except InputError:
        expectation = None
    return SentTrace(trace, expectation, body.get("expected") if isinstance(body, dict) else None)


def build_stored_view(sent: JsonValue, report: JsonValue, name: str) -> TraceView:
    """Build the page of a request, None if it was deleted, and its report. InputError for a bad report."""
    scored = ScoredTrace(read_report(report), name=name)
    with suppress(InputError):  # of a request that this version can no longer read, the report is shown alone
        scored = scored if sent is None else ScoredTrace(scored.report, *read_sent(sent), name=name)
    return build_trace_view(scored)
