"""The cache on disk: a table of texts in a folder, which several processes may share.

diskcache unpickles any row that claims to be a pickle, and reads and deletes any file that a row names. Here rows hold text,
in the database itself: other rows are refused, and no row's file is ever opened or removed.

Rows expire by the wall clock, as in diskcache. A clock that is wrong makes rows go early or late, but no row wrong: its key
covers everything that its text depends on.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import diskcache  # pyright: ignore[reportMissingTypeStubs]

from service.asking.cache.guard import MAX_SEALED_BYTES, UNREADABLE, GuardedCache

T = TypeVar("T")

_SETTINGS = {
    **diskcache.DEFAULT_SETTINGS,  # diskcache reads a missing one from the database, which may hold anything
    "eviction_policy": "least-recently-stored",  # the only one whose reads write nothing
    "sqlite_journal_mode": "truncate",  # SQLite before 3.51.3 can corrupt a file in WAL mode that several connections write to
    "sqlite_mmap_size": 0,  # with a mapping, a stray write in the process would reach the file
    "sqlite_synchronous": 1,
    "disk_min_file_size": 2 * MAX_SEALED_BYTES,  # no text is as long, so none goes into a file
}

_DAMAGE_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})
"""SQLite's codes for a file that waiting will not repair; SQLITE_ERROR means one with tables other than ours."""


class TextDisk(diskcache.Disk):
    """Rows that are text in the database, and nothing else."""

    def fetch(self, mode: object, filename: object, value: object, read: object) -> str:
        """Return the text of a row, if it is one of ours."""
        ours = not read and mode == diskcache.core.MODE_RAW and filename is None and isinstance(value, str)
        return str(value) if ours else UNREADABLE

    def remove(self, file_path: object) -> None:
        """Do nothing: our rows have no files, so the file that a row names is not ours to delete."""


class DiskCache(GuardedCache):
    """A cache in a folder, created on first use, for its owner alone. All work runs in one thread.

    `ttl` in seconds, `max_bytes` of the database; above it the oldest rows go, ten for each one written. While other processes
    keep the database busy, a statement waits `timeout` seconds, and an operation `patience` seconds in all: waiting costs less
    than asking a judge again. The folder holds `rows`, and `aside`, the last damaged database.
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
        self._folder = folder.absolute() / "rows"
        self._aside = folder.absolute() / "aside"
        self._ttl = ttl
        self._max_bytes = max_bytes
        self._timeout = timeout
        self._table: Any | None = None
        self._file_id: tuple[int, int] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cache")
        self._wanted: list[str] = []
        self._reading: asyncio.Task[Mapping[str, str | None]] | None = None

    async def read_row(self, key: str) -> str | None:
        """Read a row as it was written, with all that are wanted at this moment: the way to the thread costs more."""
        self._wanted.append(key)
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_wanted())
        return (await asyncio.shield(self._reading))[key]

    async def _read_wanted(self) -> Mapping[str, str | None]:
        wanted, self._wanted, self._reading = self._wanted, [], None
        return await self._run(lambda table: {key: _read_text(table, key) for key in wanted})

    async def write_rows(self, rows: Mapping[str, str]) -> None:
        """Write rows in one transaction, which costs more than its rows."""

        def write(table: Any) -> None:
            with table.transact():
                for key, sealed in rows.items():
                    table.set(key, sealed, expire=self._ttl)

        await self._run(write)

    async def release(self) -> None:
        """Close the database in the thread that opened it, and end the thread."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        finally:
            self._thread.shutdown(wait=False)

    async def _run(self, work: Callable[[Any], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run_on_table, work)

    def _run_on_table(self, work: Callable[[Any], T]) -> T:
        """Run the work on the database. If it is damaged, move it aside, and run the work on a new one."""
        try:
            return work(self._open())
        except Exception as error:
            code = _find_code(error)
            is_replaced = self._identify_file() != self._file_id  # by another process
            self._close(forget=is_replaced or code in _DAMAGE_CODES)
            if code not in _DAMAGE_CODES:
                raise
        if not is_replaced:
            shutil.rmtree(self._aside, ignore_errors=True)
            self._folder.rename(self._aside)  # with its journal, which would be replayed into the new database
            self.counts.moved_aside += 1
        return work(self._open())

    def _open(self) -> Any:
        if self._table is None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.chmod(0o700)
            self._file_id = self._identify_file()
            settings = _SETTINGS | {"size_limit": self._max_bytes}
            self._table = diskcache.Cache(str(self._folder), self._timeout, TextDisk, **settings)  # pyright: ignore[reportArgumentType, reportUnknownMemberType]
            self._file_id = self._identify_file()
        return self._table

    def _identify_file(self) -> tuple[int, int] | None:
        """Identify the database at the path, by device and inode."""
        with suppress(OSError):
            found = (self._folder / diskcache.core.DBNAME).stat()
            return found.st_dev, found.st_ino
        return None

    def _close(self, *, forget: bool = True) -> None:
        """Close the connection, as a failed commit leaves its transaction and its locks open; unless `forget`, it is reopened."""
        if self._table is not None:
            self._table.close()
            self._table = None if forget else self._table


def _read_text(table: Any, key: str) -> str | None:
    try:
        return table.get(key)
    except sqlite3.OperationalError as error:
        if _find_code(error) is not None:
            raise
        return UNREADABLE  # bytes that are not UTF-8


def _find_code(error: BaseException) -> int | None:
    """Find the primary code of the first error, which diskcache hides behind a timeout, or behind a ROLLBACK that failed too."""
    while error.__context__ is not None:
        error = error.__context__
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
