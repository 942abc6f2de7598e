"""Stores on SQLite as they are after all migrations: copied, for the migrations take seven times as long."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from service.store.database import Database, open_database


def open_new_store(folder: Path) -> Database:
    """A store without rows in a folder; whoever opens it closes it."""
    file = folder / "store.db"
    file.write_bytes(_migrate())
    return open_database(f"sqlite:///{file}")


def open_prepared(url: str) -> Database:
    """The store of a URL, up to date; a new one on SQLite is a copy."""
    file = Path(url.removeprefix("sqlite:///"))
    if file != Path(url) and not file.exists():
        file.write_bytes(_migrate())
    database = open_database(url)
    database.migrate()
    return database


@cache
def _migrate() -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder, "store.db")
        database = open_database(f"sqlite:///{file}")
        database.migrate()
        database.close()
        return file.read_bytes()
