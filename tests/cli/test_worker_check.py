"""`callgrade worker --check`, which containers are probed with."""

from __future__ import annotations

import os
import socket

import pytest
import sqlalchemy as sa

from service.settings import Settings
from service.store.database import Database
from service.store.jobs.workers import SILENT_S, Workers, make_name
from service.store.tables import WORKERS
from service.wiring import prepare_database
from tests.cli.cli_run import Run


def opened() -> Database:
    """The command's own store."""
    return prepare_database(Settings.from_env(os.environ))


def silent_for(database: Database, seconds: float) -> None:
    with database.begin() as connection:
        connection.execute(sa.update(WORKERS).values(beat_at=database.now() - seconds))


@pytest.mark.parametrize(
    ("name", "silent", "code"),
    [
        (make_name(), 0.0, 0),
        (make_name(), SILENT_S + 5, 2),
        (f"{socket.gethostname()}-other-7-0a0a0a0a", 0.0, 2),
        ("elsewhere-7-0a0a0a0a", 0.0, 2),
    ],
    ids=["its own", "silent", "of a machine with a longer name", "of another machine"],
)
def test_it_tells_the_living_from_the_dead(run: Run, name: str, silent: float, code: int) -> None:
    database = opened()
    Workers(database).beat(name)
    silent_for(database, silent)
    assert run("worker", "--check").code == code


def test_before_there_is_any_worker_none_is_alive(run: Run) -> None:
    assert run("worker", "--check").code == 2  # not even the tables are there
    opened()
    assert run("worker", "--check").code == 2


def test_one_that_died_does_not_hide_the_next_of_its_machine(run: Run) -> None:
    database = opened()
    Workers(database).beat(make_name())
    silent_for(database, SILENT_S + 5)
    Workers(database).beat(make_name())
    assert run("worker", "--check").code == 0


def test_a_database_out_of_reach_is_not_held_against_a_worker(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("CALLGRADE_DATABASE_URL", f"postgresql://nobody@127.0.0.1:{port}/none")
    assert run("worker", "--check").code == 0
