"""Read server-sent events (SSE) as a client recorded them: each stream is the one reply that its events build up.

A stream of Chat Completions becomes `chunks`; one of Anthropic's Messages, the message that its events describe; one of the
Responses API, the response that its last event holds; one of Gemini, a candidate with all its parts. Any other event is a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.members import find_object, find_text, list_items, list_objects
from service.core.json.parsing import parse_or_none
from service.reading.places import BadRecord, RecordPlace, TraceRecord

EVENT_STARTS = (b"data:", b"event:", b"id:", b"retry:")
_END = b"[DONE]"
Record = dict[str, JsonValue]
_STARTS = ("message_start", "response.created")
_RESPONSE_ENDS = ("response.completed", "response.incomplete", "response.failed")


class _Event(NamedTuple):
    place: RecordPlace
    data: bytes


def read_events(
    data: bytes, place: RecordPlace, parse: Callable[[bytes, RecordPlace], TraceRecord | BadRecord]
) -> Iterator[TraceRecord | BadRecord]:
    """Yield the records of a stream of events; an event that is not JSON is a BadRecord, and the rest is still read."""
    waiting: list[TraceRecord] = []
    for event in _list_events(data, place):
        record = None if event.data == _END else parse(event.data, event.place)
        if isinstance(record, BadRecord):
            yield record
        elif record is not None and not (waiting and record.value.get("type") in _STARTS):
            waiting.append(record)
        else:
            yield from _join(waiting)
            waiting = [] if record is None else [record]
    yield from _join(waiting)


def _list_events(data: bytes, place: RecordPlace) -> Iterator[_Event]:
    """Iterate over the data of each event: several lines of data are one, and a blank line ends it."""
    lines: list[bytes] = []
    start = place.line or 1
    for number, line in enumerate([*data.splitlines(), b""], place.line or 1):
        if line.startswith(b"data:"):
            start = start if lines else number
            lines.append(line[5:].strip())
        elif not line.strip() and lines:
            yield _Event(replace(place, line=start), b"\n".join(lines))
            lines = []


def _join(events: Sequence[TraceRecord]) -> Iterator[TraceRecord]:
    values = [event.value for event in events]
    joined = _join_values(values) if values else None
    yield from events if joined is None else [TraceRecord(events[0].place, joined)]


def _join_values(values: Sequence[Record]) -> Record | None:
    """Return the reply that the events of one stream build up; None if they are of no known kind."""
    if all(value.get("object") == "chat.completion.chunk" for value in values):
        return {"chunks": [*values]}
    if values[0].get("type") == "message_start":
        return _join_message(values)
    ends = [find_object(value, "response") for value in values if value.get("type") in _RESPONSE_ENDS]
    if ends:
        return ends[-1]
    if all("candidates" in value for value in values):
        return _join_candidates(values)
    return None


def _join_message(values: Sequence[Record]) -> Record:
    """Build Anthropic's message: blocks start, grow by deltas and stop; a last delta says how it ended."""
    message: Record = {**find_object(values[0], "message")}
    blocks: dict[str, Record] = {}
    ended = False
    for value in values:
        index, delta = str(value.get("index")), find_object(value, "delta")
        match value.get("type"):
            case "content_block_start":
                blocks[index] = {**find_object(value, "content_block")}
            case "content_block_delta":
                block = blocks.setdefault(index, {"type": "text"})
                grown = _GROWING & delta.keys()
                block |= {name: (find_text(block, name) or "") + (find_text(delta, name) or "") for name in grown}
            case "message_delta":
                message |= delta
            case "error":
                message["error"] = value.get("error")
            case kind:
                ended = ended or kind == "message_stop"
    if not (ended or message.get("stop_reason")):
        message["stop_reason"] = "unfinished"
    return {**message, "content": [_close(block) for block in blocks.values()]}


_INPUT = "partial_json"
_GROWING = frozenset({"text", "thinking", _INPUT})


def _close(block: Record) -> Record:
    """Return a block with the input that its pieces spell; as text if they spell none."""
    if _INPUT not in block:
        return block
    text = find_text(block, _INPUT) or ""
    spelt = parse_or_none(text) if text else {}
    return {name: value for name, value in block.items() if name != _INPUT} | {
        "input": text if spelt is None else spelt
    }


def _join_candidates(values: Sequence[Record]) -> Record:
    """Build Gemini's reply: a candidate with the parts of all chunks, and the ending that the last one states."""
    parts: list[JsonValue] = []
    candidate: Record = {}
    for value in values:
        for piece in [*list_objects(value.get("candidates"))][:1]:
            parts += list_items(find_object(piece, "content").get("parts"))
            candidate |= piece
    return {**values[-1], "candidates": [{**candidate, "content": {"role": "model", "parts": parts}}]}
