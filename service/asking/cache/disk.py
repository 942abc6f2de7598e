"""The cache on disk: a table of texts in a folder, which several processes may share."""

from __future__ import annotations

import asyncio
import shutil
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TypeVar

from service.asking.cache.guard import GuardedCache, NotStoredError, RefusedRowError
from service.asking.cache.texts import (
    JOURNAL_MODE,
    CacheTable,
    find_database,
    is_busy,
    is_damage,
    is_undecodable,
    is_unwritable,
    open_table,
)

T = TypeVar("T")

MAX_BATCH_ROWS = 256
"""Most rows written in one transaction."""


class DiskCache(GuardedCache):
    """A cache in a folder, created on first use. All work runs in one thread.

    `ttl` in seconds, `max_bytes` of the database; above it the oldest rows go, ten for each one written. While other processes
    keep the database busy, a statement waits `timeout` seconds, and an operation `patience` seconds in all: waiting costs less
    than asking a judge again. After a write that waited in vain for other processes, none is tried for `rest` seconds.

    The folder holds `rows-truncate` or `rows-wal`, named after the journal mode, so that an SQLite which must not use WAL never
    meets a file in that mode; and `aside`, the last damaged database.
    """

    def __init__(  # noqa: PLR0913 (each by name)
        self,
        folder: Path,
        *,
        ttl: float,
        max_bytes: int,
        timeout: float = 4.0,
        patience: float = 5.0,
        rest: float = 1.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        super().__init__(str(folder), patience=patience, rest=rest, clock=clock)
        self._folder = folder.absolute() / f"rows-{JOURNAL_MODE}"
        self._aside = folder.absolute() / "aside"
        self._ttl = ttl
        self._max_bytes = max_bytes
        self._timeout = timeout
        self._table: CacheTable | None = None
        self._file_id: tuple[int, int] | None = None
        self._pending: deque[tuple[str, str]] = deque(maxlen=4 * MAX_BATCH_ROWS)
        self._busy_until = float("-inf")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cache")

    async def read_row(self, key: str) -> str | None:
        """Read a row as it was written."""
        return await self._run(lambda: self._run_on_table(lambda table: table.get(key)))

    async def write_row(self, key: str, sealed: str) -> None:
        """Write a row, together with others that wait to be written: a transaction costs more than its rows.

        A row that is not written now waits for the next write.
        """
        self._pending.append((key, sealed))
        if self._clock() < self._busy_until:
            raise NotStoredError from TimeoutError()
        await self._run(self._drain)

    async def release(self) -> None:
        """Close the database in the thread that opened it, and end the thread."""
        try:
            await self._run(self._close)
        finally:
            self._thread.shutdown(wait=False)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _drain(self) -> None:
        batch = [self._pending.popleft() for _ in range(min(len(self._pending), MAX_BATCH_ROWS))]
        if not batch:
            return  # another drain has taken them
        try:
            self._run_on_table(lambda table: self._keep(table, batch))
        except Exception as error:
            if is_unwritable(error):
                self._pending.extendleft(reversed(batch))
                if is_busy(error):
                    self._busy_until = self._clock() + self._rest
                raise NotStoredError from error
            raise

    def _keep(self, table: CacheTable, batch: list[tuple[str, str]]) -> None:
        with table.transact():
            for key, sealed in batch:
                table.set(key, sealed, expire=self._ttl)

    def _run_on_table(self, work: Callable[[CacheTable], T]) -> T:
        """Run the work on the database. If it is damaged, move it aside, and run the work on a new one."""
        try:
            return self._try_on_table(work)
        except Exception as error:
            if isinstance(error, RefusedRowError) or not is_damage(error):
                raise
        self._move_aside()
        return self._try_on_table(work)

    def _try_on_table(self, work: Callable[[CacheTable], T]) -> T:
        try:
            return work(self._open())
        except RefusedRowError:
            raise
        except Exception as error:
            if is_undecodable(error):
                raise RefusedRowError from None
            self._recover()
            raise

    def _recover(self) -> None:
        """Close the connection, which is remade on use: a failed commit leaves its transaction, and its locks, open."""
        if self._table is not None:
            self._table.close()
            self._table = self._table if self._identify_file() == self._file_id else None

    def _open(self) -> CacheTable:
        if self._table is None:
            self._file_id = self._identify_file()
            self._table = open_table(self._folder, max_bytes=self._max_bytes, timeout=self._timeout)
            self._file_id = self._identify_file()
        return self._table

    def _identify_file(self) -> tuple[int, int] | None:
        """Identify the file at the path, by device and inode."""
        with suppress(OSError):
            found = find_database(self._folder).stat()
            return found.st_dev, found.st_ino
        return None

    def _close(self) -> None:
        if self._table is not None:
            self._table.close()
            self._table = None

    def _move_aside(self) -> None:
        """Move the whole folder: a journal that stayed behind would be replayed into the new database."""
        self._close()
        if self._identify_file() != self._file_id:
            return  # another process has replaced it already
        shutil.rmtree(self._aside, ignore_errors=True)
        self._folder.rename(self._aside)
        self.counts.moved_aside += 1
