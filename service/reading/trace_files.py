"""Read files of traces: JSON, JSON Lines, OTLP in protobuf, each also gzipped.

A file is JSON Lines if its first line is a complete object, else one document: an object, or a list of objects. The layout is
recognized by content, never by name. What cannot be read is yielded in its place too, so nothing is lost.

Protobuf is the body of a request, or what the OpenTelemetry Collector's file exporter writes: requests, each after its length.

Memory is bounded by one record for JSON Lines, gzipped or not, and by `MAX_DOCUMENT_BYTES` for a document, a protobuf request,
and a line of the collector, which contains many spans.
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

MAX_DOCUMENT_BYTES = 64 * 2**20
"""The largest JSON document; also how far to search for the end of a line that is too long to be read."""

CHUNK_BYTES = 64 * 2**10
HEAD_BYTES = 4_096
"""How many bytes are examined to tell text from protobuf."""

_EXPORT_START = b'{"resourceSpans":'
"""The start of a line of the collector, which contains many spans and may be as long as a document."""

_GZIP = b"\x1f\x8b"
_ENCODING_MARKS = {b"\xef\xbb\xbf": "UTF-8 with a byte order mark", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["\[\]{},]', re.DOTALL)
"""The structural tokens of JSON text: strings, brackets and commas; a lone quote is a string without an end."""


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """Where a record is: its file, its first line (from 1; None: the file as a whole) and its pointer in the document."""

    source: str
    line: int | None = None
    pointer: str = ""

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """An object that was read, and its place."""

    place: RecordPlace
    value: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that could not be read, and why. The error's pointers start at the record."""

    place: RecordPlace
    error: InputError


def scan_records(
    source: Path | BinaryIO, *, limits: Limits, name: str | None = None, max_document: int = MAX_DOCUMENT_BYTES
) -> Iterator[TraceRecord | BadRecord]:
    """Yield every record of a file or stream, in order; one that cannot be read is a BadRecord, and the rest is still read.

    Content never raises an error. A file without records, one that cannot be opened, truncated gzip and a byte order mark are
    each one BadRecord. `limits` applies to each record; `max_document` (bytes) applies to a whole document, and to the search
    for the end of a line that is too long; `name` replaces the file name in places. A stream that is passed in stays open.
    """
    source_name = name or (str(source) if isinstance(source, Path) else "stdin")
    try:
        with _open(source) as stream:
            if looks_like_request(_peek(stream)):
                yield from _read_requests(stream, source_name, max_document)
            else:
                yield from _RecordReader(stream, source_name, limits, max_document).read()
    except OSError as error:
        yield BadRecord(RecordPlace(source_name), InputError.at("", _explain_error(error)))


def scan_lines(
    stream: BinaryIO, *, limits: Limits, name: str, max_line: int = MAX_DOCUMENT_BYTES
) -> Iterator[TraceRecord | BadRecord]:
    """Yield every record of a stream known to be JSON Lines, like `scan_records`: each line is one, whatever it looks like.

    Gzip is not unpacked. `max_line` (bytes): how far to search for the end of a line that is too long.
    """
    yield from _RecordReader(stream, name, limits, max_line).read(as_lines=True)


@contextmanager
def _open(source: Path | BinaryIO) -> Generator[BinaryIO]:
    """Open the stream, and unpack it if it starts like gzip."""
    if isinstance(source, Path):
        with source.open("rb") as file, _unpack(file) as stream:
            yield stream
    elif isinstance(source, io.BufferedReader):
        with _unpack(cast("io.BufferedReader[Any]", source)) as stream:
            yield stream
    else:
        # A buffer makes any stream peekable; it must be detached, or it would close the stream.
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
    """Return the next bytes without consuming them; nothing if they cannot be read, which reading will report."""
    try:
        return cast("io.BufferedReader[Any]", stream).peek(HEAD_BYTES)[:HEAD_BYTES]
    except (OSError, EOFError, zlib.error):
        return b""


def _read_requests(stream: BinaryIO, source: str, max_size: int) -> Iterator[TraceRecord | BadRecord]:
    """Yield requests in protobuf. What follows a truncated or too large one is not read."""
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
    """Yield the request that is the whole file, or the requests that each follow four bytes of length."""
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
        return "the gzip data ends too early; everything before that was read"
    if isinstance(error, zlib.error | gzip.BadGzipFile):
        return f"the gzip data is damaged ({error}); everything before that was read"
    return f"cannot be read: {error.strerror or error}"


