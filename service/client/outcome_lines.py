"""Lines that the service streams: outcomes of a batch, and events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, cast

import httpx
from pydantic import JsonValue

from service.client.failures import ForeignError, UnreachableError

Kind = Literal["results", "errors"]


@dataclass(slots=True)
class LineSplitter:
    """Cuts bytes at line ends as they arrive; a line without its end is incomplete."""

    _rest: list[bytes] = field(default_factory=list[bytes])

    def cut(self, part: bytes) -> bytes:
        """Return the whole lines that a part completes; empty if none."""
        before, end, after = part.rpartition(b"\n")
        if not end:
            self._rest.append(part)
            return b""
        whole, self._rest = b"".join([*self._rest, before, end]), [after]
        return whole

    def require_end(self) -> None:
        """Raise UnreachableError if the last line is incomplete: something in between has cut it off."""
        if any(self._rest):
            raise UnreachableError("the answer ends within a line")


@dataclass(slots=True)
class OutcomeLines:
    """Some lines of results or errors, as they arrive. `next_offset` and `complete` hold once all have arrived."""

    next_offset: int
    complete: bool
    parts: Iterator[bytes]
    """Whole lines, several in each part."""


def read_position(answer: httpx.Response) -> tuple[int, bool]:
    """Read where the lines after an answer start, and whether there are none. ForeignError if it does not say."""
    next_offset = answer.headers.get("x-callgrade-next-offset", "")
    if not next_offset.isdigit():
        raise ForeignError
    return int(next_offset), answer.headers.get("x-callgrade-complete") == "true"


def cut_lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield whole lines, several in each part. UnreachableError if the last is incomplete."""
    splitter = LineSplitter()
    yield from (whole for piece in pieces if (whole := splitter.cut(piece)))
    splitter.require_end()


def read_lines(part: bytes) -> Iterator[dict[str, JsonValue]]:
    """Parse the outcomes in whole lines."""
    for line in part.splitlines():
        yield cast("dict[str, JsonValue]", json.loads(line))


def find_events(part: bytes) -> Iterator[bytes]:
    """Find the data of events in whole lines."""
    return (line.removeprefix(b"data:") for line in part.splitlines() if line.startswith(b"data:"))
