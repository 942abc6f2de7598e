"""Cut a batch into chunks: items are deflated into a temporary file, and read back one chunk at a time."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator

from service.jobs.spool import UnnamedFile, guard_space, take_freely
from service.store.jobs.submission import DEFLATE_LEVEL, Chunk

MAX_CHUNK_BYTES = 8 * 2**20
"""Bytes of items, before deflation, at which a chunk is cut: a worker holds a whole chunk in memory."""

SMALL_ITEM_BYTES = 4_096
"""Largest item, in bytes, that code finishes in a moment."""
SMALL_ITEMS_PER_PLACE = 4
"""How many small items that wait for nobody count as one: the overhead of a chunk is a third of their own work."""

_HEAD = struct.Struct(">QI?I")


class Cutter(UnnamedFile):
    """Collects the lines of items, one by one; iterating yields the chunks, and may be repeated."""

    def __init__(self, *, size: int, take: Callable[[int], None] = take_freely) -> None:
        """`size`: the most items in a chunk that wait for a judge or a sandbox. `take` counts bytes of the file, or raises."""
        super().__init__()
        self.total = 0
        self._take = take
        self._max_weight = size * SMALL_ITEMS_PER_PLACE
        self._weight = 0
        self._waits = False
        self._lines: list[bytes] = []
        self._bytes = 0

    def add(self, line: bytes, *, waits: bool = True) -> None:
        """Add the line of one item, without its newline. Raises DiskFullError, or what `take` raises.

        `waits`: whether the item needs judges or a sandbox.
        """
        self._lines.append(line)
        self._waits = self._waits or waits
        self._bytes += len(line)
        self._weight += SMALL_ITEMS_PER_PLACE if waits or len(line) > SMALL_ITEM_BYTES else 1
        if self._weight >= self._max_weight or self._bytes >= MAX_CHUNK_BYTES:
            self._cut()

    def finish(self) -> None:
        """Cut the last chunk: no more items come."""
        self._cut()
        with guard_space():
            self.file.flush()

    def __iter__(self) -> Iterator[Chunk]:
        self.file.seek(0)
        while head := self.file.read(_HEAD.size):
            first, size, waits, length = _HEAD.unpack(head)
            yield Chunk(first, size, self.file.read(length), waits)

    def _cut(self) -> None:
        if not self._lines:
            return
        payload = zlib.compress(b"\n".join(self._lines), DEFLATE_LEVEL)
        self._take(len(payload))
        with guard_space():
            self.file.write(_HEAD.pack(self.total, len(self._lines), self._waits, len(payload)) + payload)
        self.total += len(self._lines)
        self._lines, self._bytes, self._weight, self._waits = [], 0, 0, False
