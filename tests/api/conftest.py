"""The application under test, and a way to ask it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI

from service.api.app import create_app
from service.store.database import Database
from tests.api.asgi_caller import JSON, Answer, Ask
from tests.conftest import Run
from tests.stores import open_new_store

Score = Callable[..., Answer]


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    """The application with its defaults and a store, shared by tests that only ask. Nobody works on its batches."""
    return create_app(database=open_new_store(tmp_path_factory.mktemp("store")))


@pytest.fixture(scope="session")
def ask(app: FastAPI, run: Run) -> Ask:
    """Sends one request to `app`, or to another application."""
    return Ask(run, app)


@pytest.fixture(scope="session")
def score(ask: Ask) -> Score:
    """Has an application score a request."""
    return lambda app, given, **headers: ask("POST", "/v1/score", given, app=app, headers=JSON | headers)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    """A store without rows, up to date."""
    database = open_new_store(tmp_path)
    yield database
    database.close()
