"""Lists of messages as one trace: what many logs are, and what a list of traces is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from pydantic import JsonValue

from service.reading.trace_files import BadRecord, TraceRecord

Given = Mapping[str, JsonValue]

WHOLE = frozenset(
    {"trace", "messages", "events", "choices", "usage", "spans", "input", "output", "request", "response"}
)
"""Members of what is more than a message."""
LANGCHAIN_TYPES = frozenset({"human", "ai", "system", "tool", "function"})
ITEM_TYPES = frozenset(
    {"function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "reasoning"}
)


def join_messages(records: Iterable[TraceRecord | BadRecord]) -> Iterator[TraceRecord | BadRecord]:
    """The records of a file, a list whose elements are all messages put together as one trace.

    It stands for {"messages": [...]}, of the Responses API for {"items": [...]}, of a stream for {"chunks": [...]}: pointers
    into it begin so.
    """
    waiting: list[TraceRecord] = []
    for record in records:
        if isinstance(record, TraceRecord) and _continues(waiting, record):
            waiting.append(record)
            continue
        yield from waiting  # not all are messages: each is what it is
        waiting = []
        yield record
    if waiting:
        yield _join(waiting)


def _continues(waiting: list[TraceRecord], record: TraceRecord) -> bool:
    return record.place.pointer == f"/{len(waiting)}" and _name_list(record.value) is not None


def _join(records: list[TraceRecord]) -> TraceRecord:
    names = [_name_list(record.value) for record in records]
    name = next((name for name in ("chunks", "items") if name in names), "messages")
    return TraceRecord(replace(records[0].place, pointer=""), {name: [record.value for record in records]})


def _name_list(value: Given) -> str | None:
    """What a list is called that has this as an element; None for what is no message."""
    if value.get("object") == "chat.completion.chunk":
        return "chunks"
    kind = value.get("type")
    if isinstance(kind, str) and kind in ITEM_TYPES:
        return "items"
    if value.keys() & WHOLE:
        return None
    told = isinstance(kind, str) and kind in LANGCHAIN_TYPES and bool(value.keys() & {"content", "data"})
    held = "parts" in value and value.get("kind") in ("request", "response")
    return "messages" if isinstance(value.get("role"), str) or told or held or "lc" in value else None
