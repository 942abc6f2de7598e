"""Build the page of a stored score: JSON of the request and of the report."""

from __future__ import annotations

from pydantic import JsonValue

from service.errors import InputError
from service.reporting.summaries import read_report
from service.web.trace.build import ScoredTrace, build_trace_view
from service.web.trace.payloads import CUT, PayloadChoices, spell_payload
from service.web.trace.places import find_place
from service.web.trace.reading import SentTrace, read_sent
from service.web.trace.view import TraceView


def build_stored_view(sent: JsonValue, report: JsonValue, name: str, *, choices: PayloadChoices = CUT) -> TraceView:
    """Build the page of a request, None if it was deleted, and its report. InputError for a bad report."""
    report_read = read_report(report)
    sent_trace = None if sent is None else read_sent_or_none(sent)
    scored = (
        ScoredTrace(report_read, name=name) if sent_trace is None else ScoredTrace(report_read, *sent_trace, name=name)
    )
    return build_trace_view(scored, choices=choices)


def read_sent_or_none(sent: JsonValue) -> SentTrace | None:
    """Read the trace of a request; None if this version can no longer read it."""
    try:
        return read_sent(sent)
    except InputError:
        return None


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
