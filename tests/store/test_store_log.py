"""SQLite's log: emptied by nobody but us, while nobody commits, and never much larger than it must be."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from service.errors import SettingsError
from service.settings import Settings
from service.store.ahead import CHECKPOINT_BYTES, KEPT_BYTES, WriteAheadLog
from service.store.database import Database, open_database
from service.wiring import prepare_database
from tests.faults.disk import fill, small
from tests.stores import open_new_store

ROW = CHECKPOINT_BYTES // 4


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    database = open_database(f"sqlite:///{tmp_path / 'store.db'}")
    database.migrate()
    with database.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE kept (number INTEGER PRIMARY KEY, text BLOB)")
    yield database
    database.close()


def write(store: Database, number: int) -> None:
    with store.begin() as connection:
        connection.exec_driver_sql("INSERT INTO kept VALUES (?, randomblob(?))", (number, ROW))


def numbers(store: Database) -> list[int]:
    with store.read() as connection:
        return list(connection.exec_driver_sql("SELECT number FROM kept ORDER BY number").scalars())


def size(store: Database) -> int:
    return Path(f"{store.engine.url.database}-wal").stat().st_size


def test_the_file_of_the_log_shrinks_again(store: Database) -> None:
    with store.begin() as connection:
        connection.exec_driver_sql("INSERT INTO kept VALUES (0, randomblob(?))", (3 * CHECKPOINT_BYTES,))
    with store.begin() as connection:
        connection.exec_driver_sql("INSERT INTO kept VALUES (1, 'x')")
    assert size(store) <= KEPT_BYTES


def test_who_reads_for_long_holds_nobody_up(store: Database) -> None:
    with store.read() as reading:
        reading.exec_driver_sql("BEGIN")
        before = reading.exec_driver_sql("SELECT count(*) FROM kept").scalar_one()
        for number in range(12):
            write(store, number)
        assert reading.exec_driver_sql("SELECT count(*) FROM kept").scalar_one() == before == 0
        assert size(store) > 2 * CHECKPOINT_BYTES
        reading.rollback()
    for number in range(12, 20):
        write(store, number)
    assert size(store) < 2 * CHECKPOINT_BYTES
    assert numbers(store) == list(range(20))


def test_it_is_emptied_while_nobody_else_can_commit(store: Database) -> None:
    events: list[str] = []
    event.listen(store.engine, "commit", partial(_noted, events, "commit"))
    event.listen(store.engine, "before_cursor_execute", partial(_statement, events))
    for number in range(5):
        write(store, number)
    at = events.index("PRAGMA wal_checkpoint(PASSIVE)")
    assert events[at - 1 : at + 2] == ["BEGIN IMMEDIATE", "PRAGMA wal_checkpoint(PASSIVE)", "commit"]


def _noted(events: list[str], event: str, _: object) -> None:
    events.append(event)


def _statement(events: list[str], _connection: object, _cursor: object, statement: str, *_: object) -> None:
    events.append(statement)


def test_no_connection_empties_it_by_itself(store: Database) -> None:
    with store.engine.connect() as connection, store.engine.connect() as another:
        for one in (connection, another):
            assert one.exec_driver_sql("PRAGMA wal_autocheckpoint").scalar_one() == 0
            assert one.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2


@pytest.mark.parametrize(
    "error", [OperationalError("BEGIN", None, sqlite3.OperationalError("database is locked")), PoolTimeoutError("none")]
)
def test_who_has_committed_is_not_told_that_the_log_could_not_be_emptied(store: Database, error: Exception) -> None:
    @contextmanager
    def refused() -> Generator[None]:
        raise error
        yield

    log = WriteAheadLog(store.engine)
    for number in range(5):
        write(store, number)
    log.checkpoint(refused)
    assert not log.is_full()  # it is tried again when it has grown by another step
    assert numbers(store) == list(range(5))


def test_a_store_behind_a_link_is_like_any_other(store: Database, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(store.engine.url.database or "")
    linked = open_database(f"sqlite:///{link}")
    for number in range(12):
        write(linked, number)
    assert size(store) < 2 * CHECKPOINT_BYTES
    linked.close()


def test_a_closed_store_is_one_file(store: Database) -> None:
    path = Path(store.engine.url.database or "")
    another = open_database(f"sqlite:///{path}")
    write(another, 0)
    store.close()
    assert size(another) > 0
    assert numbers(another) == [0]
    another.close()
    assert [found.name for found in path.parent.iterdir()] == [path.name]
    again = open_database(f"sqlite:///{path}")
    again.migrate()
    assert numbers(again) == [0]
    again.close()


@pytest.mark.parametrize("ended", ["closed", "killed"])
def test_a_store_is_read_from_a_full_disk(tmp_path: Path, ended: str) -> None:
    with small(tmp_path / "disk"):
        _read_from_a_full_disk(tmp_path / "disk", ended)


def _read_from_a_full_disk(disk: Path, ended: str) -> None:
    path = disk / "store.db"
    before = open_database(f"sqlite:///{path}")
    before.migrate()
    with before.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE kept (number INTEGER PRIMARY KEY, text BLOB)")
    write(before, 1)
    if ended == "closed":
        before.close()
    with (disk / "filler").open("wb", buffering=0) as file:
        fill(file)
    store = open_database(f"sqlite:///{path}")
    store.migrate()
    assert numbers(store) == [1]
    with pytest.raises(OperationalError):
        write(store, 2)
    (disk / "filler").unlink()
    write(store, 2)
    assert numbers(store) == [1, 2]
    store.close()
    before.close()


@pytest.mark.parametrize("kept", [0, 100], ids=["another kind of file", "an empty header"])
def test_a_damaged_store_stops_the_start_and_says_how_to_go_on(tmp_path: Path, kept: int) -> None:
    open_new_store(tmp_path).close()
    file = tmp_path / "store.db"
    file.write_bytes(file.read_bytes()[:kept] + b"no database" * 1_000)
    before = file.read_bytes()
    with pytest.raises(SettingsError) as stopped:
        prepare_database(Settings(home=tmp_path))
    told = str(stopped.value)
    assert told.startswith(f"CALLGRADE_HOME: {file} cannot be used: ")
    assert all(part in told for part in ("keys, batches", "may be lost", "restore a backup", "empty store"))
    assert "\n" not in told
    assert file.read_bytes() == before
