"""Fixtures shared by all tests."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import is_hypothesis_test, settings
from xdist.scheduler import LoadFileScheduling

from tests.bulk import WHOLE, examples
from tests.faults.clock import Clock
from tests.faults.provider import Provider, serving
from tests.forked import join, share
from tests.tables import fold

if TYPE_CHECKING:  # SQLAlchemy is a third of a second that few tests need
    from service.store.database import Database

# The first loads seconds' worth of what few tests need; the others would be kinds of every test that comes after.
collect_ignore = ["loaded.py", "data/extension"]

# A busy machine is no failure; what `make test` tries is the same each time, `make chaos` looks for more.
settings.register_profile("callgrade", deadline=None, max_examples=examples(30), derandomize=not WHOLE)
settings.load_profile("callgrade")

SHARED = Path(os.environ.get("CALLGRADE_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))

# As the commands have it, for what runs without them: it counts where numpy is not loaded yet, as here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(scope="session")
def run() -> Iterator[Run]:
    """Runs a coroutine to its end, always in the same loop: the one that speaks to models."""
    from service.asking.model import disconnect

    with asyncio.Runner() as runner:
        yield runner.run
        runner.run(disconnect())


@pytest.fixture
def clock() -> Clock:
    """Our clock; time passes only where somebody sleeps."""
    return Clock()


@pytest.fixture
def provider(clock: Clock) -> Iterator[Provider]:
    """A provider that notes when requests arrive, by our clock."""
    with serving(Provider(now=clock.now)) as server:
        yield server


@pytest.fixture
def forked_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process starts as a Python of its own is forked from one that has loaded it."""
    from tests.launchers import find_launchers

    monkeypatch.setattr(sys, "executable", str(find_launchers() / "python"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real traces and labels; skips where it does not stand beside the project."""
    if not SHARED.is_dir():
        pytest.skip(f"no packaged data at {SHARED}; CALLGRADE_SHARED_DATA names another place")
    return SHARED


@pytest.fixture(scope="session")
def redis_url() -> str:
    """A Redis to test with; its tests are marked `needs_redis`, and keep to a prefix of their own."""
    from redis import Redis, RedisError  # a third of a second that few need

    url = os.environ.get("CALLGRADE_TEST_REDIS", "redis://127.0.0.1:6379")
    try:
        with Redis.from_url(url, socket_connect_timeout=10, socket_timeout=10) as client:
            client.ping()
    except RedisError as error:
        pytest.skip(f"no Redis for tests ({type(error).__name__}); CALLGRADE_TEST_REDIS names one")
    return url


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """An empty database on the PostgreSQL to test with, dropped at the end; its tests are marked `needs_postgres`."""
    with _new_postgres() as url:
        yield url


@pytest.fixture
def own_postgres_url() -> Iterator[str]:
    """Likewise, for one test that leaves it as no other could use it."""
    with _new_postgres() as url:
        yield url


@contextmanager
def _new_postgres() -> Generator[str]:
    import psycopg
    from psycopg import sql

    server = os.environ.get("CALLGRADE_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432")
    name = f"callgrade_test_{token_hex(6)}"  # its own for every run and worker
    try:
        connection = psycopg.connect(server, dbname="postgres", connect_timeout=10, autocommit=True)
    except psycopg.OperationalError as error:
        pytest.skip(f"no PostgreSQL for tests ({type(error).__name__}); CALLGRADE_TEST_POSTGRES names one")
    with connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield _named(server, name)
        finally:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _named(server: str, name: str) -> str:
    """The URL, for SQLAlchemy, of one database of a server."""
    parts = urlsplit(server)
    return urlunsplit(parts._replace(scheme="postgresql+psycopg", path=f"/{name}"))


@pytest.fixture(scope="session")
def _migrated_postgres(postgres_url: str) -> Iterator[Database]:
    from service.store.database import open_database

    database = open_database(postgres_url)
    database.migrate()
    yield database
    database.close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.needs_postgres)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An up-to-date database without rows: each test that asks for it runs on SQLite and on PostgreSQL."""
    if request.param == "postgres":
        yield _emptied(request.getfixturevalue("_migrated_postgres"))
        return
    from tests.stores import open_new_store

    database = open_new_store(tmp_path)
    yield database
    database.close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.needs_postgres)])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where one test alone keeps what its worker processes share: each that asks for it runs on SQLite and on PostgreSQL."""
    if request.param == "postgres":
        return request.getfixturevalue("own_postgres_url")
    return f"sqlite:///{tmp_path / 'store.db'}"


def _emptied(database: Database) -> Database:
    from service.store.tables import METADATA

    with database.begin() as connection:
        for table in reversed(METADATA.sorted_tables):
            connection.execute(table.delete())
    return database


@pytest.fixture(scope="module", autouse=True)
def _settled_heap() -> None:
    """What stays is not looked through for garbage: with all that tests load, each look took a second."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Nor is what a test was the first to load, such as litellm: each look through that takes half a second."""
    loaded = len(sys.modules)
    done = yield
    if len(sys.modules) - loaded > 100:
        gc.freeze()
    return done


