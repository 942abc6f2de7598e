"""Reading files of traces: JSON, JSON Lines, OTLP in protobuf, and any of them gzipped.

A file is JSON Lines when its first line is a whole object, else one document: an object, or a list of them. The layout is
told by the content, never by the name. What cannot be read comes out as an item too, in its place, so nothing is lost.

Protobuf is a request's body, or what the OpenTelemetry Collector's file exporter writes: requests, each after its length.

Memory is bounded by one record for JSON Lines, gzipped or not, and by a limit (`MAX_DOCUMENT`) for a document, for a request
in protobuf and for a line of the collector's, which holds many spans.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

from pydantic import JsonValue

from service.errors import InputError, MalformedError, Problem, TooLargeError
from service.intake.spans.otlp_protobuf import looks_like_request, read_request
from service.reading.strict_json import Limits, parse

MAX_DOCUMENT = 64 * 2**20
"""Largest JSON document in bytes; also how far the end of a line is looked for when the line is too long to be read."""

CHUNK = 64 * 2**10
HEAD = 4_096
"""Bytes by which text is told from protobuf."""

_EXPORT = b'{"resourceSpans":'
"""How a line of the collector's begins: it holds many spans, and may be as long as a document."""

_GZIP = b"\x1f\x8b"
_MARKS = {b"\xef\xbb\xbf": "UTF-8 with a byte order mark", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["\[\]{},]', re.DOTALL)
"""What the structure of JSON text consists of: strings, brackets and commas; a lone quote is a string without an end."""


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """Where a record stands: its file, the line it begins in (from 1; None: the file as a whole) and its pointer in it."""

    source: str
    line: int | None = None
    pointer: str = ""

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """An object that was read."""

    place: RecordPlace
    value: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class BadRecord:
    """What could not be read, and why. Pointers of the error start at the record."""

    place: RecordPlace
    error: InputError


def scan_records(
    source: Path | BinaryIO, *, limits: Limits, name: str | None = None, max_document: int = MAX_DOCUMENT
) -> Iterator[TraceRecord | BadRecord]:
    """Every record of a file or stream, in order; one that cannot be read is a BadRecord and the rest is read on.

    Nothing is raised for content, whatever it is. A file without any record, one that cannot be opened, truncated gzip and a
    byte order mark are each one BadRecord. `limits` holds for each record, `max_document` (bytes) for a document as a whole and
    for the search for the end of a line that is too long; `name` stands for the file in places. A stream
    that was given stays open.
    """
    called = name or (str(source) if isinstance(source, Path) else "stdin")
    try:
        with _open(source) as stream:
            if looks_like_request(_peek(stream)):
                yield from _read_requests(stream, called, max_document)
            else:
                yield from _RecordReader(stream, called, limits, max_document).read()
    except OSError as error:
        yield BadRecord(RecordPlace(called), InputError.at("", _explain_error(error)))


def scan_lines(
    stream: BinaryIO, *, limits: Limits, name: str, max_line: int = MAX_DOCUMENT
) -> Iterator[TraceRecord | BadRecord]:
    """Every record of a stream that is said to be JSON Lines, as by `scan_records`: each line is one, whatever it looks like.

    Nothing is unpacked. `max_line` (bytes): how far the end of a line that is too long is looked for.
    """
    yield from _RecordReader(stream, name, limits, max_line).read(as_lines=True)


@contextmanager
def _open(source: Path | BinaryIO) -> Generator[BinaryIO]:
    """The stream, unpacked where it begins like gzip."""
    if isinstance(source, Path):
        with source.open("rb") as file, _unpack(file) as stream:
            yield stream
    elif isinstance(source, io.BufferedReader):
        with _unpack(cast("io.BufferedReader[Any]", source)) as stream:
            yield stream
    else:
        # Any stream can be peeked into through a buffer, which would close it when it goes.
        buffer = io.BufferedReader(cast("io.RawIOBase", source))
        try:
            with _unpack(buffer) as stream:
                yield stream
        finally:
            buffer.detach()


def _unpack(stream: io.BufferedReader[Any]) -> AbstractContextManager[BinaryIO]:
    if stream.peek(2).startswith(_GZIP):
        return cast("AbstractContextManager[BinaryIO]", gzip.GzipFile(fileobj=stream, mode="rb"))
    return nullcontext(cast("BinaryIO", stream))


def _peek(stream: BinaryIO) -> bytes:
    """How it goes on, without going on; nothing where that cannot be read, as reading will tell."""
    try:
        return cast("io.BufferedReader[Any]", stream).peek(HEAD)[:HEAD]
    except (OSError, EOFError, zlib.error):
        return b""


def _read_requests(stream: BinaryIO, source: str, max_size: int) -> Iterator[TraceRecord | BadRecord]:
    """Requests in protobuf. What follows one that is cut off or too large is not read."""
    number = 0
    try:
        for data in _list_requests(stream, max_size):
            yield TraceRecord(RecordPlace(source), read_request(data))
            number += 1
    except InputError as error:
        problems = [Problem("", f"request {number + 1} of the file: {problem.message}") for problem in error.problems]
        yield BadRecord(RecordPlace(source), type(error)(problems))
    except (OSError, EOFError, zlib.error) as error:
        yield BadRecord(RecordPlace(source), InputError.at("", _explain_error(error)))


def _list_requests(stream: BinaryIO, max_size: int) -> Iterator[bytes]:
    """The one request that a file is, or those that it has after four bytes of their length."""
    if _peek(stream).startswith(b"\n"):
        data = stream.read(max_size + 1)
        if len(data) > max_size:
            raise TooLargeError.at("", f"more than {max_size} bytes")
        yield data
        return
    while head := stream.read(4):
        size = int.from_bytes(head, "big")
        if size > max_size:
            raise TooLargeError.at("", f"{size} bytes; at most {max_size} are taken")
        data = stream.read(size)
        if len(head) < 4 or len(data) < size:
            raise MalformedError.at("", "the file ends within it")
        yield data


def _explain_error(error: OSError | EOFError | zlib.error) -> str:
    if isinstance(error, EOFError):
        return "the gzip data ends too early; what comes before was read"
    if isinstance(error, zlib.error | gzip.BadGzipFile):
        return f"the gzip data is damaged ({error}); what comes before was read"
    return f"cannot be read: {error.strerror or error}"


class _RecordReader:
    """One pass over a stream."""

    def __init__(self, stream: BinaryIO, source: str, limits: Limits, max_document: int) -> None:
        self._stream = stream
        self._source = source
        self._limits = limits
        self._max_document = max_document
        self._line = 0
        self._at_start = True

    def read(self, *, as_lines: bool = False) -> Iterator[TraceRecord | BadRecord]:
        """The records. OSError only from below the stream's first byte; what breaks later is an item."""
        empty = True
        try:
            for item in self._read_lines(self._read_next_line()) if as_lines else self._read_all():
                empty = False
                yield item
        except (OSError, EOFError, zlib.error) as error:
            yield self._build_bad_record(InputError.at("", _explain_error(error)))
        except TooLargeError as error:
            yield self._build_bad_record(error)
        else:
            if empty:
                yield BadRecord(RecordPlace(self._source), InputError.at("", "there is no record in it"))

    def _read_all(self) -> Iterator[TraceRecord | BadRecord]:
        first = self._read_next_line()
        mark = next((mark for mark in _MARKS if first.startswith(mark)), None)
        if mark is not None:
            yield self._build_bad_record(
                MalformedError.at("", f"expected UTF-8 without a byte order mark, not {_MARKS[mark]}")
            )
        elif first.lstrip().startswith(b"["):
            yield from self._read_list(first)
        elif first:
            yield from self._read_lines_or_document(first)

    def _read_lines_or_document(self, first: bytes) -> Iterator[TraceRecord | BadRecord]:
        """A line that is whole, or followed by a whole one, is a line of JSON Lines even where it cannot be parsed.

        But not one that ends where a document goes on: after an opening bracket or a comma.
        """
        place, begins = self._locate(), self._line
        if self._is_too_long(first) or _is_whole(first):
            yield self._read_record(first, place)
        else:
            second = self._read_next_line()
            if not _is_whole(second) or first.rstrip().endswith((b"{", b"[", b",")):
                blank = b"\n" * (self._line - begins - 1)
                yield self._parse(self._read_document(first + blank + second), place)
                return
            yield self._read_record(first, place)
            yield self._read_record(second, self._locate())
        yield from self._read_lines(self._read_next_line())

    def _read_lines(self, line: bytes) -> Iterator[TraceRecord | BadRecord]:
        while line:
            yield self._read_record(line, self._locate())
            line = self._read_next_line()

    def _read_next_line(self) -> bytes:
        """The next line that is not blank, cut off where it is too long; empty at the end."""
        while line := self._stream.readline(self._limits.max_bytes + 2):
            self._line += self._at_start
            self._at_start = line.endswith(b"\n")
            if not line.isspace():
                return line
        return b""

    def _is_too_long(self, line: bytes) -> bool:
        return len(line.strip()) > self._limits.max_bytes

    def _read_record(self, line: bytes, place: RecordPlace) -> TraceRecord | BadRecord:
        if not self._is_too_long(line):
            return self._parse(line, place)
        if line.startswith(_EXPORT):
            return self._read_export(line, place)
        self._skip_line()
        return BadRecord(place, TooLargeError.at("", f"a record of more than {self._limits.max_bytes} bytes"))

    def _read_export(self, line: bytes, place: RecordPlace) -> TraceRecord | BadRecord:
        """A long line of the collector's: its spans are held to the limits one by one, as traces."""
        if not self._at_start:
            line += self._stream.readline(self._max_document)
            self._at_start = line.endswith(b"\n")
        if len(line) > self._max_document or not line.endswith(b"\n"):
            self._skip_line()
            return BadRecord(place, TooLargeError.at("", f"an export of more than {self._max_document} bytes"))
        large = replace(self._limits, max_bytes=self._max_document, max_items=self._max_document)
        return self._parse(line, place, large)

    def _skip_line(self) -> None:
        skipped = 0
        while not self._at_start:
            part = self._stream.readline(CHUNK)
            self._at_start = not part or part.endswith(b"\n")
            skipped += len(part)
            if skipped > self._max_document:
                most = f"a line of more than {self._max_document} bytes"
                raise TooLargeError.at("", f"{most}; what comes after was not read")

    def _parse(self, data: bytes, place: RecordPlace, limits: Limits | None = None) -> TraceRecord | BadRecord:
        try:
            value = parse(data.strip(), limits or self._limits)
        except InputError as error:
            return _place_error(error, place)
        if not isinstance(value, dict):
            return BadRecord(place, InputError.at("", f"expected an object, not {_name_kind(value)}"))
        return TraceRecord(place, value)

    def _read_document(self, start: bytes) -> bytes:
        data = start + self._stream.read(max(0, self._max_document + 1 - len(start)))
        if len(data) > self._max_document:
            size = f"a JSON document of more than {self._max_document} bytes"
            raise TooLargeError.at("", f"{size}; write one record a line instead (JSON Lines)")
        return data

    def _read_list(self, first: bytes) -> Iterator[TraceRecord | BadRecord]:
        """Each element on its own: one that is broken does not spoil the others."""
        data = self._read_document(first)
        elements = _Elements(data)
        counted = 0
        for index, (start, end) in enumerate(elements):
            piece = data[start:end]
            begin = start + len(piece) - len(piece.lstrip())
            self._line += data.count(b"\n", counted, begin)
            counted = begin
            yield self._parse(piece, RecordPlace(self._source, self._line, f"/{index}"))
        end = len(data.rstrip()) if elements.end is None else elements.end
        self._line += data.count(b"\n", counted, end)
        if elements.end is None:
            yield self._build_bad_record(MalformedError.at("", "the list has no end"))
        elif data[end:].strip():
            yield self._build_bad_record(MalformedError.at("", "something follows the list, and was not read"))

    def _locate(self) -> RecordPlace:
        return RecordPlace(self._source, self._line)

    def _build_bad_record(self, error: InputError) -> BadRecord:
        return BadRecord(self._locate() if self._line else RecordPlace(self._source), error)


_DEPTH = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}


def _is_whole(line: bytes) -> bool:
    """Whether a line has the outline of an object: it begins with a brace, and every bracket is closed."""
    if not line.lstrip().startswith(b"{"):
        return False
    depth = 0
    for token in _TOKEN.finditer(line):
        if token[0] == b'"':
            return False
        depth += _DEPTH.get(token[0], 0)
    return depth == 0


class _Elements:
    """Where the elements of a JSON list start and end. `end` is what follows the list, None while it is not closed."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.end: int | None = None

    def __iter__(self) -> Iterator[tuple[int, int]]:
        start = self._data.index(b"[") + 1
        depth, several = 0, False
        for token in _TOKEN.finditer(self._data):
            if token[0] == b'"':
                break
            depth += _DEPTH.get(token[0], 0)
            if depth == 0:
                self.end = token.end()
                if several or self._data[start : token.start()].strip():
                    yield start, token.start()
                return
            if depth == 1 and token[0] == b",":
                yield start, token.start()
                start, several = token.end(), True
        if self._data[start:].strip():
            yield start, len(self._data)


_KINDS: dict[type, str] = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}


def _name_kind(value: JsonValue) -> str:
    return _KINDS.get(type(value), "null")


_WITHIN = re.compile(r"line (\d+), (column \d+: .*)", re.DOTALL)


def _place_error(error: InputError, place: RecordPlace) -> BadRecord:
    """The error where the file has it: a line that it counts from the start of its record becomes one of the file."""
    found = _WITHIN.fullmatch(error.problems[0].message)
    if found is None or place.line is None:
        return BadRecord(place, error)
    line = place.line + int(found[1]) - 1
    return BadRecord(replace(place, line=line), type(error).at(error.problems[0].path, found[2]))
