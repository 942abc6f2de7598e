"""Read files of traces: JSON, JSON Lines, an event stream, rows of a table, OTLP in protobuf.

A file is a list of objects, or objects one after the other, each on one line or broken into several. The layout is recognized
by content; only a table in text goes by its name (`.csv`, `.tsv`). How the file is packed and encoded is for `opening`. What
cannot be read is yielded in its place too, so nothing is lost.

Protobuf is the body of a request, or what the OpenTelemetry Collector's file exporter writes: requests, each after its length.

Memory is bounded by one record, and by `MAX_DOCUMENT_BYTES` for a protobuf request, an event stream and a page: one object that
holds many records or spans.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, cast

from service.core.json.values import name_type
from service.errors import InputError, MalformedError, Problem, TooLargeError
from service.intake.spans.exports import looks_like_request, read_export
from service.reading.documents import (
    EVENT_STARTS,
    SEPARATORS,
    continues,
    count_open,
    is_whole,
    read_events,
    split_documents,
    split_elements,
)
from service.reading.opening import DAMAGED, HEAD_BYTES, explain_damage, list_files, open_files
from service.reading.places import PLAIN, AnyRecord, BadRecord, Layout, RecordPlace, TraceRecord
from service.reading.records import PAGES
from service.reading.strict_json import Limits, parse_strictly
from service.reading.tables import is_table, read_table

MAX_DOCUMENT_BYTES = 64 * 2**20
"""The largest JSON document; also how far to search for the end of a line that is too long to be read."""

CHUNK_BYTES = 64 * 2**10
AS_LINES = "write one record a line instead (JSON Lines)"
_MANY = re.compile(rb'\s*\{\s*"(?:resourceSpans|%s)"\s*:\s*\[' % "|".join(PAGES).encode())
"""The start of an export of spans or of a page of records, which may be as long as a document."""


def scan_records(
    source: Path | str | BinaryIO, *, limits: Limits, name: str | None = None, layout: Layout = PLAIN
) -> Iterator[AnyRecord]:
    """Yield every record of a file or stream, in order; one that cannot be read is a BadRecord, and the rest is still read.

    Content never raises an error. A file without records, one that cannot be opened, truncated gzip and a byte order mark are
    each one BadRecord. `limits` applies to each record; `name` replaces the file name in places. A stream that is passed in
    stays open.
    """
    if isinstance(source, (Path, str)):
        files = list(list_files(source))
        for file in files:
            yield from _scan_file(file, name or str(file), limits, layout)
        if not files:
            yield BadRecord(RecordPlace(str(source)), InputError.at("", "there is no file in it"))
    else:
        yield from _scan_file(source, name or "stdin", limits, layout)


def _scan_file(source: Path | str | BinaryIO, name: str, limits: Limits, layout: Layout) -> Iterator[AnyRecord]:
    try:
        with open_files(source, name, layout.encoding) as files:
            for inner, stream in files:
                if looks_like_request(_peek(stream)):
                    yield from _read_requests(stream, inner)
                elif is_table(inner, _peek(stream)):
                    yield from read_table(stream, inner, layout.columns)
                else:
                    yield from _RecordReader(stream, inner, limits).read()
    except DAMAGED as error:
        yield BadRecord(RecordPlace(name), InputError.at("", explain_damage(error)))


def scan_lines(stream: BinaryIO, *, limits: Limits, name: str) -> Iterator[AnyRecord]:
    """Yield every record of a stream known to be JSON Lines, like `scan_records`: each line is one, whatever it looks like.

    Gzip is not unpacked.
    """
    yield from _RecordReader(stream, name, limits).read(as_lines=True)


def _peek(stream: BinaryIO) -> bytes:
    """Return the next bytes without consuming them; nothing if they cannot be read, which reading will report."""
    try:
        return cast("io.BufferedReader[Any]", stream).peek(HEAD_BYTES)[:HEAD_BYTES]
    except DAMAGED:
        return b""


def _read_requests(stream: BinaryIO, source: str) -> Iterator[AnyRecord]:
    """Yield requests in protobuf. What follows a truncated or too large one is not read."""
    number = 0
    try:
        for data in _list_requests(stream):
            yield TraceRecord(RecordPlace(source), read_export(data))
            number += 1
    except InputError as error:
        problems = [Problem("", f"request {number + 1} of the file: {problem.message}") for problem in error.problems]
        yield BadRecord(RecordPlace(source), type(error)(problems))
    except DAMAGED as error:
        yield BadRecord(RecordPlace(source), InputError.at("", explain_damage(error)))


def _list_requests(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the request that is the whole file, or the requests that each follow four bytes of length."""
    if _peek(stream).startswith(b"\n"):
        data = stream.read(MAX_DOCUMENT_BYTES + 1)
        if len(data) > MAX_DOCUMENT_BYTES:
            raise TooLargeError.at("", f"more than {MAX_DOCUMENT_BYTES} bytes")
        yield data
        return
    while head := stream.read(4):
        size = int.from_bytes(head, "big")
        if size > MAX_DOCUMENT_BYTES:
            raise TooLargeError.at("", f"{size} bytes; at most {MAX_DOCUMENT_BYTES} are taken")
        data = stream.read(size)
        if len(head) < 4 or len(data) < size:
            raise MalformedError.at("", "the file ends within it")
        yield data


