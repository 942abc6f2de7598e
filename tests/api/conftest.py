"""The application under test, and a way to ask it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI

from service.api.app import create_app
from service.store.database import Database, open_database
from tests.api.asgi_caller import Ask, build_ask
from tests.store.played import Recording


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    """The application with its defaults and a store, shared by tests that only ask. Nobody works on its batches."""
    database = open_database(f"sqlite:///{tmp_path_factory.mktemp('store')}/store.db")
    database.migrate()
    return create_app(database=database, queue=Recording())


@pytest.fixture(scope="session")
def ask(app: FastAPI) -> Iterator[Ask]:
    """Sends one request to `app`, or to another application."""
    with asyncio.Runner() as runner:
        yield build_ask(runner, app)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An empty store."""
    file = tmp_path_factory.mktemp("store") / "store.db"
    database = open_database(f"sqlite:///{file}")
    database.migrate()
    database.close()
    return file.read_bytes()


@pytest.fixture
def store(tmp_path: Path, template: bytes) -> Iterator[Database]:
    """A store without rows, up to date."""
    file = tmp_path / "store.db"
    file.write_bytes(template)
    database = open_database(f"sqlite:///{file}")
    yield database
    database.close()
