"""Records of files, read or not, and where they stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from service.errors import InputError


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
    note: str = ""
    """How it was understood, where that was guessed."""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that could not be read, and why. The error's pointers start at the record."""

    place: RecordPlace
    error: InputError
    raw: bytes = b""
    """The record as it came, as far as it is known."""


AnyRecord = TraceRecord | BadRecord


@dataclass(frozen=True, slots=True)
class Layout:
    """What a file does not say of itself."""

    format: str | None = None
    """The format of traces that name none; None to guess it."""
    encoding: str | None = None
    """The encoding of text without a byte order mark; None: UTF-8."""
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    """Members for columns of a table, such as {"prompt": "question"}."""


PLAIN = Layout()
"""The layout of a file that needs no more said."""
