"""Braintrust logs: the rows of one trace in `events` (as the API returns them), or one row.

Rows whose `span_attributes` have the type `llm` are the exchanges with a model. `expected` is a reference.
"""

from __future__ import annotations

from service.core.json.members import JsonObject, as_text, find_object, list_objects
from service.intake.cursor import Cursor
from service.intake.format import Format
from service.intake.runs import NOTHING, LoggedRun, locate, read_log
from service.intake.wrapping import WrapperContents


def _read(record: Cursor) -> WrapperContents:
    rows = record.list_nodes("events") or [record]
    root = next((name for row in rows if (name := as_text(row.peek("root_span_id")))), None)
    return read_log(record.out, [_read_row(row) for row in rows], root)


def _read_row(row: Cursor) -> LoggedRun:
    attributes = row.child("span_attributes")
    if not attributes:
        row.leave("a row of an unknown type", keep=True)
    row.take("expected")
    options = row.child("metadata")
    return LoggedRun(
        row,
        attributes.text("type"),
        locate(row, "input"),
        locate(row, "output"),
        as_text(row.peek("created")) or "",
        not row.peek("span_parents"),
        attributes.text("name"),
        locate(options, "tools") if "tools" in options else NOTHING,
        f"{row.path}/error" if row.peek("error") else "",
    )


def _recognise(record: JsonObject) -> bool:
    rows = [*list_objects(record.get("events")), record]
    return any(find_object(row, "span_attributes") and "root_span_id" in row for row in rows)


FORMATS = (
    Format(
        name="braintrust",
        read=_read,
        recognise=_recognise,
        score=91,
        summary="Rows of a Braintrust log: one, or those of a trace in `events`.",
        hint="span_attributes with a root_span_id",
    ),
)
