"""The one event loop that speaks to models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from service.io.model import disconnect

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(scope="session")
def run() -> Iterator[Run]:
    """Runs a coroutine to its end, always in the same loop."""
    with asyncio.Runner() as runner:
        yield runner.run
        runner.run(disconnect())
