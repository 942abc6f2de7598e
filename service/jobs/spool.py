"""A body too large for memory: spooled to a temporary file as it arrives, and unpacked on the way.

The file has no name, so nothing of it remains, however the process ends.
"""

from __future__ import annotations

import errno
import hashlib
import tempfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self

from service.errors import DiskFullError, MalformedError, TooLargeError

MAX_INFLATE_BYTES = 256 * 2**10
"""The most bytes to unpack at once."""

DISK_FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def take_freely(_: int) -> None:
    """Count nothing: a file may take what there is."""


class UnnamedFile:
    """A temporary file that is gone at the end of its block."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115 (it is this object's block that ends it)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(OSError):  # the disk is full, and what is left to write is not needed
            self.file.close()


class Spool(UnnamedFile):
    """A body that is being written to a file. `digest` and `size` cover the unpacked bytes so far."""

    def __init__(self, *, max_bytes: int, packed: bool = False, take: Callable[[int], None] = take_freely) -> None:
        """`packed`: the written bytes are gzip. `max_bytes` bounds the unpacked size. `take` counts bytes, or raises."""
        super().__init__()
        self.size = 0
        self._max_bytes = max_bytes
        self._packed = packed
        self._take = take
        self._inflater: Any = None
        self._hash = hashlib.sha256()
        self._members = 0

    @property
    def digest(self) -> str:
        """sha256 of the unpacked bytes, in hex."""
        return self._hash.hexdigest()

    def write(self, part: bytes) -> None:
        """Write the next bytes.

        Raises TooLargeError past the limit, MalformedError for bad gzip, DiskFullError, or what `take` raises.
        """
        for piece in self._unpack(part) if self._packed else (part,):
            self.size += len(piece)
            if self.size > self._max_bytes:
                raise TooLargeError.at("", f"the body passes {self._max_bytes} bytes{' unpacked' * self._packed}")
            self._take(len(piece))
            self._hash.update(piece)
            with guard_space():
                self.file.write(piece)

    def finish(self) -> None:
        """End the body and rewind the file for reading. Raises MalformedError if the gzip data is cut short."""
        if self._packed and (self._inflater is not None or not self._members):
            raise MalformedError.at("", "the gzip data ends too early")
        with guard_space():
            self.file.flush()
        self.file.seek(0)

    def _unpack(self, part: bytes) -> Iterator[bytes]:
        """Yield the unpacked bytes; gzip data may consist of several members in a row."""
        while part:
            if self._inflater is None:
                self._inflater = zlib.decompressobj(wbits=31)
            try:
                yield self._inflater.decompress(part, MAX_INFLATE_BYTES)
            except zlib.error as error:
                raise MalformedError.at("", f"the gzip data is damaged: {error}") from None
            part = self._inflater.unconsumed_tail
            if self._inflater.eof:
                part = self._inflater.unused_data
                self._members += 1
                self._inflater = None


@contextmanager
def guard_space() -> Generator[None]:
    """Raise DiskFullError when the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_FULL_ERRNOS:
            raise
        raise DiskFullError("no room is left on the disk for temporary files") from None
