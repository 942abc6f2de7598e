"""SQLite's write-ahead log: one sync per commit, and readers do not block writers.

Before 3.51.3, SQLite can corrupt a file if one connection commits at the very moment in which another checkpoints the log
(https://www.sqlite.org/wal.html#walresetbug). So no connection checkpoints by itself, as it would after some commits. Instead,
whoever holds the lock that every commit needs does it here; and SQLite does it when the last connection closes the file.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

LOG = logging.getLogger("callgrade.store")

CHECKPOINT_BYTES = 8 * 2**20
"""Bytes of log after which it is checkpointed."""

KEPT_BYTES = 2**20
"""Bytes to which the log file is cut when it starts anew."""

DISK_FULL_CODES = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_WRITE})
"""SQLite's error codes for a full disk."""

DISK_FULL_STATE = "53100"
"""PostgreSQL's."""


class WriteAheadLog:
    """The log of one SQLite database."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._file = Path(os.path.realpath(engine.url.database or "") + "-wal")
        self._checkpoint_at = CHECKPOINT_BYTES
        self._checkpointing = threading.Lock()

    @staticmethod
    def prepare(connection: Any) -> None:
        """Configure a new connection."""
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute(f"PRAGMA journal_size_limit={KEPT_BYTES}")

    def switch(self, mode: Literal["WAL", "DELETE"]) -> None:
        """Switch the database to a log, or back to a single file, which can be read where there is no space for a log.

        It goes on as it is if that is impossible: on a full disk, or while somebody else has it open.
        """
        try:
            with self._engine.connect() as connection:
                connection.exec_driver_sql(f"PRAGMA journal_mode={mode}")
        except DBAPIError as error:
            LOG.debug("the journal stays as it is", extra={"fields": {"wanted": mode, "why": str(error.orig)}})

    def is_full(self) -> bool:
        """Whether it is time to checkpoint."""
        size = self._measure()
        if size < CHECKPOINT_BYTES:
            self._checkpoint_at = CHECKPOINT_BYTES
        return size >= self._checkpoint_at

    def checkpoint(self, alone: Callable[[], AbstractContextManager[object]]) -> None:
        """Checkpoint the log, as far as readers and the disk allow; if that is impossible now, later.

        `alone`: a block in which nobody else commits.
        """
        if not self._checkpointing.acquire(blocking=False):
            return
        try:
            with alone(), self._engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")
        except (DBAPIError, PoolTimeoutError) as error:
            LOG.debug("the log was not emptied", extra={"fields": {"why": str(error)[:200]}})
        finally:
            self._checkpoint_at = self._measure() + CHECKPOINT_BYTES
            self._checkpointing.release()

    def _measure(self) -> int:
        try:
            return self._file.stat().st_size
        except OSError:
            return 0


def is_disk_full(error: DBAPIError) -> bool:
    """Whether the database ran out of disk space."""
    code, state = [getattr(error.orig, name, None) for name in ("sqlite_errorcode", "sqlstate")]
    return code in DISK_FULL_CODES or state == DISK_FULL_STATE
