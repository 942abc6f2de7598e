"""Read requests and stored reports again, to show them."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import JsonValue

from service.core.expectations.expectation import Expectation
from service.core.trace import Trace
from service.errors import InputError
from service.reading.request import find_expectation, read_request, read_request_trace
from service.reporting.summaries import read_report
from service.web.trace.build import ScoredTrace, build_trace_view
from service.web.trace.payloads import CUT, PayloadChoices, spell_payload
from service.web.trace.places import find_place
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


def read_sent_or_none(sent: JsonValue) -> SentTrace | None:
    """Read the trace of a request; None if this version can no longer read it."""
    try:
        return read_sent(sent)
    except InputError:
        return None


def build_stored_view(sent: JsonValue, report: JsonValue, name: str, *, choices: PayloadChoices = CUT) -> TraceView:
    """Build the page of a request, None if it was deleted, and its report. InputError for a bad report."""
    scored = ScoredTrace(read_report(report), name=name)
    sent_trace = None if sent is None else read_sent_or_none(sent)
    if sent_trace is not None:
        scored = ScoredTrace(scored.report, *sent_trace, name=name)
    return build_trace_view(scored, choices=choices)


def find_payload(sent: JsonValue, path: str) -> str | None:
    """Find the whole of what a page shows cut, by its pointer; None if there is no such part."""
    sent_trace = read_sent_or_none(sent)
    if sent_trace is None:
        return None
    if path == "/expected":
        return spell_payload(sent_trace.expected)
    if path == "/output/content" and sent_trace.trace.output is not None:
        return spell_payload(sent_trace.trace.output.content)
    place = find_place(path, sent_trace.trace)
    return spell_payload(place.value) if place is not None and place.exists else None
