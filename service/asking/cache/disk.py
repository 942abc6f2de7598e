"""The cache on disk: a table of texts in a folder, which several processes may share.

diskcache unpickles any row that claims to be a pickle, and reads and deletes any file that a row names. Here rows hold text,
in the database itself: other rows are refused, and no row's file is ever opened or removed.

Rows expire by the wall clock, as in diskcache. If it is ahead, rows expire early and are removed: judges are asked again. If it
is behind, or was ahead when a row was written, the row stays longer by the difference. Neither makes a row wrong: its key
covers everything that its text depends on.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from time import monotonic
from typing import Protocol, TypeVar, cast

import diskcache  # pyright: ignore[reportMissingTypeStubs]

from service.asking.cache.guard import MAX_SEALED_BYTES, GuardedCache, NotStoredError, RefusedRowError

T = TypeVar("T")

MAX_BATCH_ROWS = 256
"""Most rows written in one transaction."""

JOURNAL_MODE = "wal" if sqlite3.sqlite_version_info >= (3, 51, 3) else "truncate"
"""Earlier versions of SQLite can corrupt a file in WAL mode that several connections write to."""

_RAW_MODE = 1
"""diskcache's mode of a row whose value is stored in the database as it is."""

_SETTINGS = {
    **diskcache.core.DEFAULT_SETTINGS,  # diskcache reads a missing one from the database, which may hold anything
    "eviction_policy": "least-recently-stored",  # the only one whose reads write nothing
    "sqlite_journal_mode": JOURNAL_MODE,
    "sqlite_mmap_size": 0,  # with a mapping, a stray write in the process would reach the file
    "sqlite_synchronous": 1,
    "disk_min_file_size": 2 * MAX_SEALED_BYTES,  # no text is as long, so none goes into a file
}

_DAMAGE_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})
"""SQLite's codes for a file that waiting will not repair; SQLITE_ERROR means one with tables other than ours."""
_BUSY_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_UNWRITABLE_CODES = _BUSY_CODES | {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY}
"""Codes that do not prevent reading."""


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
        self._table: _Table | None = None
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

        def write(table: _Table) -> None:
            with table.transact():
                for key, sealed in batch:
                    table.set(key, sealed, expire=self._ttl)

        try:
            if batch:  # else another drain has taken them
                self._run_on_table(write)
        except Exception as error:
            code = _get_code(_find_root(error))
            if code not in _UNWRITABLE_CODES:
                raise
            self._pending.extendleft(reversed(batch))
            if code in _BUSY_CODES:
                self._busy_until = self._clock() + self._rest
            raise NotStoredError from error

    def _run_on_table(self, work: Callable[[_Table], T]) -> T:
        """Run the work on the database. If it is damaged, move it aside, and run the work on a new one."""
        try:
            return self._try_on_table(work)
        except Exception as error:
            if isinstance(error, RefusedRowError) or not _is_damage(error):
                raise
        self._close()
        if self._identify_file() == self._file_id:  # else another process has replaced it already
            shutil.rmtree(self._aside, ignore_errors=True)
            self._folder.rename(self._aside)  # with its journal, which would be replayed into the new database
            self.counts.moved_aside += 1
        return self._try_on_table(work)

    def _try_on_table(self, work: Callable[[_Table], T]) -> T:
        try:
            return work(self._open())
        except RefusedRowError:
            raise
        except Exception as error:
            if isinstance(error, sqlite3.OperationalError) and _get_code(error) is None:  # bytes that are not UTF-8
                raise RefusedRowError from None
            if self._table is not None:
                self._table.close()  # a failed commit leaves its transaction, and its locks, open; the next use reconnects
                self._table = self._table if self._identify_file() == self._file_id else None
            raise

    def _open(self) -> _Table:
        if self._table is None:
            self._file_id = self._identify_file()
            self._table = _open_table(self._folder, max_bytes=self._max_bytes, timeout=self._timeout)
            self._file_id = self._identify_file()
        return self._table

    def _identify_file(self) -> tuple[int, int] | None:
        """Identify the database at the path, by device and inode."""
        with suppress(OSError):
            found = _find_database(self._folder).stat()
            return found.st_dev, found.st_ino
        return None

    def _close(self) -> None:
        if self._table is not None:
            self._table.close()
            self._table = None


# The table.


class _Table(Protocol):
    """The part of diskcache.Cache that we use, from one thread. Its `get` raises RefusedRowError for a row that is not ours."""

    def get(self, key: str) -> str | None: ...
    def set(self, key: str, value: str, *, expire: float) -> bool: ...
    def transact(self) -> AbstractContextManager[None]: ...
    def close(self) -> None: ...


class TextDisk(diskcache.Disk):
    """Rows that are text in the database, and nothing else."""

    def fetch(self, mode: object, filename: object, value: object, read: object) -> str:
        """Return the text of a row. Raises RefusedRowError for one that we did not write."""
        if read or mode != _RAW_MODE or filename is not None or not isinstance(value, str):
            raise RefusedRowError
        return value

    def remove(self, file_path: object) -> None:
        """Do nothing: our rows have no files, so the file that a row names is not ours to delete."""


class _ClosingCache(diskcache.Cache):
    """diskcache.Cache, which by itself leaves its connection open when it fails to start."""

    def __init__(self, folder: Path, timeout: float, **settings: object) -> None:
        try:
            super().__init__(str(folder), timeout, TextDisk, **settings)  # pyright: ignore[reportArgumentType, reportUnknownMemberType]
        except BaseException:
            self.close()
            raise


def _find_database(folder: Path) -> Path:
    return folder / diskcache.core.DBNAME


def _open_table(folder: Path, *, max_bytes: int, timeout: float) -> _Table:
    """Open the table of a folder, and create it if there is none, for its owner alone; raises whatever goes wrong."""
    if os.path.expandvars(folder) != str(folder):
        raise OSError("diskcache would take a part of the path for a variable, and open another folder")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    database = _find_database(folder)
    database.touch(mode=0o600)  # opens none that is there: to close it again would drop the locks of other connections
    database.chmod(0o600)  # its journals inherit that
    _check_database(database, 4 * timeout)  # processes starting at the same time write for longer than one row takes
    return cast("_Table", _ClosingCache(folder, timeout, **(_SETTINGS | {"size_limit": max_bytes})))


def _check_database(database: Path, timeout: float) -> None:
    """Raise what opening would raise, but sooner: diskcache waits a whole minute for a locked database."""
    with closing(sqlite3.connect(database, timeout=timeout, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'Settings'").fetchone() == (0,):
            return
        names = {name for (name,) in connection.execute("SELECT key FROM Settings")}
        if not names <= diskcache.core.DEFAULT_SETTINGS.keys() | diskcache.core.METADATA.keys():
            raise ValueError("settings that are not diskcache's")


def _find_root(error: BaseException) -> BaseException:
    """Find the first error: diskcache hides it behind a timeout, or behind a ROLLBACK that failed as well."""
    while error.__context__ is not None:
        error = error.__context__
    return error


def _get_code(error: BaseException) -> int | None:
    """Return SQLite's primary error code; None if the error is not SQLite's."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _is_damage(error: BaseException) -> bool:
    """Whether the file is at fault, and not the disk, the permissions or the load."""
    root = _find_root(error)
    if isinstance(root, sqlite3.Error):
        return _get_code(root) in _DAMAGE_CODES
    return not isinstance(root, OSError | MemoryError)  # for example settings with values that break diskcache
