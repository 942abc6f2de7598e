"""SQLite's write-ahead log: one sync for each commit, and those who read stop nobody who writes.

Before 3.51.3 SQLite can corrupt a file where one connection commits at the very moment in which another one brings the log
into the database (https://www.sqlite.org/wal.html#walresetbug). So no connection does that by itself, as it would after some
commits. It is done here, by one who holds the lock that everybody who commits must have; and by SQLite for the last one who
closes the file.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

LOG = logging.getLogger("callgrade.store")

STEP = 8 * 2**20
"""Bytes of log after which it is brought into the database."""

KEPT = 2**20
"""Bytes of its file that are left when it begins anew."""

NO_SPACE = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_WRITE})
"""SQLite's codes where the disk has no space left."""


class WriteAheadLog:
    """The log of one SQLite database."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._file = Path(os.path.realpath(engine.url.database or "") + "-wal")
        self._full = STEP
        self._emptying = threading.Lock()

    @staticmethod
    def prepare(connection: Any) -> None:
        """What each new connection is told."""
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute(f"PRAGMA journal_size_limit={KEPT}")

    def begin(self) -> None:
        """From now on the database has a log.

        It goes on without one where that cannot be: on a full disk, or while somebody is within a transaction who has none.
        """
        self._switch("WAL")

    def end(self) -> None:
        """The file alone is all there is, unless others have it open: so it can be read where there is no space for a log."""
        self._switch("DELETE")

    def _switch(self, mode: str) -> None:
        try:
            with self._engine.connect() as connection:
                connection.exec_driver_sql(f"PRAGMA journal_mode={mode}")
        except DBAPIError as error:
            LOG.debug("the journal stays as it is", extra={"fields": {"wanted": mode, "why": str(error.orig)}})

    def is_full(self) -> bool:
        """Whether it is time to empty it."""
        size = self._measure()
        if size < STEP:
            self._full = STEP
        return size >= self._full

    def empty(self, alone: Callable[[], AbstractContextManager[object]]) -> None:
        """Brings it into the database, as far as those who read and the disk allow; later, where it cannot be now.

        `alone`: a block in which nobody else commits.
        """
        if not self._emptying.acquire(blocking=False):
            return
        try:
            with alone(), self._engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")
        except (DBAPIError, PoolTimeoutError) as error:
            LOG.debug("the log was not emptied", extra={"fields": {"why": str(error)[:200]}})
        finally:
            self._full = self._measure() + STEP
            self._emptying.release()

    def _measure(self) -> int:
        try:
            return self._file.stat().st_size
        except OSError:
            return 0


def is_disk_full(error: DBAPIError) -> bool:
    """Whether SQLite found no space."""
    return getattr(error.orig, "sqlite_errorcode", None) in NO_SPACE
