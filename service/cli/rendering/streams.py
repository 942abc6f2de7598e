"""Reports as JSON: the bytes of a report are those that HTTP and the library give."""

from __future__ import annotations

import json
from typing import BinaryIO, Protocol

from service.cli.exits import describe_error
from service.cli.inputs import Refusal
from service.cli.scoring import Result
from service.engine import report_json

PLACES = 100
"""How many places of one refused record are written at most."""


class Sink(Protocol):
    """Where results go."""

    def add(self, result: Result) -> None:
        """Write one more."""
        ...

    def close(self) -> None:
        """Write what comes last."""
        ...


class JsonLines:
    """One report a line; a refused record is {"error": ...} in its place. Each line is out before the next is scored."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def add(self, result: Result) -> None:
        """Write one line."""
        self._stream.write(_bytes(result) + b"\n")
        self._stream.flush()

    def close(self) -> None:
        """Nothing comes last."""


class JsonReports:
    """The report of a single record as it is, those of several as a list."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._held: bytes | None = None
        self._count = 0

    def add(self, result: Result) -> None:
        """Write the one before; the first is held until it is known whether a second comes."""
        if self._held is not None:
            self._stream.write((b"[" if self._count == 1 else b",\n") + self._held)
        self._held = _bytes(result)
        self._count += 1

    def close(self) -> None:
        """Write the last one and close the list, if it is one."""
        if self._held is None:
            self._stream.write(b"[]\n")
        elif self._count == 1:
            self._stream.write(self._held + b"\n")
        else:
            self._stream.write(b",\n" + self._held + b"]\n")


def _bytes(result: Result) -> bytes:
    return error_json(result) if isinstance(result, Refusal) else report_json(result.report)


def error_json(refused: Refusal) -> bytes:
    """{"error": {"source", "line", "detail", "errors": [{"pointer", "detail"}]}} of a record that was not scored."""
    place, problems = refused.place, refused.error.problems
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    error = {
        "source": place.source,
        "line": place.line,
        "detail": f"{describe_error(type(refused.error)(problems[:1]))}{more}",
        "errors": [{"pointer": p.path, "detail": p.message} for p in problems[:PLACES]],
    }
    return json.dumps({"error": error}, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
