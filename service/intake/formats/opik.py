"""Opik: a trace with its `spans`, the spans alone, or one span. Spans of the type `llm` are the exchanges with a model."""

from __future__ import annotations

from service.core.json.members import JsonObject, as_text, list_objects
from service.intake.cursor import Cursor
from service.intake.format import Format
from service.intake.runs import LoggedRun, locate, read_log
from service.intake.wrapping import WrapperContents

_TYPES = frozenset({"general", "tool", "llm", "guardrail"})


def _read(record: Cursor) -> WrapperContents:
    spans = record.list_nodes("spans")
    runs = [_read_span(span) for span in spans or [record]]
    if spans and "input" in record:
        runs.append(_read_span(record, outermost=True))
    trace_id = next((name for span in spans or [record] if (name := as_text(span.peek("trace_id")))), None)
    return read_log(record.out, runs, trace_id or as_text(record.peek("id")))


def _read_span(span: Cursor, *, outermost: bool = False) -> LoggedRun:
    kind = as_text(span.peek("type")) or ""
    if kind not in _TYPES and not outermost:
        span.leave("a span of an unknown type", keep=True)
    return LoggedRun(
        span,
        kind,
        locate(span, "input"),
        locate(span, "output"),
        as_text(span.peek("start_time")) or "",
        outermost or span.peek("parent_span_id") is None,
        span.text("name"),
        error_path=f"{span.path}/error_info" if span.peek("error_info") else "",
    )


def _recognise(record: JsonObject) -> bool:
    spans = [*list_objects(record.get("spans")), record]
    return any("trace_id" in span and as_text(span.get("type")) in _TYPES and "input" in span for span in spans)


FORMATS = (
    Format(
        name="opik",
        read=_read,
        recognise=_recognise,
        score=85,
        summary="An Opik trace with its spans, or one span.",
        hint="spans with a trace_id, a type such as llm, and an input",
    ),
)
