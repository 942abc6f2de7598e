"""Turn bare traces, such as logs contain, and pasted texts into requests, and guess their format."""

from __future__ import annotations

import io
import json
from collections import Counter
from difflib import get_close_matches
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.pointers import escape_token
from service.errors import InputError
from service.intake.reading import require_format
from service.reading.places import BadRecord, TraceRecord
from service.reading.records import find_traces
from service.reading.span_files import group_spans
from service.reading.strict_json import Limits
from service.reading.trace_files import scan_records

REQUEST_FIELDS = ("custom_id", "expected", "judges", "rubric", "tags")
"""Fields of a request or of a batch line that a bare trace may have beside its own."""

_UNIQUE_FIELDS = frozenset({"expected", "rubric"})
"""Request fields that resemble no trace field, so that a similar name is a misspelling, which must not pass silently."""
MAX_NAME_CHARS = 40
FORMAT_HINT = (
    "name it in `format`, or with --input-format; `callgrade formats` lists the formats and how each is recognized"
)


def is_bare(record: TraceRecord) -> bool:
    """Whether a record is a trace without a request around it."""
    return not isinstance(record.value.get("trace"), dict)


def build_body(record: TraceRecord, *, named: str | None, guessed: Counter[str]) -> dict[str, JsonValue]:
    """Build the request for a record. A trace that names no format gets `named`, or else a guess, which is counted in `guessed`.

    InputError, with pointers into the request, if no format fits.
    """
    body = wrap_trace(record.value) if is_bare(record) else dict(record.value)
    if "id" in body:
        raise InputError.at("/id", "no field of that name is known next to a trace; did you mean 'custom_id'?")
    trace = body["trace"]
    if not isinstance(trace, dict) or "format" in trace:
        return body
    try:
        name = named or require_format(trace, way_out=FORMAT_HINT)
    except ValueError as error:
        raise InputError.at("/trace", str(error)) from None
    if named is None:
        guessed[name] += 1
    trace_with_format: dict[str, JsonValue] = {"format": name, **trace}
    return {**body, "trace": trace_with_format}


def wrap_trace(record: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Build the request around a bare trace. `tags` and `judges` of another shape belong to the trace.

    InputError for a field whose name nearly matches a request field.
    """
    shapes: dict[str, type | tuple[type, ...]] = {"tags": dict, "judges": str}
    for name, value in record.items():
        similar = get_close_matches(name[:MAX_NAME_CHARS], _UNIQUE_FIELDS - record.keys(), n=1, cutoff=0.8)
        if similar and name not in REQUEST_FIELDS and value is not None:
            message = f"no field of that name is known next to a trace; did you mean {similar[0]!r}?"
            raise InputError.at(f"/{escape_token(name)}", message)
    request = {
        name: record[name]
        for name in REQUEST_FIELDS
        if name in record and isinstance(record[name], shapes.get(name, object))
    }
    return {"trace": {name: value for name, value in record.items() if name not in request}, **request}


class PastedTrace(NamedTuple):
    """The traces in a text."""

    body: bytes
    """The request of its first trace."""
    guessed: str | None
    """The guessed format; None if the trace names one."""
    others: int
    """How many traces follow the first."""


def read_pasted(text: str, limits: Limits, *, keep: bool) -> PastedTrace:
    """Read the first trace of a text, in any form that files may have; InputError, with places in the text, if there is none.

    `keep`: whether to store its score, whatever the text says.
    """
    source = io.BytesIO(text.strip().encode(errors="replace"))
    records = find_traces(scan_records(source, limits=limits, name="the text"))
    traces = list(group_spans(records, limits, left_out=Counter(), named=None))
    if not traces:
        raise InputError.at("", "the text contains no trace")
    first = traces[0]
    if isinstance(first, BadRecord):
        raise first.error
    guessed: Counter[str] = Counter()
    body = {
        name: value for name, value in build_body(first, named=None, guessed=guessed).items() if name != "custom_id"
    } | {"store": keep}
    others = sum(isinstance(one, TraceRecord) for one in traces[1:])
    return PastedTrace(json.dumps(body).encode(), next(iter(guessed), None), others)
