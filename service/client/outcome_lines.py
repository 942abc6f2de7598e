"""Lines that a service streams: outcomes of a batch, and events."""

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
    """Bytes as they come, cut at the ends of lines; a line without its end is not whole."""

    _rest: list[bytes] = field(default_factory=list[bytes])

    def cut(self, part: bytes) -> bytes:
        """The whole lines that a part completes; empty for none."""
        before, end, after = part.rpartition(b"\n")
        if not end:
            self._rest.append(part)
            return b""
        whole, self._rest = b"".join([*self._rest, before, end]), [after]
        return whole

    def require_end(self) -> None:
        """UnreachableError where what came last is no whole line: something on the way has cut it off."""
        if any(self._rest):
            raise UnreachableError("the answer ends within a line")


@dataclass(slots=True)
class OutcomeLines:
    """Some lines of results or errors, as they come. `next_offset` and `complete` hold once all of them have come."""

    next_offset: int
    complete: bool
    parts: Iterator[bytes]
    """Whole lines, several in each part."""


def read_place(answer: httpx.Response) -> tuple[int, bool]:
    """Where the lines after an answer begin, and whether there are none. ForeignError where it does not say."""
    following = answer.headers.get("x-callgrade-next-offset", "")
    if not following.isdigit():
        raise ForeignError
    return int(following), answer.headers.get("x-callgrade-complete") == "true"


def cut_lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Whole lines, several in each part. UnreachableError where the last is not whole."""
    splitter = LineSplitter()
    yield from (whole for piece in pieces if (whole := splitter.cut(piece)))
    splitter.require_end()


def read_lines(part: bytes) -> Iterator[dict[str, JsonValue]]:
    """The outcomes in whole lines."""
    for line in part.splitlines():
        yield cast("dict[str, JsonValue]", json.loads(line))


def find_events(part: bytes) -> Iterator[bytes]:
    """The data of events in whole lines."""
    return (line.removeprefix(b"data:") for line in part.splitlines() if line.startswith(b"data:"))
