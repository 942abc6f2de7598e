"""Group spans into one record per trace, in whatever order and files they come.

An export may contain spans of several traces, and a trace may be spread over lines, exports and files. Spans are stored in a
temporary SQLite database until all files are read, and come out trace by trace, in order of first appearance. Memory is bounded
by one record and one trace; the database keeps the rest on disk, in the folder for temporary files (`SQLITE_TMPDIR`, else
`TMPDIR`). The file has no name, so it disappears when the process ends, however it ends.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from service.core.json.members import JsonObject
from service.errors import InputError, TooLargeError
from service.intake.reading import guess_format
from service.intake.spans.exports import is_span, list_exported, read_spans, read_trace_id
from service.intake.spans.selection import has_content
from service.reading.places import AnyRecord, BadRecord, RecordPlace, TraceRecord
from service.reading.strict_json import Limits

_OTHERS = ("langfuse", "langsmith", "opik")
NO_CONTENT = "without a span of a model or a tool"
"""Why a trace is left out."""

_SETUP = (
    "PRAGMA journal_mode=OFF",
    "PRAGMA synchronous=OFF",
    "PRAGMA cache_size=-16384",
    "CREATE TABLE spans (trace TEXT, source TEXT, line INTEGER, pointer TEXT, size INTEGER, span BLOB)",
    "BEGIN",
)
_ADD = "INSERT INTO spans VALUES (?, ?, ?, ?, ?, ?)"
_INDEX = "CREATE INDEX by_trace ON spans (trace, size)"
_TRACES = "SELECT trace, MIN(rowid), SUM(size) FROM spans GROUP BY trace ORDER BY 2"
_PLACE = "SELECT source, line, pointer FROM spans WHERE rowid = ?"
_SPANS = "SELECT span FROM spans WHERE trace = ? ORDER BY rowid"


def group_spans(
    records: Iterable[AnyRecord], limits: Limits, *, left_out: Counter[str], named: str | None = None
) -> Iterator[AnyRecord]:
    """Yield all records that are not spans as they come, then the spans grouped by trace.

    A trace is `{"spans": [...]}` at the place of its first span. One with more than `limits.max_bytes` of spans is a BadRecord.
    Traces without a span of a model or a tool are counted in `left_out`, not yielded. A record that has more than spans (an
    `id`, `tools`, an expectation) is already a trace. `named`: the format of records that name none; records in a format other
    than `spans` are not spans.
    """
    with closing(sqlite3.connect("", isolation_level=None, check_same_thread=False)) as database:
        try:
            for statement in _SETUP:
                database.execute(statement)
            yield from _store_spans(records, database, named or "spans")
            database.execute(_INDEX)
            yield from _list_traces(database, limits, left_out)
        except sqlite3.Error as error:
            reason = f"spans cannot be kept in the folder for temporary files: {error}"
            yield BadRecord(RecordPlace("spans"), InputError.at("", reason))


def _store_spans(records: Iterable[AnyRecord], database: sqlite3.Connection, named: str) -> Iterator[AnyRecord]:
    for record in records:
        if isinstance(record, BadRecord):
            yield record
            continue
        try:
            spans = list_spans(record.value, named)
        except InputError as error:
            yield BadRecord(record.place, error)
            continue
        if spans is None:
            yield record
        else:
            place, about = record.place, (record.place.source, record.place.line)
            whole = f"{place}{place.pointer}"
            written = ((pointer, read_trace_id(span) or whole, to_json(span)) for pointer, span in spans)
            database.executemany(
                _ADD, ((trace, *about, place.pointer + pointer, len(data), data) for pointer, trace, data in written)
            )


def list_spans(record: dict[str, JsonValue], named: str) -> Sequence[tuple[str, JsonObject]] | None:
    """List the spans of a record with their pointers; None if it is something else, or has more than spans.

    An observation of Langfuse, a span of Opik, and a run of LangSmith also have the ids and the name of a span.
    """
    if record.get("format", named) != "spans":
        return None
    if is_span(record):
        return None if "format" not in record and guess_format(record) in _OTHERS else [("", record)]
    keys = record.keys() - {"format"}
    if keys == {"resourceSpans"}:
        return list(list_exported(record["resourceSpans"]))
    spans = record.get("spans")
    if keys != {"spans"} or not isinstance(spans, list):
        return None
    listed = [(f"/spans/{n}", span) for n, span in enumerate(spans) if isinstance(span, dict) and read_trace_id(span)]
    return listed if len(listed) == len(spans) else None


def _list_traces(database: sqlite3.Connection, limits: Limits, left_out: Counter[str]) -> Iterator[AnyRecord]:
    found = yielded = 0
    place = RecordPlace("spans")
    for trace, first, size in database.execute(_TRACES):
        place = RecordPlace(*database.execute(_PLACE, (first,)).fetchone())
        found += 1
        if size > limits.max_bytes:
            reason = f"the trace {trace} has {size} bytes of spans; at most {limits.max_bytes} are taken"
            yield BadRecord(place, TooLargeError.at("", reason))
            yielded += 1
            continue
        spans: list[JsonValue] = [from_json(data) for (data,) in database.execute(_SPANS, (trace,))]
        if has_content(read_spans(spans, None)):  # pyright: ignore[reportArgumentType] (spans are objects)
            yield TraceRecord(place, {"spans": spans})
            yielded += 1
        else:
            left_out[NO_CONTENT] += 1
    if found and not yielded:
        yield BadRecord(place, InputError.at("", f"none of {found} traces has a span of a model or a tool"))