SERVICES = ("needs_redis", "needs_postgres", "needs_browser")
"""Markers of tests that need what CI has, a server or a browser: there such a test may not skip."""


SLOW = (
    "jobs/test_takeover.py",
    "jobs/test_worker.py",
    "docs/test_set_ups.py",
    "browser",
    "cli/test_cli_process.py",
    "real/test_evidence_labels.py",
    "jobs",
    "api/test_readiness.py",
    "api/test_fairness.py",
    "frozen",
    "api/test_contract.py",
    "api/test_judged.py",
    "core/test_laws.py",
    "real",
    "calibration",
    "api",
    "cli",
    "asking",
    "docs",
    "packaging",
    "store",
    "outbound",
)
"""Where the long tests are, the longest first: those that begin last are short, so that no process is left to wait.

Those that wait most come before those: the type checker runs beside them.
"""


GROUPS = {
    **dict.fromkeys(
        [f"tests/jobs/test_{name}.py" for name in ("takeover", "crashes", "served")],
        "takeover",
    ),
    **dict.fromkeys(
        [
            f"tests/browser/test_{name}.py"
            for name in ("pages", "docs_page", "foreign_page", "label_page", "trace_page")
        ],
        "browser",
    ),
}
"""Files whose tests wait for each other's processes, or have a browser in common: they run one after the other."""


def pytest_configure(config: pytest.Config) -> None:
    """A shell that starts tests in the background has them, and all that they start, ignore SIGINT: here it is heard."""
    config.pluginmanager.register(ExamplesOnly())
    if address := getattr(config, "workerinput", {}).get("forked at"):
        join(address)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """Three processes for two cores: a third of the time goes into waiting for processes, beats and timeouts."""
    return max(2, (os.cpu_count() or 1) * 3 // 2)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None]:
    """What is collected stays: to look through it for garbage while it grows took a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_xdist_setupnodes(specs: list[Any]) -> None:
    """Those that test are forked from the process that forks for them all: what they share is loaded once, and not by each."""
    if sys.version_info < (3, 14):  # from then on it asks for a password
        from tests.launchers import TESTER, find_launchers

        for spec in specs:
            spec.python = spec.python or str(find_launchers() / TESTER)


def pytest_configure_node(node: Any) -> None:
    """One process forks for all that test."""
    if sys.version_info < (3, 14):
        node.workerinput["forked at"] = share()


class ExamplesOnly:
    """Modules without an example are not loaded to look for some: in `service` too, hence no hook of this file's own."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        found = yield
        return [one for one in found if not isinstance(one, DoctestModule) or ">>>" in file_path.read_text("utf-8")]


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Thousands of rows are as many tests only where somebody asks for one."""
    made = yield
    return fold(made, collector.config) if isinstance(made, list) else made


class FileGroups(LoadFileScheduling):
    """Each file goes to one process, where its modules' fixtures are made once; and so do files that are a group."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return GROUPS.get(file, file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileGroups | None:
    """Files go to processes whole where `--dist loadfile` says so."""
    return FileGroups(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first.

    A property test is one that `make chaos` tries on more examples.
    """
    here = Path(__file__).parent
    places = [here / name for name in SLOW]
    turns = {file: _turn(file, places) for file in {item.path for item in items}}
    items.sort(key=lambda item: turns[item.path])
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("whole")


def _turn(file: Path, places: list[Path]) -> int:
    return next((turn for turn, place in enumerate(places) if file.is_relative_to(place)), len(places))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a test that skips although what it needs is at hand has failed."""
    report = yield
    if report.skipped and os.environ.get("CI") and (there := _at_hand(item)):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI although {there}: {report.longrepr}"
    return report


def _at_hand(item: pytest.Item) -> str:
    """Why the test had no reason to skip; empty if it may have had one."""
    if item.get_closest_marker("shared_data") and SHARED.is_dir():
        return f"{SHARED} is at hand"
    needed = next((name for name in SERVICES if item.get_closest_marker(name)), "")
    return f"CI has what {needed} asks for" if needed else ""
