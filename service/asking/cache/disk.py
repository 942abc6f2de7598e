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

from service.asking.cache.guard import CacheCounts, GuardedCache, NotKeptError, RefusedRowError
from service.asking.cache.texts import (
    JOURNAL,
    CacheTable,
    find_database,
    is_damage,
    is_undecodable,
    is_unwritable,
    open_table,
)

T = TypeVar("T")

AT_ONCE = 256
"""Most rows written in one transaction."""


class DiskRows:
    """The rows of a folder. All work is done in one thread.

    The folder holds `rows-truncate` or `rows-wal`, named after the journal, so that a SQLite which must not use WAL never
    meets a file in that mode; and `aside`, the last database that was damaged.
    """

    def __init__(self, folder: Path, counts: CacheCounts, *, ttl: float, max_bytes: int, timeout: float) -> None:
        self.place = str(folder)
        self._folder = folder.absolute() / f"rows-{JOURNAL}"
        self._aside = folder.absolute() / "aside"
        self._counts = counts
        self._ttl = ttl
        self._max_bytes = max_bytes
        self._timeout = timeout
        self._table: CacheTable | None = None
        self._seen: tuple[int, int] | None = None
        self._pending: deque[tuple[str, str]] = deque(maxlen=4 * AT_ONCE)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cache")

    async def read(self, key: str) -> str | None:
        """The row as it was written."""
        return await self._run(lambda: self._run_on_table(lambda table: table.get(key)))

    async def write(self, key: str, sealed: str) -> None:
        """Keeps a row, together with those that wait for the same: a transaction costs more than its rows."""
        self._pending.append((key, sealed))
        await self._run(self._drain)

    async def measure(self) -> tuple[int, int]:
        """Rows, and bytes of the database."""
        return await self._run(lambda: self._run_on_table(lambda table: (len(table), table.volume())))

    async def prune(self) -> int:
        """Removes what has expired, then the oldest until the size fits."""
        return await self._run(lambda: self._run_on_table(lambda table: table.cull()))

    async def clear(self) -> int:
        """Removes all rows, and what was moved aside."""
        removed = await self._run(lambda: self._run_on_table(lambda table: table.clear()))
        await self._run(lambda: shutil.rmtree(self._aside, ignore_errors=True))
        return removed

    async def close(self) -> None:
        """Closes the database, in the thread that opened it, and ends the thread."""
        try:
            await self._run(self._close)
        finally:
            self._thread.shutdown(wait=False)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _drain(self) -> None:
        batch = [self._pending.popleft() for _ in range(min(len(self._pending), AT_ONCE))]
        if not batch:
            return  # another drain took them along
        try:
            self._run_on_table(lambda table: self._keep(table, batch))
        except Exception as error:
            if is_unwritable(error):
                raise NotKeptError from error
            raise

    def _keep(self, table: CacheTable, batch: list[tuple[str, str]]) -> None:
        with table.transact():
            for key, sealed in batch:
                table.set(key, sealed, expire=self._ttl)

    def _run_on_table(self, work: Callable[[CacheTable], T]) -> T:
        """What the work gives on the database. One that is damaged is moved aside, and the work done on a new one."""
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
        """Ends the connection: a commit that failed leaves its transaction, and its locks, open. It is made anew when used."""
        if self._table is not None:
            self._table.close()
            self._table = self._table if self._identify_file() == self._seen else None

    def _open(self) -> CacheTable:
        if self._table is None:
            self._seen = self._identify_file()
            self._table = open_table(self._folder, max_bytes=self._max_bytes, timeout=self._timeout)
            self._seen = self._identify_file()
        return self._table

    def _identify_file(self) -> tuple[int, int] | None:
        """Which file stands at the path."""
        with suppress(OSError):
            found = find_database(self._folder).stat()
            return found.st_dev, found.st_ino
        return None

    def _close(self) -> None:
        if self._table is not None:
            self._table.close()
            self._table = None

    def _move_aside(self) -> None:
        """The folder goes as a whole: a journal that stayed behind would be played into the new database."""
        self._close()
        if self._identify_file() != self._seen:
            return  # another process has replaced it already
        shutil.rmtree(self._aside, ignore_errors=True)
        self._folder.rename(self._aside)
        self._counts.moved_aside += 1


class DiskCache(GuardedCache):
    """A cache in a folder, made when first used.

    `ttl` in seconds, `max_bytes` of the database; past it the oldest rows go, ten for each one written. A database that
    other processes keep busy is waited for `timeout` seconds in a statement and `patience` in all.
    """

    def __init__(  # noqa: PLR0913 (each by name)
        self,
        folder: Path,
        *,
        ttl: float,
        max_bytes: int,
        timeout: float = 0.25,
        patience: float = 1.0,
        rest: float = 1.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        counts = CacheCounts()
        rows = DiskRows(folder, counts, ttl=ttl, max_bytes=max_bytes, timeout=timeout)
        super().__init__(rows, counts, patience=patience, rest=rest, clock=clock)
