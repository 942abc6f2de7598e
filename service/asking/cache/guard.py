"""What every cache of judgements offers its callers: entries come back as they were stored, or not at all; nothing raises.

A cache is a store of rows, on a disk or in Redis. The store may fail in any way; the guard turns that into a miss and a count,
and leaves alone for a moment what has just failed.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import Protocol, TypeVar

from service.logs.quiet import name_error_kind

LOG = logging.getLogger("callgrade.cache")

MAX_TEXT_BYTES = 65_536
"""Most bytes of UTF-8 stored under one key."""

MAX_SEALED_BYTES = MAX_TEXT_BYTES + 64
"""Most bytes of a text with its seal."""

MAX_AT_ONCE = 32
"""Most operations of one process that are under way; the others queue, and their wait for a turn is no failure."""

LOG_INTERVAL_S = 60.0
"""Fewest seconds between log lines about a failing cache; the counts miss nothing."""

T = TypeVar("T")


class Cache(Protocol):
    """What callers see of a cache. Keys are sha256 in hex, and include the tenant. Values are JSON text.

    Its methods raise nothing but CancelledError: a broken cache is a miss and a count.
    """

    async def get(self, key: str) -> str | None:
        """Return the text stored under `key`; None is a miss."""

    async def set(self, key: str, text: str) -> None:
        """Store the text, if possible. A text above MAX_TEXT_BYTES is not stored, but counted."""

    async def close(self) -> None:
        """Release files and connections. Later lookups are misses."""


class NoCache(Cache):
    """A cache that keeps nothing: what the port does by itself."""


class RefusedRowError(Exception):
    """A row that we did not write. It is left alone and counted."""


class NotStoredError(Exception):
    """The store works but did not accept the row: it is full or read-only. Reading goes on."""


@dataclass(slots=True)
class CacheCounts:
    """What one process saw of a cache since it started."""

    hits: int = 0
    misses: int = 0
    refused: int = 0
    """Rows that are not as we wrote them. Each is a miss too."""
    too_large: int = 0
    failures: int = 0
    moved_aside: int = 0
    """Files that could not be read, and were replaced by an empty one."""


def seal_row(key: str, text: str) -> str:
    """Prefix the text with the sha256 of its key and itself, in hex.

    The seal shows decay: a flipped byte, half a row, the row of another key. It does not show malice, as whoever can write rows
    can write seals. Raises UnicodeEncodeError for text that is not Unicode (a lone surrogate).
    """
    return hashlib.sha256(f"{key}\n{text}".encode()).hexdigest() + text


def unseal_row(key: str, row: str) -> str:
    """Return the text of a sealed row. Raises RefusedRowError if the seal does not match.

    >>> unseal_row("k", seal_row("k", '{"label": "ok"}'))
    '{"label": "ok"}'
    """
    if row != seal_row(key, row[64:]):
        raise RefusedRowError
    return row[64:]


class GuardedCache(ABC):
    """A cache over rows that may fail.

    `patience` is the longest that one operation may take, in seconds, from when it is its turn. After a failure the rows are
    left alone for `rest` seconds of `clock`, with only misses, so that hanging rows do not cost that patience for every question.
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
        self._resting_until = float("-inf")
        self._quiet_until = float("-inf")
        self._turns = asyncio.Semaphore(MAX_AT_ONCE)

    @abstractmethod
    async def read_row(self, key: str) -> str | None:
        """Read a row as it was written; None if there is none. May raise anything."""

    @abstractmethod
    async def write_row(self, key: str, sealed: str) -> None:
        """Write a row of at most MAX_SEALED_BYTES. May raise anything."""

    @abstractmethod
    async def release(self) -> None:
        """Release files and connections. May raise anything."""

    async def get(self, key: str) -> str | None:
        """Return the text stored under `key`; None is a miss."""
        text = await self._try(lambda: self._read(key))
        if text is None:
            self.counts.misses += 1
        else:
            self.counts.hits += 1
        return text

    async def _read(self, key: str) -> str | None:
        row = await self.read_row(key)
        return None if row is None else unseal_row(key, row)

    async def set(self, key: str, text: str) -> None:
        """Store the text, if possible."""
        try:
            row = seal_row(key, text)
        except UnicodeEncodeError:
            self.counts.failures += 1
            return
        if len(row.encode()) > MAX_SEALED_BYTES:
            self.counts.too_large += 1
            return
        await self._try(lambda: self.write_row(key, row))

    async def close(self) -> None:
        """Release files and connections. Later lookups are misses."""
        self._resting_until = float("inf")
        try:
            async with asyncio.timeout(self._patience):
                await self.release()
        except Exception as error:  # noqa: BLE001 (a cache raises nothing)
            self._note_failure(error)

    async def _try(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """Run the work and return its result; None if it fails, takes too long, or is not tried at all."""
        async with self._turns:
            if self._clock() < self._resting_until:
                return None
            try:
                async with asyncio.timeout(self._patience):
                    found = await work()
            except RefusedRowError:
                self.counts.refused += 1
            except NotStoredError as error:
                self._note_failure(error)
            except Exception as error:  # noqa: BLE001 (a cache raises nothing)
                self._note_failure(error)
                self._resting_until = max(self._resting_until, self._clock() + self._rest)
            else:
                self.trouble = None
                return found
        return None

    def _note_failure(self, error: Exception) -> None:
        self.counts.failures += 1
        self.trouble = name_error_kind(error)
        if self._clock() >= self._quiet_until:
            self._quiet_until = self._clock() + LOG_INTERVAL_S
            LOG.warning("the cache at %s failed: %s", self.place, self.trouble)
