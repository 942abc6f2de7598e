"""The body of a batch submission: a file of traces as gzipped JSON Lines, with the place that each line came from."""

from __future__ import annotations

import gzip
import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from pydantic import JsonValue
from pydantic_core import to_json

from service.cli.inputs import Refusal, locate_error, read_records
from service.errors import InputError, Problem
from service.reading.bare_traces import build_body, is_bare
from service.reading.strict_json import Limits
from service.reading.trace_files import BadRecord, RecordPlace, TraceRecord


@dataclass(frozen=True, slots=True)
class LineOrigin:
    """Where a line came from; `bare` if it was a trace without a request around it."""

    place: RecordPlace
    bare: bool


@dataclass
class BatchBody:
    """The records of a file in the form that the service accepts, in a temporary file that is removed on leaving the block.

    `refused` holds the records that are not in it because they cannot be read.
    """

    lines: list[LineOrigin] = field(default_factory=list[LineOrigin])
    refused: list[Refusal] = field(default_factory=list[Refusal])
    guessed: Counter[str] = field(default_factory=Counter[str])
    left_out: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115 (closed by __exit__)
        self._hash = hashlib.sha256()

    def __enter__(self) -> BatchBody:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.file.close()

    def fill(self, file: Path, limits: Limits, *, named: str | None = None, rubric: JsonValue = None) -> None:
        """Add the records of a file, `-` being standard input. `named`: the format of traces that name none.

        `rubric`: a complete rubric, for records that name none.
        """
        with gzip.GzipFile(fileobj=self.file, mode="wb", compresslevel=6, mtime=0) as packed:
            for record in _list_items(read_records([file], limits, left_out=self.left_out, named=named)):
                line = self._build_line(record, named, rubric)
                if line is not None:
                    self._hash.update(line)
                    packed.write(line)

    def digest(self, options: Mapping[str, str]) -> str:
        """Return the SHA-256 of the lines and the options, in hex."""
        sha256 = self._hash.copy()
        sha256.update(to_json(sorted(options.items())))
        return sha256.hexdigest()

    def refuse_line(self, number: int, error: InputError) -> Refusal:
        """Build the refusal of a line (from 1) that the service does not accept; the error's pointers start at the line."""
        if not 1 <= number <= len(self.lines):
            return Refusal(RecordPlace("the service"), error)
        origin = self.lines[number - 1]
        return Refusal(origin.place, locate_error(error, origin.place, bare=origin.bare))

    def _build_line(self, record: TraceRecord | BadRecord, named: str | None, rubric: JsonValue) -> bytes | None:
        if isinstance(record, BadRecord):
            self.refused.append(Refusal(record.place, locate_error(record.error, record.place)))
            return None
        bare = is_bare(record)
        try:
            body = build_body(record, named=named, guessed=self.guessed)
        except InputError as error:
            self.refused.append(Refusal(record.place, locate_error(error, record.place, bare=bare)))
            return None
        self.lines.append(LineOrigin(record.place, bare))
        return to_json(body if rubric is None else {"rubric": rubric, **body}) + b"\n"


def _list_items(records: Iterator[TraceRecord | BadRecord]) -> Iterator[TraceRecord | BadRecord]:
    """Yield the records, replacing a document in the form of POST /v1/batches by its items."""
    for record in records:
        items = record.value.get("items") if isinstance(record, TraceRecord) and is_bare(record) else None
        if isinstance(record, BadRecord) or not isinstance(items, list):
            yield record
            continue
        others = [name for name in record.value if name != "items"]
        if others:
            problems = [Problem(f"/{name}", "give the batch's options on the command line") for name in others]
            yield BadRecord(record.place, InputError(problems))
        for n, item in enumerate(items):
            place = RecordPlace(record.place.source, record.place.line, f"{record.place.pointer}/items/{n}")
            if isinstance(item, dict):
                yield TraceRecord(place, item)
            else:
                yield BadRecord(place, InputError.at("", "expected an object"))
