"""Traces without a request around them, as logs have them: made into requests, their format guessed."""

from __future__ import annotations

from collections import Counter
from difflib import get_close_matches

from pydantic import JsonValue

from service.core.json.pointers import escape_token
from service.errors import InputError
from service.intake import require_format
from service.reading.trace_files import TraceRecord

BESIDE = ("custom_id", "expected", "judges", "rubric", "tags")
"""Fields of a request, or of a line of a batch, that a bare trace may have beside its own."""

_OURS = frozenset({"expected", "rubric"})
"""Those that no trace has under a similar name: a misspelt one would pass in silence."""
MAX_NAME_CHARS = 40
NAME_IT = "name it in `format`, or with --input-format; `callgrade formats` lists them with what tells each"


def is_bare(record: TraceRecord) -> bool:
    """Whether a record is a trace without a request around it."""
    return not isinstance(record.value.get("trace"), dict)


def build_body(record: TraceRecord, *, named: str | None, guessed: Counter[str]) -> dict[str, JsonValue]:
    """The request that a record means, its trace with its format: `named` or a guess, which is counted, where it names none.

    InputError, with pointers into the request, where no format fits.
    """
    body = wrap_trace(record.value) if is_bare(record) else dict(record.value)
    if "id" in body:
        raise InputError.at("/id", "no field of that name is known beside a trace; did you mean 'custom_id'?")
    trace = body["trace"]
    if not isinstance(trace, dict) or "format" in trace:
        return body
    try:
        found = named or require_format(trace, way_out=NAME_IT)
    except ValueError as error:
        raise InputError.at("/trace", str(error)) from None
    if named is None:
        guessed[found] += 1
    formatted: dict[str, JsonValue] = {"format": found, **trace}
    return {**body, "trace": formatted}


def wrap_trace(record: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The request around a bare trace. `tags` and `judges` of another shape are the trace's own.

    InputError: a member that is nearly one of the request's.
    """
    shapes: dict[str, type | tuple[type, ...]] = {"tags": dict, "judges": str}
    for name in record:
        meant = get_close_matches(name[:MAX_NAME_CHARS], _OURS - record.keys(), n=1, cutoff=0.8)
        if meant and name not in BESIDE:
            message = f"no field of that name is known beside a trace; did you mean {meant[0]!r}?"
            raise InputError.at(f"/{escape_token(name)}", message)
    found = {
        name: record[name] for name in BESIDE if name in record and isinstance(record[name], shapes.get(name, object))
    }
    return {"trace": {name: value for name, value in record.items() if name not in found}, **found}
