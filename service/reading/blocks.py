"""Cut files into blocks that several machines read apart: the same records, at the same places, as of the whole file.

JSON Lines are cut before a line that begins a record, Parquet between row groups. Every other file is one block, and so is one
whose records belong together: lines of a session, spans.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from hashlib import file_digest, sha256
from typing import Any, Literal

from pydantic import JsonValue

from service.errors import InputError
from service.intake.reading import name_session
from service.reading.opening import DAMAGED, load_module, open_stored
from service.reading.places import AnyRecord, Layout
from service.reading.records import TRACE_FIELDS
from service.reading.span_files import list_spans
from service.reading.strict_json import Limits, parse_strictly
from service.reading.tables import PARQUET, read_table
from service.reading.trace_files import scan_records

BLOCK_BYTES = 4 * 2**20
"""The bytes from which on JSON Lines are cut."""


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a file, or all of it."""

    source: str
    number: int
    """Its position in the file, from 0."""
    digest: str
    """Of its bytes; for a row group, of those of the whole file."""
    kind: Literal["file", "lines", "rows"] = "file"
    start: int = 0
    """Its first byte, or the index of its row group."""
    size: int = 0
    """The bytes of its lines."""
    before: int = 0
    """Lines or rows before it."""

    def scan(self, limits: Limits, layout: Layout) -> Iterator[AnyRecord]:
        """Yield its records as `scan_records` does, at their places in the file."""
        if self.kind == "file":
            yield from scan_records(self.source, limits=limits, layout=layout)
            return
        with ExitStack() as stack:
            stream = open_stored(self.source, stack)
            if self.kind == "rows":
                yield from read_table(stream, self.source, layout.columns, group=self.start, before=self.before)
                return
            stream.seek(self.start)
            lines = io.BytesIO(stream.read(self.size))
            for one in scan_records(lines, limits=limits, name=self.source, layout=layout):
                line = None if one.place.line is None else one.place.line + self.before
                yield replace(one, place=replace(one.place, line=line))


def list_blocks(source: str, limits: Limits, layout: Layout, *, least: int = BLOCK_BYTES) -> list[Block]:
    """Cut a file. One that cannot be opened is one block: reading that says why. `least`: bytes of a block of lines."""
    try:
        with ExitStack() as stack:
            stream = open_stored(source, stack)
            head = stream.peek(len(PARQUET))
            if head.startswith(b"{") and layout.encoding is None:
                blocks = list(_cut_lines(stream, source, limits, layout, least))
                if blocks:
                    return blocks
                stream.seek(0)
            digest = file_digest(stream, sha256).hexdigest()
            sizes: list[int] = []
            if head.startswith(PARQUET):
                about = load_module("pyarrow.parquet", "to read Parquet").ParquetFile(stream).metadata
                sizes = [about.row_group(index).num_rows for index in range(about.num_row_groups)]
            groups = [Block(source, n, digest, "rows", start=n, before=sum(sizes[:n])) for n in range(len(sizes))]
            return groups or [Block(source, 0, digest)]
    except DAMAGED:
        return [Block(source, 0, "")]


def _cut_lines(
    stream: io.BufferedReader[Any], source: str, limits: Limits, layout: Layout, least: int
) -> Iterator[Block]:
    """Yield blocks of lines; after none, the file is to be read as a whole."""
    found: list[Block] = []
    start = size = before = lines = 0
    digest, previous = sha256(), b""
    for line in iter(partial(stream.readline, BLOCK_BYTES), b""):
        begins = line.startswith(b"{") and previous.rstrip(b"\r\n").endswith(b"}") and previous.endswith(b"\n")
        if not size or (size >= least and begins):
            value = _parse(line, limits)
            if value is not None:  # whether it may belong to a record before or after it
                alone = "type" not in value or bool(value.keys() & TRACE_FIELDS)
                if not alone or name_session(value) or list_spans(value, layout.format or "spans") is not None:
                    return
            if size and value is not None:
                found.append(Block(source, len(found), digest.hexdigest(), "lines", start, size, before))
                start, before, size, digest = start + size, lines, 0, sha256()
        digest.update(line)
        size += len(line)
        lines += line.endswith(b"\n")
        previous = line if line.strip() else previous
    yield from [*found, Block(source, len(found), digest.hexdigest(), "lines", start, size, before)]


def _parse(line: bytes, limits: Limits) -> dict[str, JsonValue] | None:
    try:
        value = parse_strictly(line.strip(), limits)
    except InputError:
        return None
    return value if isinstance(value, dict) else None
