"""What every cache of judgements offers its callers: entries come back as they were stored, or not at all; nothing raises.

A cache is a store of rows, on a disk or in Redis, that may fail in any way: the guard turns that into a miss and a count, and
leaves alone for a moment what has just failed. Nobody waits for a row to be written: rows wait in memory, where they are found,
until a task of the event loop has written them, many at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from time import monotonic
from typing import TypeVar

from typing_extensions import override

from service.logs.quiet import name_error_kind

LOG = logging.getLogger("callgrade.cache")

MAX_TEXT_BYTES = 65_536
"""Most bytes of UTF-8 stored under one key."""

MAX_SEALED_BYTES = MAX_TEXT_BYTES + 64
"""Most bytes of a text with its seal."""

MAX_AT_ONCE = 32
"""Most look-ups of one process that are under way; the others queue, and their wait for a turn is no failure."""

MAX_BATCH_ROWS = 256
"""Most rows written in one transaction."""

MAX_PENDING_ROWS = 4 * MAX_BATCH_ROWS
"""Most rows that wait to be written; of more, the oldest are given up."""

WRITE_INTERVAL_S = 0.05
"""Fewest seconds between writes: a transaction costs more than its rows."""

LOG_INTERVAL_S = 60.0
"""Fewest seconds between log lines about a failing cache; the counts miss nothing."""

T = TypeVar("T")


class Cache:
    """What callers see of a cache; by itself, one that keeps nothing. Keys are sha256 in hex, and include the tenant.

    Its methods raise nothing but CancelledError: a broken cache is a miss and a count.
    """

    async def get(self, key: str) -> str | None:  # noqa: ARG002
        """Return the JSON text stored under `key`; None is a miss."""
        return None

    def set(self, key: str, text: str) -> None:
        """Store the text soon, if possible. A text above MAX_TEXT_BYTES is not stored, but counted."""

    async def flush(self) -> None:
        """Wait until what was stored can outlive the process, or has failed to be written."""

    async def close(self) -> None:
        """Write what waits, and release files and connections. Later lookups are misses."""


@dataclass(slots=True)
class CacheCounts:
    """What one process saw of a cache since it started."""

    hits: int = 0
    misses: int = 0
    refused: int = 0
    """Rows that are not as we wrote them. Each is a miss too."""
    too_large: int = 0
    failures: int = 0
    """Look-ups, and writes of one or many rows, that failed; and rows that were given up."""
    moved_aside: int = 0
    """Files that could not be read, and were replaced by an empty one."""


UNREADABLE = ""
"""What a store returns for a row that is no text: it has no seal."""


def seal_row(key: str, text: str) -> str:
    """Prefix the text with the sha256 of its key and itself, in hex.

    The seal shows decay: a flipped byte, half a row, the row of another key. It does not show malice, as whoever can write rows
    can write seals. Raises UnicodeEncodeError for text that is not Unicode (a lone surrogate).
    """
    return hashlib.sha256(f"{key}\n{text}".encode()).hexdigest() + text


def unseal_row(key: str, row: str) -> str | None:
    """Return the text of a sealed row; None if the seal does not match.

    >>> unseal_row("k", seal_row("k", '{"label": "ok"}'))
    '{"label": "ok"}'
    """
    return row[64:] if row == seal_row(key, row[64:]) else None


class GuardedCache(Cache, ABC):
    """A cache over rows that may fail. Use from one event loop at a time.

    `patience` is the longest that one operation may take, in seconds, from when it is its turn. After a failure the rows are not
    read (or not written) for `rest` seconds of `clock`, so that hanging rows do not cost that patience for every question.
    """

    def __init__(
        self, place: str, *, patience: float, rest: float = 1.0, clock: Callable[[], float] = monotonic
    ) -> None:
        self.place = place
        """Where the rows are, for people; never with a password."""
        self.counts = CacheCounts()
        """What this process saw."""
        self.trouble: str | None = None
        """The kind of error of the last operation that was tried; None if it worked."""
        self._patience = patience
        self._rest = rest
        self._clock = clock
        self._unread_until = self._unwritten_until = self._quiet_until = self._next_write = float("-inf")
        self._turns = asyncio.Semaphore(MAX_AT_ONCE)
        self._pending: dict[str, str] = {}
        self._writing: asyncio.Task[None] | None = None

    @abstractmethod
    async def read_row(self, key: str) -> str | None:
        """Read a row as it was written; None if there is none, UNREADABLE if it is no text. May raise anything."""

    @abstractmethod
    async def write_rows(self, rows: Mapping[str, str]) -> None:
        """Write rows of at most MAX_SEALED_BYTES, all or some of them. May raise anything."""

    @abstractmethod
    async def release(self) -> None:
        """Release files and connections. May raise anything."""

    @override
    async def get(self, key: str) -> str | None:
        if (row := self._pending.get(key)) is None:
            row = await self._read(key)
        else:
            self._write_soon()  # the last try may have failed
        text = None if row is None else unseal_row(key, row)
        self.counts.refused += row is not None and text is None
        self.counts.misses += text is None
        self.counts.hits += text is not None
        return text

    async def _read(self, key: str) -> str | None:
        async with self._turns:
            if self._clock() < self._unread_until:
                return None
            try:
                return await self._try(self.read_row(key))
            except Exception:  # noqa: BLE001 (a cache raises nothing)
                self._unread_until = max(self._unread_until, self._clock() + self._rest)
                return None

    @override
    def set(self, key: str, text: str) -> None:
        try:
            row = seal_row(key, text)
        except UnicodeEncodeError:
            self.counts.failures += 1
            return
        if len(row.encode()) > MAX_SEALED_BYTES:
            self.counts.too_large += 1
            return
        self._pending.pop(key, None)
        self._pending[key] = row
        if len(self._pending) > MAX_PENDING_ROWS:
            del self._pending[next(iter(self._pending))]
            self.counts.failures += 1
        self._write_soon()

    def _write_soon(self) -> asyncio.Task[None]:
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_pending())
        return self._writing

    async def _write_pending(self) -> None:
        """Write what waits. What fails waits for the next row that is stored, or for the end."""
        while self._pending and self._clock() >= self._unwritten_until:
            await asyncio.sleep(max(0.0, self._next_write - monotonic()))
            self._next_write = monotonic() + WRITE_INTERVAL_S
            rows = dict(islice(self._pending.items(), MAX_BATCH_ROWS))
            try:
                await self._try(self.write_rows(rows))
            except Exception:  # noqa: BLE001 (a cache raises nothing)
                self._unwritten_until = max(self._unwritten_until, self._clock() + self._rest)
                return
            for key, row in rows.items():
                if self._pending.get(key) is row:
                    del self._pending[key]

    @override
    async def flush(self) -> None:
        if self._pending:
            await asyncio.wait([self._write_soon()])

    @override
    async def close(self) -> None:
        self._unwritten_until = min(self._unwritten_until, self._clock())
        await self.flush()
        self._unread_until = self._unwritten_until = float("inf")
        with suppress(Exception):  # it is noted
            await self._try(self.release())

    async def _try(self, work: Awaitable[T]) -> T:
        """Return the result of the work. Notes and raises its error, TimeoutError for one that takes too long."""
        try:
            async with asyncio.timeout(self._patience):
                found = await work
        except Exception as error:
            self.counts.failures += 1
            self.trouble = name_error_kind(error)
            if self._clock() >= self._quiet_until:
                self._quiet_until = self._clock() + LOG_INTERVAL_S
                LOG.warning("the cache at %s failed: %s", self.place, self.trouble)
            raise
        self.trouble = None
        return found
