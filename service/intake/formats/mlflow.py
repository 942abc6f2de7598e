"""MLflow traces as `trace.to_json()` writes them: `info` and `data`, whose `spans` have inputs and outputs.

Spans of the types CHAT_MODEL and LLM are the exchanges with a model; those of the type TOOL are tool runs. Without any
model span, the outermost span is the exchange.
"""

from __future__ import annotations

from service.core.json.members import as_text, find_object
from service.intake.cursor import Cursor
from service.intake.format import Format
from service.intake.runs import Located, LoggedRun, locate, read_log
from service.intake.unread_parts.suspects import looks_like_call
from service.intake.wrapping import WrapperContents


def _read(record: Cursor) -> WrapperContents:
    info, data = record.child("info"), record.child("data")
    trace_id = as_text(info.peek("trace_id")) or as_text(info.peek("request_id"))
    runs = [_read_span(span) for span in data.list_nodes("spans")]
    for run in runs:
        if isinstance(run.node.raw, dict) and looks_like_call(run.node.raw):
            record.out.note_unread("call", run.node.path, "a span that is a call")
    attributes = [run.node.child("attributes") for run in runs]
    return read_log(record.out, runs, trace_id, others=[data], whole=[info, *attributes])


def _read_span(span: Cursor) -> LoggedRun:
    given, returned = _find(span, "mlflow.spanInputs", "inputs"), _find(span, "mlflow.spanOutputs", "outputs")
    if given[0] is None and returned[0] is None:
        given = _find(span, "mlflow.chat.messages")
    holder = "status_code" if "status_code" in span else "status"
    code = span.peek(holder) if holder == "status_code" else find_object(span.members, "status").get("code")
    failed = (as_text(code) or "").rpartition("_")[2].upper() == "ERROR"
    start = next((span.peek(name) for name in ("start_time_unix_nano", "start_time") if name in span), 0)
    return LoggedRun(
        span,
        as_text(_find(span, "mlflow.spanType", "span_type", "type")[0]) or "",
        given,
        returned,
        float(start) if isinstance(start, (int, float, str)) and str(start).isdigit() else 0.0,
        not (as_text(span.peek("parent_span_id")) or as_text(span.peek("parent_id"))),
        as_text(span.peek("name")) or "",
        _find(span, "mlflow.chat.tools"),
        f"{span.path}/{holder}" if failed else "",
    )


def _find(span: Cursor, attribute: str, *members: str) -> Located:
    """Return the value of MLflow's attribute, else of the first of these members; null if absent. Adds its pointer."""
    attributes = span.child("attributes")
    return locate(attributes, attribute) if attribute in attributes or not members else locate(span, *members)


FORMATS = (
    Format(
        name="mlflow",
        read=_read,
        recognise=lambda record: isinstance(find_object(record, "data").get("spans"), list),
        score=82,
        summary="An MLflow trace, version 2 or 3.",
        hint="spans below data",
    ),
)
