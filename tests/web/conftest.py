"""A site with a run, and somebody who visits it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from service.api.app import create_app
from service.settings import Settings
from service.store.database import Database
from service.web.app import add_pages
from tests.stores import open_new_store
from tests.web.site import TOKEN, Visitor, build_request, fill

SIZE = 60


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A store for the tests of a module."""
    found = open_new_store(tmp_path_factory.mktemp("store"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture(scope="module")
def visit(database: Database, runner: asyncio.Runner) -> Callable[[], Visitor]:
    """Makes visitors of one site, none of whom has signed in."""
    app = add_pages(create_app(Settings(), database=database), token=TOKEN)
    return lambda: Visitor(app, runner)


@pytest.fixture(scope="module")
def visitor(visit: Callable[[], Visitor]) -> Visitor:
    """One who has signed in with the local token."""
    found = visit()
    assert found.enter().status == 303
    return found


@pytest.fixture(scope="module")
def batch(database: Database) -> str:
    """A run that has ended."""
    return fill(database, [build_request(n) for n in range(SIZE)], name="nightly")
