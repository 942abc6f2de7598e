"""Write reports as JSON, with the same bytes as over HTTP and from the library."""

from __future__ import annotations

import json
from typing import BinaryIO, Protocol

from service.cli.exits import describe_error
from service.cli.inputs import Refusal
from service.cli.scoring import Result
from service.engine import report_json

MAX_WRITTEN_PROBLEMS = 100
"""How many problems of one refused record are written."""


class Sink(Protocol):
    """Receives the results of a run."""

    def add(self, result: Result) -> None:
        """Write a result."""
        ...

    def close(self) -> None:
        """Write what follows the last result."""
        ...


class JsonLines:
    """Writes one report per line, and {"error": ...} for a refused record. Each line is flushed before the next is scored."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def add(self, result: Result) -> None:
        """Write one line."""
        self._stream.write(_render_json(result) + b"\n")
        self._stream.flush()

    def close(self) -> None:
        """Do nothing: every line is complete."""


class JsonReports:
    """Writes the report of a single record as an object, and several reports as a list."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._pending: bytes | None = None
        self._count = 0

    def add(self, result: Result) -> None:
        """Write the previous report; the latest one waits until it is known whether another follows."""
        if self._pending is not None:
            self._stream.write((b"[" if self._count == 1 else b",\n") + self._pending)
        self._pending = _render_json(result)
        self._count += 1

    def close(self) -> None:
        """Write the last report, and close the list if there is one."""
        if self._pending is None:
            self._stream.write(b"[]\n")
        elif self._count == 1:
            self._stream.write(self._pending + b"\n")
        else:
            self._stream.write(b",\n" + self._pending + b"]\n")


def _render_json(result: Result) -> bytes:
    return render_error_json(result) if isinstance(result, Refusal) else report_json(result.report)


def render_error_json(refused: Refusal) -> bytes:
    """Render a record that was not scored: {"error": {"source", "line", "detail", "errors": [{"pointer", "detail"}]}}."""
    place, problems = refused.place, refused.error.problems
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    error = {
        "source": place.source,
        "line": place.line,
        "detail": f"{describe_error(type(refused.error)(problems[:1]))}{more}",
        "errors": [{"pointer": p.path, "detail": p.message} for p in problems[:MAX_WRITTEN_PROBLEMS]],
    }
    return json.dumps({"error": error}, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
