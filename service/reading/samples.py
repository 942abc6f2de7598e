"""Split a record with several replies to one request into several traces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pydantic import JsonValue

from service.reading.trace_files import BadRecord, TraceRecord

REPLY_PATHS = (
    ("choices",),
    ("candidates",),
    ("response", "choices"),
    ("response", "candidates"),
    ("response", "body", "choices"),
)
"""Where the replies are in a trace."""


def split_samples(records: Iterable[TraceRecord | BadRecord]) -> Iterator[TraceRecord | BadRecord]:
    """Yield the records, one with several replies once per reply; `sample` says which reply it stands for."""
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
    return max(
        [len(replies) for path in REPLY_PATHS if isinstance(replies := _find_value(trace, path), list)], default=1
    )


def _find_value(value: JsonValue, path: tuple[str, ...]) -> JsonValue:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _choose(value: dict[str, JsonValue], sample: int) -> dict[str, JsonValue]:
    trace = _find_trace(value)
    chosen: dict[str, JsonValue] = {**trace, "sample": sample}
    if isinstance(trace.get("id"), str):
        chosen["id"] = f"{trace['id']}#{sample}"
    return chosen if trace is value else {**value, "trace": chosen}