class _RecordReader:
    """Reads the records of a stream in one pass."""

    def __init__(self, stream: BinaryIO, source: str, limits: Limits, max_document: int) -> None:
        self._stream = stream
        self._source = source
        self._limits = limits
        self._max_document = max_document
        self._line = 0
        self._at_start = True

    def read(self, *, as_lines: bool = False) -> Iterator[TraceRecord | BadRecord]:
        """Yield the records. OSError only if the stream cannot be read at all; a later failure is a BadRecord."""
        empty = True
        try:
            for record in self._read_lines(self._read_next_line()) if as_lines else self._read_all():
                empty = False
                yield record
        except (OSError, EOFError, zlib.error) as error:
            yield self._build_bad_record(InputError.at("", _explain_error(error)))
        except TooLargeError as error:
            yield self._build_bad_record(error)
        else:
            if empty:
                yield BadRecord(RecordPlace(self._source), InputError.at("", "there is no record in it"))

    def _read_all(self) -> Iterator[TraceRecord | BadRecord]:
        first = self._read_next_line()
        mark = next((mark for mark in _ENCODING_MARKS if first.startswith(mark)), None)
        if mark is not None:
            yield self._build_bad_record(
                MalformedError.at("", f"expected UTF-8 without a byte order mark, not {_ENCODING_MARKS[mark]}")
            )
        elif first.lstrip().startswith(b"["):
            yield from self._read_list(first)
        elif first:
            yield from self._read_lines_or_document(first)

    def _read_lines_or_document(self, first: bytes) -> Iterator[TraceRecord | BadRecord]:
        """Treat a first line that is complete, or followed by a complete one, as JSON Lines, even if it cannot be parsed.

        Unless it ends where a document would continue: after an opening bracket or a comma.
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
        """Return the next line that is not blank, cut off if it is too long; empty at the end."""
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
        if line.startswith(_EXPORT_START):
            return self._read_export(line, place)
        self._skip_line()
        return BadRecord(place, TooLargeError.at("", f"a record of more than {self._limits.max_bytes} bytes"))

    def _read_export(self, line: bytes, place: RecordPlace) -> TraceRecord | BadRecord:
        """Read a long line of the collector; the limits apply to its traces later, not to the line."""
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
            part = self._stream.readline(CHUNK_BYTES)
            self._at_start = not part or part.endswith(b"\n")
            skipped += len(part)
            if skipped > self._max_document:
                most = f"a line of more than {self._max_document} bytes"
                raise TooLargeError.at("", f"{most}; what follows was not read")

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
        """Read each element separately, so that a broken one does not spoil the others."""
        data = self._read_document(first)
        elements = _Elements(data)
        counted_to = 0
        for index, (start, end) in enumerate(elements):
            piece = data[start:end]
            begin = start + len(piece) - len(piece.lstrip())
            self._line += data.count(b"\n", counted_to, begin)
            counted_to = begin
            yield self._parse(piece, RecordPlace(self._source, self._line, f"/{index}"))
        end = len(data.rstrip()) if elements.end is None else elements.end
        self._line += data.count(b"\n", counted_to, end)
        if elements.end is None:
            yield self._build_bad_record(MalformedError.at("", "the list has no end"))
        elif data[end:].strip():
            yield self._build_bad_record(MalformedError.at("", "something follows the list, and was not read"))

    def _locate(self) -> RecordPlace:
        return RecordPlace(self._source, self._line)

    def _build_bad_record(self, error: InputError) -> BadRecord:
        return BadRecord(self._locate() if self._line else RecordPlace(self._source), error)


_DEPTH_CHANGES = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}


def _is_whole(line: bytes) -> bool:
    """Whether a line looks like a complete object: it starts with a brace, and every bracket is closed."""
    if not line.lstrip().startswith(b"{"):
        return False
    depth = 0
    for token in _TOKEN.finditer(line):
        if token[0] == b'"':
            return False
        depth += _DEPTH_CHANGES.get(token[0], 0)
    return depth == 0


class _Elements:
    """Yields where each element of a JSON list starts and ends. `end` is the position after the list; None if not closed."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.end: int | None = None

    def __iter__(self) -> Iterator[tuple[int, int]]:
        start = self._data.index(b"[") + 1
        depth, several = 0, False
        for token in _TOKEN.finditer(self._data):
            if token[0] == b'"':
                break
            depth += _DEPTH_CHANGES.get(token[0], 0)
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


_KIND_NAMES: dict[type, str] = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}


def _name_kind(value: JsonValue) -> str:
    return _KIND_NAMES.get(type(value), "null")


_LINE_IN_MESSAGE = re.compile(r"line (\d+), (column \d+: .*)", re.DOTALL)


def _place_error(error: InputError, place: RecordPlace) -> BadRecord:
    """Place an error in the file: a line counted from the start of its record becomes a line of the file."""
    match = _LINE_IN_MESSAGE.fullmatch(error.problems[0].message)
    if match is None or place.line is None:
        return BadRecord(place, error)
    line = place.line + int(match[1]) - 1
    return BadRecord(replace(place, line=line), type(error).at(error.problems[0].path, match[2]))