class _RecordReader:
    def __init__(self, stream: BinaryIO, source: str, limits: Limits) -> None:
        self._stream = stream
        self._source = source
        self._limits = limits
        self._line = 0
        self._at_start = True

    def read(self, *, as_lines: bool = False) -> Iterator[AnyRecord]:
        """Yield the records. OSError only if the stream cannot be read at all; a later failure is a BadRecord."""
        empty = True
        try:
            first = self._read_next_line()
            for record in self._read_objects(first, as_lines=True) if as_lines else self._read_any(first):
                empty = False
                yield record
        except DAMAGED as error:
            yield self._refuse(InputError.at("", explain_damage(error)))
        except TooLargeError as error:
            yield self._refuse(error)
        else:
            if empty:
                yield BadRecord(RecordPlace(self._source), InputError.at("", "there is no record in it"))

    def _read_any(self, first: bytes) -> Iterator[AnyRecord]:
        if first.lstrip().startswith(b"["):
            yield from self._read_list(first)
        elif first.startswith(EVENT_STARTS):
            data, place = first + self._stream.read(max(0, MAX_DOCUMENT_BYTES + 1 - len(first))), self._locate()
            self._check_size(len(data))
            yield from read_events(data, place, self._parse)
        else:
            yield from self._read_objects(first)

    def _read_list(self, first: bytes) -> Iterator[AnyRecord]:
        """Read each element separately, so that a broken one does not spoil the others."""
        begin = self._line
        for index, piece in enumerate(split_elements(first, self._stream.read, MAX_DOCUMENT_BYTES)):
            self._line = begin + piece.line
            if piece.data is None:
                yield self._refuse(MalformedError.at("", "the list has no end"))
            elif piece.element:
                yield self._parse(piece.data, RecordPlace(self._source, self._line, f"/{index}"))
            elif piece.data.strip() or self._read_next_line():
                yield self._refuse(MalformedError.at("", "something follows the list, and was not read"))

    def _read_objects(self, line: bytes, *, as_lines: bool = False) -> Iterator[AnyRecord]:
        """Read objects, each on one line or, unless `as_lines`, broken into several."""
        while line:
            place = self._locate()
            if as_lines or self._is_too_long(line) or not line.lstrip().startswith(b"{") or is_whole(line):
                yield from self._read_record(line, place)
                line = self._read_next_line()
                continue
            lines, whole, line = self._gather(line)
            if not whole and any(is_whole(one) for one in lines[1:]):  # lines that were cut, not one document
                for number, one in enumerate(lines, place.line or 1):
                    yield from self._read_record(one, RecordPlace(self._source, number)) if one.strip() else ()
            else:
                yield from self._read_documents(b"".join(lines), place)

    def _gather(self, first: bytes) -> tuple[list[bytes], bool, bytes]:
        """Gather the lines of an object that begins with `first`: all of them, whether it is whole, and the line that follows.

        One that is broken ends where another begins: at a brace at the very start of a line.
        """
        lines, size, before, depth = [first], len(first), first, count_open(first)
        while (line := self._read_line()) and not self._is_too_long(line):
            if line.strip(SEPARATORS):
                follows, change = continues(before, line), count_open(line)
                if line.startswith(b"{") and (depth is None or not follows):
                    break
                depth = None if depth is None or change is None or not follows else depth + change
                before = line
            lines.append(line)
            size += len(line)
            self._check_size(size)
            if depth == 0:
                return lines, True, self._read_next_line()
        return lines, False, line

    def _read_next_line(self) -> bytes:
        """Return the next line that is not blank, cut off if it is too long; empty at the end."""
        while (line := self._read_line()) and not line.strip(SEPARATORS):
            pass
        return line.removeprefix(b"\x1e")

    def _read_line(self) -> bytes:
        line = self._stream.readline(self._limits.max_bytes + 2)
        self._line += self._at_start and bool(line)
        self._at_start = line.endswith(b"\n") or (self._at_start and not line)
        return line

    def _is_too_long(self, line: bytes) -> bool:
        return len(line.strip()) > self._limits.max_bytes

    def _check_size(self, size: int) -> None:
        if size > MAX_DOCUMENT_BYTES:
            raise TooLargeError.at("", f"a JSON document of more than {MAX_DOCUMENT_BYTES} bytes; {AS_LINES}")

    def _read_record(self, line: bytes, place: RecordPlace) -> Iterator[AnyRecord]:
        """Read a line: a record, several that follow one another, or a page of them, which may be as long as a document."""
        if not self._is_too_long(line):
            yield from self._read_documents(line, place)
            return
        page = _MANY.match(line) is not None
        if page and not self._at_start:
            line += self._stream.readline(MAX_DOCUMENT_BYTES)
            self._at_start = line.endswith(b"\n")
        if page and len(line) <= MAX_DOCUMENT_BYTES:
            yield self._parse(line, place)
            return
        skipped = 0
        while not self._at_start:
            part = self._stream.readline(CHUNK_BYTES)
            self._at_start = not part or part.endswith(b"\n")
            skipped += len(part)
            if skipped > MAX_DOCUMENT_BYTES:
                most = f"a line of more than {MAX_DOCUMENT_BYTES} bytes"
                raise TooLargeError.at("", f"{most}; what follows was not read")
        most = f"a page of more than {MAX_DOCUMENT_BYTES} bytes; {AS_LINES}" if page else ""
        most = most or f"a record of more than {self._limits.max_bytes} bytes"
        yield BadRecord(place, TooLargeError.at("", most), b"" if page else line)

    def _read_documents(self, data: bytes, place: RecordPlace) -> Iterator[AnyRecord]:
        """Read one document, or several that follow one another."""
        record = self._parse(data, place)
        pieces = split_documents(data) if isinstance(record, BadRecord) else []
        if len(pieces) < 2 or not all(data[start : start + 1] in b"{[" for start, _ in pieces):
            yield record
            return
        for start, end in pieces:
            line = None if place.line is None else place.line + data.count(b"\n", 0, start)
            yield self._parse(data[start:end], replace(place, line=line))

    def _parse(self, data: bytes, place: RecordPlace) -> AnyRecord:
        limits = self._limits
        if len(data) > limits.max_bytes and _MANY.match(data):
            limits = replace(limits, max_bytes=MAX_DOCUMENT_BYTES, max_items=MAX_DOCUMENT_BYTES)
        try:
            value = parse_strictly(data.strip(), limits)
        except InputError as error:
            (first, *_), line = error.problems, place.line
            match = _LINE_IN_MESSAGE.fullmatch(first.message)
            if match is None or line is None:
                return BadRecord(place, error, data)
            # A line counted from the start of the record becomes a line of the file.
            place = replace(place, line=line + int(match[1]) - 1)
            return BadRecord(place, type(error).at(first.path, match[2]), data)
        if not isinstance(value, dict):
            return BadRecord(place, InputError.at("", f"expected an object, not {name_type(value)}"), data)
        return TraceRecord(place, value)

    def _locate(self) -> RecordPlace:
        return RecordPlace(self._source, self._line)

    def _refuse(self, error: InputError) -> BadRecord:
        return BadRecord(self._locate() if self._line else RecordPlace(self._source), error)


_LINE_IN_MESSAGE = re.compile(r"line (\d+), (column \d+: .*)", re.DOTALL)
