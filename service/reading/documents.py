"""Find where JSON documents start and end in bytes, without parsing them, and join server-sent events (SSE) into replies.

A stream of Chat Completions becomes `chunks`; one of Anthropic's Messages, the message that its events describe; one of the
Responses API, the response that its last event holds; one of Gemini, a candidate with all its parts. Any other event is a record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.members import find_object, find_text, list_elements, list_objects
from service.core.json.parsing import parse_or_none
from service.errors import TooLargeError
from service.reading.places import AnyRecord, BadRecord, RecordPlace, TraceRecord

PIECE_BYTES = 64 * 2**10

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["\[\]{},]', re.DOTALL)
"""The structural tokens of JSON text: strings, brackets and commas; a lone quote is a string without an end."""
_DEPTH_CHANGES = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}


def is_whole(line: bytes) -> bool:
    """Whether a line looks like a complete object: it starts with a brace, and every bracket is closed."""
    return line.lstrip().startswith(b"{") and count_open(line) == 0


def count_open(text: bytes) -> int | None:
    """Count the brackets that a piece of JSON opens and does not close; None if it ends within a string."""
    depth = 0
    for token in _TOKEN.finditer(text):
        if token[0] == b'"':
            return None
        depth += _DEPTH_CHANGES.get(token[0], 0)
    return depth


def continues(before: bytes, line: bytes) -> bool:
    """Whether JSON that was broken into lines may go on from one line to the next."""
    return before.rstrip().endswith((b"{", b"[", b",", b":")) or line.lstrip().startswith((b"}", b"]", b",", b":"))


class ListPart(NamedTuple):
    """A piece of a list: an element without the blanks around it, what follows the list, or its missing end (None)."""

    line: int
    """Lines that end before it."""
    data: bytes | None
    element: bool = False


def split_elements(head: bytes, read: Callable[[int], bytes], most: int) -> Iterator[ListPart]:
    """Iterate over the elements of a JSON list, read piece by piece from where it starts, and then over its end.

    At most `most` bytes and a piece are held. Raises TooLargeError: an element is larger than that.
    """
    data, start, depth, several = head, head.index(b"[") + 1, 1, False
    at, line = start, head.count(b"\n", 0, start)
    while True:
        for token in _TOKEN.finditer(data, at):
            if token[0] == b'"':  # perhaps the piece ends within a string
                at = token.start()
                break
            at = token.end()
            depth += _DEPTH_CHANGES.get(token[0], 0)
            if depth == 0 or (depth == 1 and token[0] == b","):
                if depth or several or data[start : token.start()].strip():
                    yield _take_element(data[start : token.start()], line)
                line += data.count(b"\n", start, at)
                start, several = at, True
            if depth == 0:
                yield ListPart(line, data[at:])
                return
        if len(data) - start > most:
            raise TooLargeError.at("", f"an element of more than {most} bytes; what follows was not read")
        more = read(max(PIECE_BYTES, len(data) - start))
        if not more:
            rest = data[start:]
            yield from [_take_element(rest, line)] if rest.strip() else []
            yield ListPart(line + rest.rstrip().count(b"\n"), None)
            return
        data, start, at = data[start:] + more, 0, at - start


def _take_element(data: bytes, line: int) -> ListPart:
    element = data.lstrip()
    return ListPart(line + data.count(b"\n", 0, len(data) - len(element)), element.rstrip(), element=True)


def split_documents(data: bytes) -> list[tuple[int, int]]:
    """Return where each of several documents starts and ends that follow one another; what is no bracket is a piece too.

    >>> data = b'{"a": 1} {"b": "}"}\\x1e[2]'
    >>> [data[start:end].strip() for start, end in split_documents(data)]
    [b'{"a": 1}', b'{"b": "}"}', b'[2]']
    """
    pieces: list[tuple[int, int]] = []
    start = depth = 0
    for token in _TOKEN.finditer(data):
        if token[0] == b'"':
            break
        depth += _DEPTH_CHANGES.get(token[0], 0)
        if depth == 0 and token[0] in (b"}", b"]"):
            pieces.append((start, token.end()))
            start = token.end()
    if data[start:].strip(SEPARATORS):
        pieces.append((start, len(data)))
    return [(end - len(data[begin:end].lstrip(SEPARATORS)), end) for begin, end in pieces]


SEPARATORS = b" \t\r\n\x1e"
"""What may stand between documents: white space, and the record separator of RFC 7464."""


EVENT_STARTS = (b"data:", b"event:", b"id:", b"retry:")
_END = b"[DONE]"
Record = dict[str, JsonValue]
_STARTS = ("message_start", "response.created")
_RESPONSE_ENDS = ("response.completed", "response.incomplete", "response.failed")


def read_events(
    data: bytes, place: RecordPlace, parse: Callable[[bytes, RecordPlace], AnyRecord]
) -> Iterator[AnyRecord]:
    """Yield the records of a stream of events; an event that is not JSON is a BadRecord, and the rest is still read."""
    waiting: list[TraceRecord] = []
    for start, event in _list_events(data, place.line or 1):
        record = None if event == _END else parse(event, replace(place, line=start))
        if isinstance(record, BadRecord):
            yield record
        elif record is not None and not (waiting and record.value.get("type") in _STARTS):
            waiting.append(record)
        else:
            yield from _join(waiting)
            waiting = [] if record is None else [record]
    yield from _join(waiting)


def _list_events(data: bytes, first: int) -> Iterator[tuple[int, bytes]]:
    """Iterate over the data of each event, with its line: several lines of data are one, and a blank line ends it."""
    lines, start = list[bytes](), first
    for number, line in enumerate([*data.splitlines(), b""], first):
        if line.startswith(b"data:"):
            start = start if lines else number
            lines.append(line[5:].strip())
        elif not line.strip() and lines:
            yield start, b"\n".join(lines)
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
            parts += list_elements(find_object(piece, "content").get("parts"))
            candidate |= piece
    return {**values[-1], "candidates": [{**candidate, "content": {"role": "model", "parts": parts}}]}
