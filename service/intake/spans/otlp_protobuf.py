"""Read OTLP traces in protobuf's wire format into the form of OTLP's JSON.

The messages are those of opentelemetry-proto 1.x: `ExportTraceServiceRequest` and what it contains. A protobuf library
would be a dependency for this one file; fields missing from the tables are skipped, as the format asks.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from pydantic import JsonValue

from service.errors import MalformedError

MAX_DEPTH = 64
"""Levels of nested values."""

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES = 10
_SIZES = {_FIXED64: 8, _FIXED32: 4}


class _Field(NamedTuple):
    """A field's name, the reader of its value, and whether it repeats."""

    name: str
    read: Callable[[int | bytes, int], JsonValue]
    many: bool = False


_Table = Mapping[int, _Field]


def read_request(data: bytes) -> dict[str, JsonValue]:
    """Read an ExportTraceServiceRequest as OTLP's JSON: `{"resourceSpans": [...]}`.

    Ids are hex digits, times decimal digits.

    Raises MalformedError: the bytes are no such message.
    """
    return _read_message(data, _REQUEST, 0)


def looks_like_request(head: bytes) -> bool:
    """Whether a file with this head is a request, or several prefixed with their lengths: no text starts like that.

    >>> (
    ...     looks_like_request(b"\\n\\x05\\x12\\x03"),
    ...     looks_like_request(b'\\n{"a": 1}'),
    ...     looks_like_request(b"\\0\\0\\1\\0\\n"),
    ... )
    (True, False, True)
    """
    return head[:1] in (b"\n", b"\0") and any(byte < 0x20 and byte not in b"\t\n\r" for byte in head)


def _read_message(data: bytes, table: _Table, depth: int) -> dict[str, JsonValue]:
    if depth > MAX_DEPTH:
        raise MalformedError.at("", f"values in values deeper than {MAX_DEPTH}")
    message: dict[str, JsonValue] = {}
    for number, value in _list_fields(data):
        field = table.get(number)
        if field is None:
            continue
        read = field.read(value, depth + 1)
        listed = message.setdefault(field.name, []) if field.many else None
        if isinstance(listed, list):
            listed.append(read)
        else:
            message[field.name] = read
    return message


def _list_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Iterate over a message's fields: their numbers and raw values."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, at = _read_varint(data, at)
            yield number, value
            continue
        if kind == _LENGTH:
            size, at = _read_varint(data, at)
        elif kind in _SIZES:
            size = _SIZES[kind]
        else:
            raise MalformedError.at("", f"not OTLP in protobuf: a field of the wire type {kind}")
        if at + size > len(data):
            raise MalformedError.at("", "not OTLP in protobuf, or cut off: a field is longer than what is left")
        yield number, data[at : at + size]
        at += size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for n, byte in enumerate(data[at : at + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * n
        if byte < 0x80:
            return value, at + n + 1
    raise MalformedError.at("", "not OTLP in protobuf, or cut off: a number has no end")


def _expect_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise MalformedError.at("", "not OTLP in protobuf: a number where bytes are expected")
    return value


def _expect_number(value: int | bytes) -> int:
    return value if isinstance(value, int) else int.from_bytes(value, "little")


def _read_text(value: int | bytes, _: int) -> JsonValue:
    try:
        return _expect_bytes(value).decode()
    except UnicodeDecodeError:
        raise MalformedError.at("", "not OTLP in protobuf: a text that is not UTF-8") from None


def _read_hex(value: int | bytes, _: int) -> JsonValue:
    return _expect_bytes(value).hex()


def _read_number(value: int | bytes, _: int) -> JsonValue:
    return _expect_number(value)


def _read_digits(value: int | bytes, _: int) -> JsonValue:
    return str(_expect_number(value))


def _read_signed(value: int | bytes, _: int) -> JsonValue:
    number = _expect_number(value) & (2**64 - 1)
    return str(number - 2**64 if number >= 2**63 else number)


def _read_boolean(value: int | bytes, _: int) -> JsonValue:
    return _expect_number(value) != 0


def _read_double(value: int | bytes, _: int) -> JsonValue:
    """Read a double. JSON cannot express non-finite numbers, so they become text, as in protobuf's JSON."""
    data = _expect_bytes(value)
    if len(data) != 8:
        raise MalformedError.at("", "not OTLP in protobuf: a double of another size")
    number: float = struct.unpack("<d", data)[0]
    return number if math.isfinite(number) else str(number)


def _build_message_reader(table: Callable[[], _Table]) -> Callable[[int | bytes, int], JsonValue]:
    """Build the reader of a nested message. `table` is a function because the tables refer to each other."""
    return lambda value, depth: _read_message(_expect_bytes(value), table(), depth)


_KEY_VALUE: _Table = {1: _Field("key", _read_text), 2: _Field("value", _build_message_reader(lambda: _VALUE))}
_ARRAY: _Table = {1: _Field("values", _build_message_reader(lambda: _VALUE), many=True)}
_MEMBERS: _Table = {1: _Field("values", _build_message_reader(lambda: _KEY_VALUE), many=True)}
_VALUE: _Table = {
    1: _Field("stringValue", _read_text),
    2: _Field("boolValue", _read_boolean),
    3: _Field("intValue", _read_signed),
    4: _Field("doubleValue", _read_double),
    5: _Field("arrayValue", _build_message_reader(lambda: _ARRAY)),
    6: _Field("kvlistValue", _build_message_reader(lambda: _MEMBERS)),
    7: _Field("bytesValue", _read_hex),
}
_ATTRIBUTES = _Field("attributes", _build_message_reader(lambda: _KEY_VALUE), many=True)
_EVENT: _Table = {1: _Field("timeUnixNano", _read_digits), 2: _Field("name", _read_text), 3: _ATTRIBUTES}
_STATUS: _Table = {2: _Field("message", _read_text), 3: _Field("code", _read_number)}
_SPAN: _Table = {
    1: _Field("traceId", _read_hex),
    2: _Field("spanId", _read_hex),
    4: _Field("parentSpanId", _read_hex),
    5: _Field("name", _read_text),
    6: _Field("kind", _read_number),
    7: _Field("startTimeUnixNano", _read_digits),
    8: _Field("endTimeUnixNano", _read_digits),
    9: _ATTRIBUTES,
    11: _Field("events", _build_message_reader(lambda: _EVENT), many=True),
    15: _Field("status", _build_message_reader(lambda: _STATUS)),
}
_SCOPE: _Table = {2: _Field("spans", _build_message_reader(lambda: _SPAN), many=True)}
_RESOURCE: _Table = {2: _Field("scopeSpans", _build_message_reader(lambda: _SCOPE), many=True)}
_REQUEST: _Table = {1: _Field("resourceSpans", _build_message_reader(lambda: _RESOURCE), many=True)}
