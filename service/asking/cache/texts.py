"""diskcache, with everything of it shut off that runs code or touches files: a table of texts in one database.

diskcache unpickles whatever row says it is a pickle, and reads and deletes whatever file a row names. Here rows hold text,
in the database itself: other rows are refused, and no row's file is ever opened or removed.

Expiry goes by the wall clock, as diskcache has it. A clock that is ahead makes rows expire early, and they are removed:
judges are asked again. One that is behind keeps rows beyond their time, by as much as it is behind; so does a row written
while the clock was ahead. No row becomes wrong by it: all that its text depends on is in its key.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Protocol, cast

import diskcache  # pyright: ignore[reportMissingTypeStubs]

from service.asking.cache.guard import MAX_SEALED, Cache, CacheStats, RefusedRowError

__all__ = [
    "JOURNAL",
    "Cache",
    "CacheStats",
    "CacheTable",
    "TextDisk",
    "find_database",
    "is_damage",
    "is_undecodable",
    "is_unwritable",
    "open_table",
]

RAW = 1
"""diskcache's mode of a row whose value stands in the database as it is."""

JOURNAL = "wal" if sqlite3.sqlite_version_info >= (3, 51, 3) else "truncate"
"""Earlier versions of SQLite can corrupt a file in WAL mode that several connections write."""

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})
"""SQLite's codes of a file that will not get better by waiting; SQLITE_ERROR is one with other tables than ours."""

_UNWRITABLE = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
)

_SETTINGS = {
    "eviction_policy": "least-recently-stored",  # the one of which a read writes nothing
    "sqlite_journal_mode": JOURNAL,
    "sqlite_mmap_size": 0,  # with a mapping, a stray write of the process reaches the file
    "sqlite_synchronous": 1,
    "disk_min_file_size": 2 * MAX_SEALED,
}


class TextDisk(diskcache.Disk):
    """Text in the database, and nothing else: no pickle, no number, no file."""

    def put(self, key: object) -> tuple[str, bool]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The key as the database holds it. TypeError for one that is not text: diskcache would pickle it."""
        if not isinstance(key, str):
            raise TypeError("keys are text")
        return key, True

    def get(self, key: object, raw: object) -> str:
        """The key of a row; RefusedRowError for one that diskcache would unpickle."""
        if not raw or not isinstance(key, str):
            raise RefusedRowError
        return key

    def store(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        value: object,
        read: object,
        key: object = None,  # noqa: ARG002
    ) -> tuple[int, int, None, str]:
        """(size in files, mode, filename, value) of a row. TypeError for what is not text."""
        if read or not isinstance(value, str):
            raise TypeError("values are text")
        return 0, RAW, None, value

    def fetch(self, mode: object, filename: object, value: object, read: object) -> str:
        """The text of a row; RefusedRowError for one we did not write."""
        if read or mode != RAW or filename is not None or not isinstance(value, str):
            raise RefusedRowError
        return value

    def remove(self, file_path: object) -> None:
        """Nothing: no row of ours has a file, so the file that a row names is not ours to delete."""


class CacheTable(Protocol):
    """What is used of diskcache.Cache. All in one thread; whatever it raises, `close` and go on: it connects anew."""

    def get(self, key: str) -> str | None:
        """The text of a row; RefusedRowError for a row that is none."""
        ...

    def set(self, key: str, value: str, *, expire: float) -> bool:
        """Keeps a row for `expire` seconds, and removes a few that are expired or over the size."""
        ...

    def transact(self) -> AbstractContextManager[None]:
        """One transaction for several `set`."""
        ...

    def volume(self) -> int:
        """Bytes of the database."""
        ...

    def cull(self) -> int:
        """Removes what has expired, then the oldest until the size fits; how many."""
        ...

    def clear(self) -> int:
        """Removes all; how many."""
        ...

    def close(self) -> None:
        """Ends the connection, and its transaction with it."""
        ...

    def __len__(self) -> int: ...


class _ClosingCache(diskcache.Cache):
    """diskcache.Cache, which leaves its connection open when it cannot be made."""

    def __init__(self, folder: Path, timeout: float, **settings: object) -> None:
        try:
            super().__init__(str(folder), timeout, TextDisk, **settings)  # pyright: ignore[reportArgumentType, reportUnknownMemberType]
        except BaseException:
            self.close()
            raise


def find_database(folder: Path) -> Path:
    """The database file of a table."""
    return folder / diskcache.core.DBNAME


def open_table(folder: Path, *, max_bytes: int, timeout: float) -> CacheTable:
    """The table of a folder, made if there is none; whatever it is that stands in the way is raised.

    `timeout`, in seconds, is how long a statement waits for other processes. Past `max_bytes` the oldest rows go, ten for
    each one written.
    """
    if os.path.expandvars(folder) != str(folder):
        raise OSError("diskcache would take a part of the path for a variable, and open another folder")
    _make_private(folder)
    _look_at(find_database(folder), 4 * timeout)  # others who start at the same time write for longer than a row takes
    # Every setting is given: diskcache takes those that are missing from the database, where anything may stand.
    settings = {**diskcache.core.DEFAULT_SETTINGS, **_SETTINGS, "size_limit": max_bytes}
    return cast("CacheTable", _ClosingCache(folder, timeout, **settings))


def _make_private(folder: Path) -> None:
    """The folder for its owner alone, with a database file in it that is the same; its journals take after that."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    try:
        os.close(os.open(find_database(folder), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        find_database(folder).chmod(
            0o600
        )  # by name: closing a second descriptor of a database drops the locks of the first


def _look_at(database: Path, timeout: float) -> None:
    """Raises what opening would raise, sooner: diskcache waits a whole minute for a database that is locked."""
    with closing(sqlite3.connect(database, timeout=timeout, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'Settings'").fetchone() == (0,):
            return
        names = {name for (name,) in connection.execute("SELECT key FROM Settings")}
        if not names <= diskcache.core.DEFAULT_SETTINGS.keys() | diskcache.core.METADATA.keys():
            raise ValueError("settings that are not diskcache's")


def _find_root(error: BaseException) -> BaseException:
    """The first error: diskcache hides it behind a timeout, or behind a ROLLBACK that failed as well."""
    while error.__context__ is not None:
        error = error.__context__
    return error


def _find_code(error: BaseException) -> int | None:
    """SQLite's primary code; None where it is not SQLite that failed."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def is_undecodable(error: BaseException) -> bool:
    """Whether a row holds bytes that are not UTF-8: the sqlite3 module says so, not SQLite, hence without a code."""
    return isinstance(error, sqlite3.OperationalError) and _find_code(error) is None


def is_unwritable(error: BaseException) -> bool:
    """Whether it may be that only writing fails: a full disk, or others who write; they do not keep us from reading."""
    return _find_code(_find_root(error)) in _UNWRITABLE


def is_damage(error: BaseException) -> bool:
    """Whether the file is at fault, and not the disk, the permissions or the load."""
    root = _find_root(error)
    if isinstance(root, sqlite3.Error):
        return _find_code(root) in _DAMAGED
    return not isinstance(root, OSError | MemoryError)  # settings, say, with values that diskcache chokes on
