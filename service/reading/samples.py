"""Several replies to one request, which are several traces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pydantic import JsonValue

from service.reading.trace_files import BadRecord, TraceRecord

PLACES = (
    ("choices",),
    ("candidates",),
    ("response", "choices"),
    ("response", "candidates"),
    ("response", "body", "choices"),
)
"""Where replies stand in a trace."""


def split_samples(records: Iterable[TraceRecord | BadRecord]) -> Iterator[TraceRecord | BadRecord]:
    """The records, one with several replies as often as it has some: each says in `sample` which of them it is."""
    for record in records:
        count = 1 if isinstance(record, BadRecord) else _count_replies(_find_trace(record.value))
        if isinstance(record, BadRecord) or count < 2:
            yield record
        else:
            yield from [replace(record, value=_choose(record.value, sample)) for sample in range(count)]


def _find_trace(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    trace = value.get("trace")
    return trace if isinstance(trace, dict) else value


def _count_replies(trace: dict[str, JsonValue]) -> int:
    if "sample" in trace:
        return 1
    return max([len(found) for way in PLACES if isinstance(found := _look(trace, way), list)], default=1)


def _look(value: JsonValue, way: tuple[str, ...]) -> JsonValue:
    for name in way:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _choose(value: dict[str, JsonValue], sample: int) -> dict[str, JsonValue]:
    trace = _find_trace(value)
    chosen: dict[str, JsonValue] = {**trace, "sample": sample}
    if isinstance(trace.get("id"), str):
        chosen["id"] = f"{trace['id']}#{sample}"
    return chosen if trace is value else {**value, "trace": chosen}
