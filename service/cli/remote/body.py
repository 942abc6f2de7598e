"""What is submitted as a batch: any file of traces as gzipped JSON Lines, each line with the place that it came from."""

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
class Sent:
    """Where a line came from."""

    place: RecordPlace
    bare: bool


@dataclass
class BatchBody:
    """The records of a file as the service takes them, in a temporary file. Leave its block, and it is gone.

    `refused` are the records that are not in it, for they cannot be read.
    """

    lines: list[Sent] = field(default_factory=list[Sent])
    refused: list[Refusal] = field(default_factory=list[Refusal])
    guessed: Counter[str] = field(default_factory=Counter[str])
    left_out: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115 (it is this object's block that ends it)
        self._hash = hashlib.sha256()

    def __enter__(self) -> BatchBody:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.file.close()

    def fill(self, file: Path, limits: Limits, *, named: str | None = None, rubric: JsonValue = None) -> None:
        """Reads a file, `-` being standard input. `named`: the format of traces that do not name theirs.

        `rubric`: a whole one, for the records that name none.
        """
        with gzip.GzipFile(fileobj=self.file, mode="wb", compresslevel=6, mtime=0) as packed:
            for record in _unfold(read_records([file], limits, left_out=self.left_out, named=named)):
                line = self._line(record, named, rubric)
                if line is not None:
                    self._hash.update(line)
                    packed.write(line)

    def digest(self, options: Mapping[str, str]) -> str:
        """sha256 of what is submitted, with its options, in hex."""
        found = self._hash.copy()
        found.update(to_json(sorted(options.items())))
        return found.hexdigest()

    def refuse_line(self, number: int, error: InputError) -> Refusal:
        """The record of a line, from 1, that the service cannot take; pointers of the error start at the line."""
        if not 1 <= number <= len(self.lines):
            return Refusal(RecordPlace("the service"), error)
        sent = self.lines[number - 1]
        return Refusal(sent.place, locate_error(error, sent.place, bare=sent.bare))

    def _line(self, record: TraceRecord | BadRecord, named: str | None, rubric: JsonValue) -> bytes | None:
        if isinstance(record, BadRecord):
            self.refused.append(Refusal(record.place, locate_error(record.error, record.place)))
            return None
        bare = is_bare(record)
        try:
            body = build_body(record, named=named, guessed=self.guessed)
        except InputError as error:
            self.refused.append(Refusal(record.place, locate_error(error, record.place, bare=bare)))
            return None
        self.lines.append(Sent(record.place, bare))
        return to_json(body if rubric is None else {"rubric": rubric, **body}) + b"\n"


def _unfold(found: Iterator[TraceRecord | BadRecord]) -> Iterator[TraceRecord | BadRecord]:
    """The records; of a document as POST /v1/batches takes it, its items."""
    for record in found:
        items = record.value.get("items") if isinstance(record, TraceRecord) and is_bare(record) else None
        if isinstance(record, BadRecord) or not isinstance(items, list):
            yield record
            continue
        others = [name for name in record.value if name != "items"]
        if others:
            told = [Problem(f"/{name}", "options of a batch are given on the command line") for name in others]
            yield BadRecord(record.place, InputError(told))
        for n, item in enumerate(items):
            place = RecordPlace(record.place.source, record.place.line, f"{record.place.pointer}/items/{n}")
            if isinstance(item, dict):
                yield TraceRecord(place, item)
            else:
                yield BadRecord(place, InputError.at("", "expected an object"))
