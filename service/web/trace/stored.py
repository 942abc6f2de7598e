"""Scored traces as they are kept: JSON of what was sent and of the report."""

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
    """The page of what was sent, null where that is gone, and of its report. InputError for a report that is none."""
    found = read_report(report)
    held = None if sent is None else read_sent_or_none(sent)
    scored = ScoredTrace(found, name=name) if held is None else ScoredTrace(found, *held, name=name)
    return build_trace_view(scored, choices=choices)


def read_sent_or_none(sent: JsonValue) -> SentTrace | None:
    """What a request holds; None where this version can no longer read it."""
    try:
        return read_sent(sent)
    except InputError:
        return None


def find_payload(sent: JsonValue, path: str) -> str | None:
    """The whole of what a page shows cut, by its pointer; None where there is no such thing."""
    held = read_sent_or_none(sent)
    if held is None:
        return None
    if path == "/expected":
        return spell_payload(held.expected)
    if path == "/output/content" and held.trace.output is not None:
        return spell_payload(held.trace.output.content)
    place = find_place(path, held.trace)
    return spell_payload(place.value) if place is not None and place.exists else None
