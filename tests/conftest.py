"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.faults.clock import Clock
from tests.faults.provider import Provider, serving

SHARED = Path(os.environ.get("CALLGRADE_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture
def clock() -> Clock:
    """Our clock; time passes only where somebody sleeps."""
    return Clock()


@pytest.fixture
def provider(clock: Clock) -> Iterator[Provider]:
    """A provider that notes when requests arrive, by our clock."""
    with serving(Provider(now=clock.now)) as server:
        yield server


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
        with Redis.from_url(url, socket_connect_timeout=1, socket_timeout=1) as client:
            client.ping()
    except RedisError as error:
        pytest.skip(f"no Redis for tests ({type(error).__name__}); CALLGRADE_TEST_REDIS names one")
    return url


SERVICES = ("needs_redis",)
"""Markers of tests that need a server, which CI has: there such a test may not skip."""


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
