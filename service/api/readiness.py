"""Ready means ready: what the first request would wait for is loaded before one is sent here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from threading import Event

from starlette.exceptions import HTTPException

LOG = logging.getLogger("callgrade.api")

PATIENCE = 1.0
"""Seconds for which somebody who asks is kept waiting for the answer to change."""

Load = Callable[[], Awaitable[object]]


class Readiness:
    """What a process loads, by what it is called. What has failed is tried again when somebody asks.

    What is loaded stays so: a database that goes away later makes nobody less ready, for others would not have it either.
    """

    def __init__(self, loads: Mapping[str, Load], stopping: Event) -> None:
        self._missing = dict(loads)
        self._stopping = stopping
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self) -> None:
        """Begins to load what is missing."""
        for name in self._missing.keys() - self._tasks.keys():
            self._tasks[name] = asyncio.get_running_loop().create_task(self._load(name))

    async def check(self) -> None:
        """HTTPException 503 where something is missing, or the process is about to end."""
        if self._stopping.is_set():
            raise HTTPException(503, "the service stops")
        self.begin()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=PATIENCE)
        if self._missing:
            raise HTTPException(503, f"not loaded yet: {', '.join(sorted(self._missing))}", {"retry-after": "1"})

    def end(self) -> None:
        """Nobody waits any more."""
        for task in self._tasks.values():
            task.cancel()

    async def _load(self, name: str) -> None:
        try:
            await self._missing[name]()
            del self._missing[name]
        except Exception as error:  # noqa: BLE001 (whatever it is, the process is not ready and says why)
            LOG.warning("not loaded", extra={"fields": {"what": name, "why": str(error) or type(error).__name__}})
        finally:
            del self._tasks[name]
