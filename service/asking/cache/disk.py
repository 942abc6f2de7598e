"""The cache on disk: a table of texts in an SQLite file, which several processes may share.

Rows expire by the wall clock. If it is ahead, rows expire early and judges are asked again. If it is behind, or was ahead when a
row was written, the row stays longer by the difference. Neither makes a row wrong: its key covers everything that its text
depends on.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TypeVar

from service.asking.cache.guard import GuardedCache, NotStoredError, RefusedRowError

T = TypeVar("T")

JOURNAL_MODE = "wal" if sqlite3.sqlite_version_info >= (3, 51, 3) else "truncate"
"""Earlier versions of SQLite can corrupt a file in WAL mode that several connections write to."""

FILE_NAME = "cache.db"

MAX_BATCH_ROWS = 256
"""Most rows written in one transaction."""

ROWS_TO_DROP = 10
"""Rows that go for each one written, the oldest first, while they have expired or the table is too large."""

_DAMAGE_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})
"""SQLite's codes for a file that waiting will not repair; SQLITE_ERROR means one with tables other than ours."""

_BUSY_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})

_UNWRITABLE_CODES = _BUSY_CODES | {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY}
"""Codes of errors after which reading may still work."""


class DiskCache(GuardedCache):
    """A cache in a folder, created on first use. All work runs in one thread.

    `ttl` in seconds, `max_bytes` of the database; above it the oldest rows go. While other processes keep the database busy, a
    statement waits `timeout` seconds, and an operation `patience` seconds in all: waiting costs less than asking a judge again.
    After a write that waited in vain for other processes, none is tried for `rest` seconds.

    The folder holds `texts-truncate` or `texts-wal`, named after the journal mode, so that an SQLite which must not use WAL never
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
        self._folder = folder.absolute() / f"texts-{JOURNAL_MODE}"
        self._file = self._folder / FILE_NAME
        self._aside = folder.absolute() / "aside"
        self._ttl = ttl
        self._max_bytes = max_bytes
        self._timeout = timeout
        self._connection: sqlite3.Connection | None = None
        self._file_id: tuple[int, int] | None = None
        self._pending: deque[tuple[str, str]] = deque(maxlen=4 * MAX_BATCH_ROWS)
        self._busy_until = float("-inf")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cache")

    async def read_row(self, key: str) -> str | None:
        """Read a row as it was written."""
        return await self._run(lambda: self._run_on_table(lambda table: _read(table, key)))

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
        except sqlite3.Error as error:
            if _find_code(error) not in _UNWRITABLE_CODES:
                raise
            self._pending.extendleft(reversed(batch))
            if _find_code(error) in _BUSY_CODES:
                self._busy_until = self._clock() + self._rest
            raise NotStoredError from error

    def _keep(self, table: sqlite3.Connection, batch: list[tuple[str, str]]) -> None:
        """Write rows in one transaction; an error leaves it to be rolled back with its connection."""
        now, most = time.time(), ROWS_TO_DROP * len(batch)
        table.execute("BEGIN IMMEDIATE")
        rows = [(key, sealed, now + self._ttl) for key, sealed in batch]
        table.executemany("INSERT OR REPLACE INTO texts (key, text, expires) VALUES (?, ?, ?)", rows)
        oldest = "SELECT rowid FROM texts ORDER BY rowid LIMIT ?"  # a row that is written again gets a new rowid
        table.execute(f"DELETE FROM texts WHERE rowid IN ({oldest}) AND expires <= ?", (most, now))  # noqa: S608 (ours)
        if _measure(table) > self._max_bytes:
            table.execute(f"DELETE FROM texts WHERE rowid IN ({oldest})", (most,))  # noqa: S608 (ours)
        table.execute("COMMIT")

    def _run_on_table(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run the work on the database. If it is damaged, move it aside, and run the work on a new one."""
        try:
            return self._try_on_table(work)
        except sqlite3.Error as error:
            if _find_code(error) not in _DAMAGE_CODES:
                raise
        self._move_aside()
        return self._try_on_table(work)

    def _try_on_table(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return work(self._open())
        except RefusedRowError:
            raise
        except Exception:
            self._close()  # a failed commit leaves its transaction, and its locks, open
            raise

    def _open(self) -> sqlite3.Connection:
        """Open the database, private to its owner, and create it if there is none."""
        if self._connection is None:
            self._file_id = self._identify_file()
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.chmod(0o700)
            try:
                os.close(os.open(self._file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            except FileExistsError:
                self._file.chmod(
                    0o600
                )  # by name: closing a second descriptor of a database drops the locks of the first one
            self._connection = sqlite3.connect(self._file, self._timeout, isolation_level=None)
            self._file_id = self._identify_file()
            self._connection.text_factory = bytes
            for pragma in (f"journal_mode={JOURNAL_MODE}", "mmap_size=0", "synchronous=NORMAL"):
                self._connection.execute(f"PRAGMA {pragma}")
            columns = "key TEXT PRIMARY KEY, text TEXT NOT NULL, expires REAL NOT NULL"
            self._connection.execute(f"CREATE TABLE IF NOT EXISTS texts ({columns})")
        return self._connection

    def _identify_file(self) -> tuple[int, int] | None:
        """Identify the file at the path, by device and inode."""
        with suppress(OSError):
            found = self._file.stat()
            return found.st_dev, found.st_ino
        return None

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _move_aside(self) -> None:
        """Move the whole folder: a journal that stayed behind would be replayed into the new database."""
        if self._identify_file() != self._file_id:
            return  # another process has replaced it already
        shutil.rmtree(self._aside, ignore_errors=True)
        self._folder.rename(self._aside)
        self.counts.moved_aside += 1


def _read(table: sqlite3.Connection, key: str) -> str | None:
    """Read a row that has not expired. Raises RefusedRowError for one that holds no text."""
    row = table.execute("SELECT text FROM texts WHERE key = ? AND expires > ?", (key, time.time())).fetchone()
    try:
        return None if row is None else row[0].decode()
    except (AttributeError, UnicodeDecodeError):  # a number, or bytes
        raise RefusedRowError from None


def _measure(table: sqlite3.Connection) -> int:
    """Return the bytes of the pages in use."""
    pages, free, size = [
        table.execute(f"PRAGMA {x}").fetchone()[0] for x in ("page_count", "freelist_count", "page_size")
    ]
    return (pages - free) * size


def _find_code(error: sqlite3.Error) -> int | None:
    """Return SQLite's primary error code; None if the error is of Python's module."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
