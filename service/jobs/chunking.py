"""Cutting a batch into chunks: items go deflated into a temporary file, and come out of it a chunk at a time."""

from __future__ import annotations

import struct
import tempfile
import zlib
from collections.abc import Iterator
from types import TracebackType

from service.jobs.spool import guard_space
from service.store.jobs.submission import LEVEL, Chunk

MAX_CHUNK = 8 * 2**20
"""Bytes of items, before they are deflated, that end a chunk: a worker has a whole one in memory."""

SMALL_BYTES = 4_096
"""Bytes of an item that code is done with in a moment."""
SMALL_TO_A_PLACE = 4
"""So many small items that wait for nobody take the place of one: what a chunk itself takes is a third of what they do."""

_HEAD = struct.Struct(">QII")


class Cutter:
    """Takes the lines of items, one after the other; iterating gives the chunks, as often as one likes.

    Leave its block, and they are gone.
    """

    def __init__(self, *, size: int) -> None:
        """`size`: items in a chunk at most that wait for somebody."""
        self.total = 0
        self._most = size * SMALL_TO_A_PLACE
        self._taken = 0
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it is this object's block that ends it)
        self._lines: list[bytes] = []
        self._bytes = 0

    def __enter__(self) -> Cutter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def add(self, line: bytes, *, waits: bool = True) -> None:
        """Takes the line of one item, without its end. BusyError on a full disk.

        `waits`: whether judges or a sandbox are asked about it.
        """
        self._lines.append(line)
        self._bytes += len(line)
        self._taken += SMALL_TO_A_PLACE if waits or len(line) > SMALL_BYTES else 1
        if self._taken >= self._most or self._bytes >= MAX_CHUNK:
            self._cut()

    def finish(self) -> None:
        """No more items come."""
        self._cut()
        with guard_space():
            self._file.flush()

    def __iter__(self) -> Iterator[Chunk]:
        self._file.seek(0)
        while head := self._file.read(_HEAD.size):
            first, size, length = _HEAD.unpack(head)
            yield Chunk(first, size, self._file.read(length))

    def _cut(self) -> None:
        if not self._lines:
            return
        payload = zlib.compress(b"\n".join(self._lines), LEVEL)
        with guard_space():
            self._file.write(_HEAD.pack(self.total, len(self._lines), len(payload)) + payload)
        self.total += len(self._lines)
        self._lines, self._bytes, self._taken = [], 0, 0
