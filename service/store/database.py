"""Open the database, migrate its tables, and read its clock.

SQLite uses a write-ahead log (see `ahead`) and syncs each commit: an acknowledged write survives a loss of power.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.sql.elements import ColumnElement

from service.errors import BusyError, DiskFullError, SettingsError
from service.logs.quiet import limit_rate
from service.store.ahead import WriteAheadLog, is_disk_full
from service.store.times import Now

T = TypeVar("T")
P = TypeVar("P")

LOG = logging.getLogger("callgrade.store")
limit_rate(LOG.name)

BUSY_MS = 30_000
"""How long SQLite waits for another writer, in milliseconds."""

DEAD_PEER_OPTIONS = {
    "options": "-c idle_in_transaction_session_timeout=5000",
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""Settings by which a machine that freezes or vanishes in a transaction loses its locks before its work is taken over."""

FULL_PATIENCE_S = 0.5
"""How long to insist on a full disk: enough for the log to be emptied."""

DAMAGED = (
    "The file is damaged. It holds keys, batches with results, labels, kept scores, installed fits, usage and the audit log: "
    "what no backup has may be lost. Stop all processes that use it; then restore a backup, or save what can be read "
    "(`sqlite3 store.db .recover | sqlite3 saved.db`), or move it away with its -wal and -shm to start with an empty store"
)
"""What a damaged file of SQLite means, and how to go on."""

MIGRATION_LOCK = 0x63616C6C
"""The advisory lock under which PostgreSQL's tables are migrated: one process at a time."""

MIGRATIONS = Path(__file__).parent / "migrations"


class Database:
    """A database with our tables. Safe to share between threads."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self._log = WriteAheadLog(engine)
        self._turn = threading.Lock()

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is a file on one machine."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def begin(self) -> Generator[sa.Connection]:
        """Open a transaction that may write: it commits at the end of the block, and rolls back if the block raises.

        Takes SQLite's lock at once, so that nobody writes between a read and the write that depends on it.
        """
        try:
            with self._begin_alone() as connection:
                yield connection
        except DBAPIError as error:
            if self.is_sqlite and is_disk_full(error):  # emptying the log frees its disk space
                self._log.checkpoint(self._begin_alone)
            raise
        if self.is_sqlite and self._log.is_full():
            self._log.checkpoint(self._begin_alone)

    @contextmanager
    def _begin_alone(self) -> Generator[sa.Connection]:
        if not self.is_sqlite:
            with self.engine.begin() as connection:
                yield connection
            return
        # Threads take turns: one that waits for SQLite's own lock sleeps longer and longer.
        if not self._turn.acquire(timeout=BUSY_MS / 1_000):
            raise PoolTimeoutError("another thread is writing")
        try:
            with self.engine.begin() as connection:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                yield connection
        finally:
            self._turn.release()

    def read(self) -> sa.Connection:
        """Return a read-only connection; close it, for example with `with`."""
        return self.engine.connect()

    def read_rows(self, chosen: sa.Executable) -> Sequence[sa.RowMapping]:
        """Return the rows of a selection."""
        with self.read() as connection:
            return connection.execute(chosen).mappings().all()

    def read_row(self, chosen: sa.Executable) -> sa.RowMapping | None:
        """Return the only row of a selection; None if there is none."""
        with self.read() as connection:
            return connection.execute(chosen).mappings().one_or_none()

    def read_column(self, chosen: sa.Executable) -> Sequence[Any]:
        """Return the first value of each row of a selection."""
        with self.read() as connection:
            return connection.execute(chosen).scalars().all()

    def change(self, statement: sa.Executable) -> int:
        """Carry out one statement as a transaction; return how many rows it changed."""
        with self.begin() as connection:
            return connection.execute(statement).rowcount

    def now(self) -> ColumnElement[float]:
        """Return the database's clock as an SQL expression, in seconds since 1970."""
        return Now()

    def migrate(self) -> None:
        """Migrate the tables. Raises SettingsError for a database that a later version has migrated."""
        from alembic import command  # noqa: PLC0415 (a quarter of a second, and few processes migrate)
        from alembic.config import Config  # noqa: PLC0415
        from alembic.util import CommandError  # noqa: PLC0415

        if self.is_sqlite:
            self._log.switch("WAL")
        with self.begin() as connection:
            if not self.is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATION_LOCK)))
            config = Config()
            config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
            config.set_main_option("path_separator", "os")
            config.attributes["connection"] = connection
            try:
                command.upgrade(config, "head")
            except CommandError as error:
                message = (
                    f"its tables are of a later version of callgrade ({error}); expected one that this version knows"
                )
                raise SettingsError.at("CALLGRADE_DATABASE_URL", message) from None

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()
        if self.is_sqlite and Path(self.engine.url.database or "").is_file():
            self._log.switch("DELETE")
            self.engine.dispose()


