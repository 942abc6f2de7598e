"""What every cache of judgements is to its callers: entries come back as they were kept, or not at all; nothing raises.

A cache is rows (a disk's, a server's) behind one guard. The rows may fail in any way they like; the guard makes of it a
miss and a count, and leaves alone for a moment what has just failed.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from time import monotonic
from typing import Protocol, TypeVar

from service.logs.redaction import name_error_kind

LOG = logging.getLogger("callgrade.cache")

MAX_TEXT = 65_536
"""Most bytes of UTF-8 that are kept under one key."""

MAX_SEALED = MAX_TEXT + 64
"""The same with its seal."""

TENDING = 60.0
"""Seconds that looking through a whole cache, or emptying it, may take."""

QUIET = 60.0
"""Seconds between two words in the log about a cache that fails; the counts miss nothing."""

T = TypeVar("T")


class Cache(Protocol):
    """The port. Keys are sha256 in hex; whoever makes them puts the tenant in. Values are JSON text.

    Nothing of it raises, CancelledError apart: a broken cache is a miss and a count.
    """

    async def get(self, key: str) -> str | None:
        """The text kept under `key`; None is a miss."""
        ...

    async def set(self, key: str, text: str) -> None:
        """Keeps the text, if it can. What passes MAX_TEXT bytes is not kept, and counted."""
        ...

    async def close(self) -> None:
        """Lets go of files and connections. What is asked afterwards is a miss."""
        ...


class RefusedRowError(Exception):
    """A row that is not of our making. It is left alone and counted."""


class NotKeptError(Exception):
    """The store is there and did not take the row: it is full, or only read. Reading it goes on."""


class CacheRows(Protocol):
    """What lies behind the guard. Each may raise whatever it likes."""

    place: str
    """Where the rows are, for people; never with a password."""

    async def read(self, key: str) -> str | None:
        """The row as it was written; None where there is none."""
        ...

    async def write(self, key: str, sealed: str) -> None:
        """Keeps a row of at most MAX_SEALED bytes."""
        ...

    async def measure(self) -> tuple[int, int]:
        """How many rows there are, and their size in bytes."""
        ...

    async def prune(self) -> int:
        """Removes what has expired and what is over the size; how many rows."""
        ...

    async def clear(self) -> int:
        """Removes all rows; how many."""
        ...

    async def close(self) -> None:
        """Lets go of files and connections."""
        ...


@dataclass(slots=True)
class CacheCounts:
    """What one process saw of a cache since it started."""

    hits: int = 0
    misses: int = 0
    refused: int = 0
    """Rows that are not what we wrote. Each is a miss too."""
    too_large: int = 0
    failures: int = 0
    moved_aside: int = 0
    """Files that could not be read, and were replaced by an empty one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStats:
    """A cache at one moment. `rows` and `bytes` are None where the store could not be asked."""

    place: str
    rows: int | None
    bytes: int | None
    hits: int
    misses: int
    refused: int
    too_large: int
    failures: int
    moved_aside: int


def seal_row(key: str, text: str) -> str:
    """The text behind the sha256 of its key and itself, in hex.

    It shows rot: a flipped byte, half a row, the row of another key. It does not show malice, for whoever can write rows
    can write seals. Raises UnicodeEncodeError for text that is not Unicode (a lone surrogate).
    """
    return _compute_seal(key, text) + text


def unseal_row(key: str, row: str) -> str:
    """The text of a sealed row; RefusedRowError where the seal is not its own.

    >>> unseal_row("k", seal_row("k", '{"label": "ok"}'))
    '{"label": "ok"}'
    """
    seal, text = row[:64], row[64:]
    if seal != _compute_seal(key, text):
        raise RefusedRowError
    return text


def _compute_seal(key: str, text: str) -> str:
    return hashlib.sha256(f"{key}\n{text}".encode()).hexdigest()


class GuardedCache:
    """A cache over `rows`.

    `patience` is the longest that one operation is waited for, in seconds. After a failure the rows are left alone for
    `rest` seconds of `clock`, all misses, so that rows which hang do not cost that patience for every question.
    """

    def __init__(
        self,
        rows: CacheRows,
        counts: CacheCounts | None = None,
        *,
        patience: float,
        rest: float = 1.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._rows = rows
        self._patience = patience
        self._rest = rest
        self._clock = clock
        self._resting_until = float("-inf")
        self._quiet_until = float("-inf")
        self.counts = counts or CacheCounts()
        """What this process saw. Free to read at any time; `stats` asks the store as well."""

    @property
    def place(self) -> str:
        """Where the rows are, for people."""
        return self._rows.place

    async def get(self, key: str) -> str | None:
        """The text kept under `key`; None is a miss."""
        text = await self._try(lambda: self._read(key), self._patience)
        if text is None:
            self.counts.misses += 1
        else:
            self.counts.hits += 1
        return text

    async def _read(self, key: str) -> str | None:
        row = await self._rows.read(key)
        return None if row is None else unseal_row(key, row)

    async def set(self, key: str, text: str) -> None:
        """Keeps the text, if it can."""
        if len(text) > MAX_TEXT or len(text.encode(errors="replace")) > MAX_TEXT:
            self.counts.too_large += 1
            return
        try:
            row = seal_row(key, text)
        except UnicodeEncodeError:
            self.counts.failures += 1
            return
        await self._try(lambda: self._rows.write(key, row), self._patience)

    async def stats(self) -> CacheStats:
        """The store's rows and bytes and this process's counts. A shared store is looked through: not for every scrape."""
        found = await self._try(self._rows.measure, TENDING)
        rows, size = (None, None) if found is None else found
        return CacheStats(place=self.place, rows=rows, bytes=size, **asdict(self.counts))

    async def prune(self) -> int | None:
        """Removes what has expired and what is over the size; how many rows, None where it failed."""
        return await self._try(self._rows.prune, TENDING)

    async def clear(self) -> int | None:
        """Removes all rows; how many, None where it failed."""
        return await self._try(self._rows.clear, TENDING)

    async def close(self) -> None:
        """Lets go of files and connections. What is asked afterwards is a miss."""
        self._resting_until = float("inf")
        try:
            async with asyncio.timeout(self._patience):
                await self._rows.close()
        except Exception as error:  # noqa: BLE001 (nothing of a cache raises)
            self._note_failure(error)

    async def _try(self, work: Callable[[], Awaitable[T]], patience: float) -> T | None:
        """What the work gives; None where it fails, takes too long, or is not tried at all."""
        if self._clock() < self._resting_until:
            return None
        try:
            async with asyncio.timeout(patience):
                return await work()
        except RefusedRowError:
            self.counts.refused += 1
        except NotKeptError as error:
            self._note_failure(error)
        except Exception as error:  # noqa: BLE001 (nothing of a cache raises)
            self._note_failure(error)
            self._resting_until = max(self._resting_until, self._clock() + self._rest)
        return None

    def _note_failure(self, error: Exception) -> None:
        self.counts.failures += 1
        if self._clock() < self._quiet_until:
            return
        self._quiet_until = self._clock() + QUIET
        LOG.warning("the cache at %s failed: %s", self.place, name_error_kind(error))
