"""SQLite's write-ahead log: one sync for each commit, and those who read stop nobody who writes.

Before 3.51.3 SQLite can corrupt a file where one connection commits at the very moment in which another one brings the log
into the database (https://www.sqlite.org/wal.html#walresetbug). So no connection does that by itself, as it would after some
commits. It is done here, by one who holds the lock that everybody who commits must have.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

STEP = 8 * 2**20
"""Bytes of log after which it is brought into the database."""

KEPT = 2**20
"""Bytes of its file that are left when it begins anew."""


class Log:
    """The log of one SQLite database."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._file = Path(f"{engine.url.database}-wal")
        self._full = STEP
        self._emptying = threading.Lock()

    @staticmethod
    def prepare(connection: Any) -> None:
        """What each new connection is told."""
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute(f"PRAGMA journal_size_limit={KEPT}")

    def keep(self) -> None:
        """From now on the database has a log. OperationalError while one that has none is in use."""
        with self._engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")

    def is_full(self) -> bool:
        """Whether it is time to empty it."""
        size = self._size()
        if size < STEP:
            self._full = STEP
        return size >= self._full

    def empty(self, alone: Callable[[], AbstractContextManager[object]]) -> None:
        """Brings it into the database, as far as those who read and the disk allow.

        `alone`: a block in which nobody else commits.
        """
        if not self._emptying.acquire(blocking=False):
            return
        try:
            with self._engine.connect() as connection, alone(), suppress(OperationalError):
                connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")
            self._full = self._size() + STEP
        finally:
            self._emptying.release()

    def _size(self) -> int:
        try:
            return self._file.stat().st_size
        except FileNotFoundError:
            return 0
