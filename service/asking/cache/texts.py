"""diskcache, with everything disabled that runs code or touches files: a table of texts in one database.

diskcache unpickles any row that claims to be a pickle, and reads and deletes any file that a row names. Here rows hold text,
in the database itself: other rows are refused, and no row's file is ever opened or removed.

Rows expire by the wall clock, as in diskcache. If it is ahead, rows expire early and are removed: judges are asked again. If it
is behind, or was ahead when a row was written, the row stays longer by the difference. Neither makes a row wrong: its key
covers everything that its text depends on.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Protocol, cast

import diskcache  # pyright: ignore[reportMissingTypeStubs]

from service.asking.cache.guard import MAX_SEALED_BYTES, RefusedRowError

RAW_MODE = 1
"""diskcache's mode of a row whose value is stored in the database as it is."""

JOURNAL_MODE = "wal" if sqlite3.sqlite_version_info >= (3, 51, 3) else "truncate"
"""Earlier versions of SQLite can corrupt a file in WAL mode that several connections write to."""

_DAMAGE_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})
"""SQLite's codes for a file that waiting will not repair; SQLITE_ERROR means one with tables other than ours."""

_BUSY_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})

_UNWRITABLE_CODES = _BUSY_CODES | {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY}

_SETTINGS = {
    "eviction_policy": "least-recently-stored",  # the only one whose reads write nothing
    "sqlite_journal_mode": JOURNAL_MODE,
    "sqlite_mmap_size": 0,  # with a mapping, a stray write in the process would reach the file
    "sqlite_synchronous": 1,
    "disk_min_file_size": 2 * MAX_SEALED_BYTES,
}


class TextDisk(diskcache.Disk):
    """Text in the database, and nothing else: no pickle, no number, no file."""

    def put(self, key: object) -> tuple[str, bool]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the key as stored. Raises TypeError if it is not text, which diskcache would pickle."""
        if not isinstance(key, str):
            raise TypeError("keys are text")
        return key, True

    def get(self, key: object, raw: object) -> str:
        """Return the key of a row. Raises RefusedRowError for one that diskcache would unpickle."""
        if not raw or not isinstance(key, str):
            raise RefusedRowError
        return key

    def store(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        value: object,
        read: object,
        key: object = None,  # noqa: ARG002
    ) -> tuple[int, int, None, str]:
        """Return (size in files, mode, filename, value) of a row. Raises TypeError if the value is not text."""
        if read or not isinstance(value, str):
            raise TypeError("values are text")
        return 0, RAW_MODE, None, value

    def fetch(self, mode: object, filename: object, value: object, read: object) -> str:
        """Return the text of a row. Raises RefusedRowError for one that we did not write."""
        if read or mode != RAW_MODE or filename is not None or not isinstance(value, str):
            raise RefusedRowError
        return value

    def remove(self, file_path: object) -> None:
        """Do nothing: our rows have no files, so the file that a row names is not ours to delete."""


class CacheTable(Protocol):
    """The part of diskcache.Cache that we use, from one thread. After any error, `close` and go on: it reconnects."""

    def get(self, key: str) -> str | None:
        """Return the text of a row. Raises RefusedRowError for a row that is not ours."""
        ...

    def set(self, key: str, value: str, *, expire: float) -> bool:
        """Store a row for `expire` seconds, and remove a few that are expired or over the size limit."""
        ...

    def transact(self) -> AbstractContextManager[None]:
        """Open one transaction for several `set` calls."""
        ...

    def close(self) -> None:
        """Close the connection, and its transaction with it."""
        ...


class _ClosingCache(diskcache.Cache):
    """diskcache.Cache, which by itself leaves its connection open when it fails to start."""

    def __init__(self, folder: Path, timeout: float, **settings: object) -> None:
        try:
            super().__init__(str(folder), timeout, TextDisk, **settings)  # pyright: ignore[reportArgumentType, reportUnknownMemberType]
        except BaseException:
            self.close()
            raise


def find_database(folder: Path) -> Path:
    """Return the database file of a table."""
    return folder / diskcache.core.DBNAME


def open_table(folder: Path, *, max_bytes: int, timeout: float) -> CacheTable:
    """Open the table of a folder, and create it if there is none; raises whatever goes wrong.

    `timeout`, in seconds, is how long a statement waits for other processes. Above `max_bytes` the oldest rows go, ten for each
    one written.
    """
    if os.path.expandvars(folder) != str(folder):
        raise OSError("diskcache would take a part of the path for a variable, and open another folder")
    _make_private(folder)
    _check_database(
        find_database(folder), 4 * timeout
    )  # processes starting at the same time write for longer than one row takes
    # Sets every setting: diskcache reads missing ones from the database, which may hold anything.
    settings = {**diskcache.core.DEFAULT_SETTINGS, **_SETTINGS, "size_limit": max_bytes}
    return cast("CacheTable", _ClosingCache(folder, timeout, **settings))


def _make_private(folder: Path) -> None:
    """Make the folder and its database file private to their owner; the journals inherit that."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    try:
        os.close(os.open(find_database(folder), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        find_database(folder).chmod(
            0o600
        )  # by name: closing a second descriptor of a database drops the locks of the first one


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


def _find_code(error: BaseException) -> int | None:
    """Return SQLite's primary error code; None if the error is not SQLite's."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def is_undecodable(error: BaseException) -> bool:
    """Whether a row holds bytes that are not UTF-8: the sqlite3 module raises this, not SQLite, so it has no code."""
    return isinstance(error, sqlite3.OperationalError) and _find_code(error) is None


def is_unwritable(error: BaseException) -> bool:
    """Whether perhaps only writing fails: a full disk or other writers, which do not prevent reading."""
    return _find_code(_find_root(error)) in _UNWRITABLE_CODES


def is_busy(error: BaseException) -> bool:
    """Whether other processes held the database for longer than a statement waits."""
    return _find_code(_find_root(error)) in _BUSY_CODES


def is_damage(error: BaseException) -> bool:
    """Whether the file is at fault, and not the disk, the permissions or the load."""
    root = _find_root(error)
    if isinstance(root, sqlite3.Error):
        return _find_code(root) in _DAMAGE_CODES
    return not isinstance(root, OSError | MemoryError)  # for example settings with values that break diskcache
