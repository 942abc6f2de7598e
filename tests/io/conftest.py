"""A provider that goes wrong on request, a clock that stands still, and the one event loop that speaks to models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from service.io.model import disconnect
from tests.faults.clock import Clock
from tests.faults.provider import Provider, serving

Run = Callable[[Coroutine[Any, Any, Any]], Any]


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
def run() -> Iterator[Run]:
    """Runs a coroutine to its end, always in the same loop."""
    with asyncio.Runner() as runner:
        yield runner.run
        runner.run(disconnect())