def open_database(url: str, *, pool: int = 10) -> Database:
    """Open the database at an SQLAlchemy URL, `sqlite:///path` or `postgresql+psycopg://...`. Connects on first use."""
    if url.startswith("sqlite"):
        engine = sa.create_engine(url, connect_args={"timeout": BUSY_MS / 1_000}, pool_size=pool, max_overflow=0)
        event.listen(engine, "connect", _prepare_sqlite)
    else:
        connect: dict[str, Any] = {"application_name": "callgrade", "connect_timeout": 10, **DEAD_PEER_OPTIONS}
        engine = sa.create_engine(url, connect_args=connect, pool_pre_ping=True, pool_size=pool, max_overflow=pool)
    return Database(engine)


def _prepare_sqlite(connection: Any, _: object) -> None:
    if not isinstance(connection, sqlite3.Connection):
        return
    connection.isolation_level = "IMMEDIATE"  # also for code that writes without `begin`
    connection.execute("PRAGMA foreign_keys=ON")
    WriteAheadLog.prepare(connection)
    connection.execute("PRAGMA mmap_size=0")


def insert_new(connection: sa.Connection, table: sa.Table, *rows: Mapping[str, object]) -> int:
    """Insert those rows whose keys do not exist; return how many.

    Where another transaction has inserted the same key, this waits until that has ended.
    """
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    counted = insert(table).on_conflict_do_nothing().execution_options(preserve_rowcount=True)
    return connection.execute(counted, [dict(row) for row in rows]).rowcount if rows else 0


@dataclass(frozen=True, slots=True)
class Page(Generic[T, P]):
    """A part of a list. `next`: the `after` of the next page; null at the end."""

    data: tuple[T, ...]
    has_more: bool
    next: P | None


def cut_page(
    rows: Sequence[sa.RowMapping], limit: int, build: Callable[[sa.RowMapping], T], name: Callable[[T], P]
) -> Page[T, P]:
    """Build the page of `limit` objects from the rows that were found, one more if there are so many."""
    page = tuple([build(row) for row in rows[:limit]])
    more = len(rows) > limit
    return Page(page, more, name(page[-1]) if more else None)


def build_from_row(kind: Callable[..., T], row: sa.RowMapping, **own: object) -> T:
    """Build an object of a dataclass: its fields are `own`, and for the rest the columns of the same name."""
    named: Any = kind
    return kind(**{one.name: row[one.name] for one in fields(named) if one.name not in own}, **own)


def is_transient(error: DBAPIError) -> bool:
    """Whether the same may work a moment later: the connection broke, the disk is full, or a lock is held."""
    message = str(error.orig).lower()
    return error.connection_invalidated or (
        isinstance(error, OperationalError | InterfaceError) and ("no such" not in message and "syntax" not in message)
    )


def is_damaged(error: BaseException) -> bool:
    """Whether a file of SQLite is at fault, and not the disk or the load."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def insist(work: Callable[[], T], *, give_up: float = float("inf"), stopped: Callable[[], bool] = lambda: False) -> T:
    """Return what `work` returns; repeat it, as a whole, while the database is out of reach.

    Raises BusyError after `give_up` seconds, or as soon as `stopped` says so; DiskFullError as soon as that seems to last; any
    other error at once.
    """
    start, wait = time.monotonic(), 0.05
    while True:
        try:
            return work()
        except (DBAPIError, PoolTimeoutError) as error:
            if isinstance(error, DBAPIError) and not is_transient(error):
                raise
            why = getattr(error, "orig", error)
            is_full = isinstance(error, DBAPIError) and is_disk_full(error)
            patience = FULL_PATIENCE_S if is_full and give_up < float("inf") else give_up
            if stopped() or time.monotonic() - start + wait > patience:
                if is_full:
                    raise DiskFullError("the database has no room left on its disk") from error
                raise BusyError(f"the database cannot be reached: {type(why).__name__}") from error
            LOG.warning("waiting for the database", extra={"fields": {"why": str(why).strip()[:200]}})
        time.sleep(wait)
        wait = min(2.0, wait * 2)
