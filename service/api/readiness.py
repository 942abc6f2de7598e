"""Readiness: a process that says it is ready has loaded what the first request would wait for, and is not about to end."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from threading import Event
from types import FrameType

from starlette.exceptions import HTTPException

LOG = logging.getLogger("callgrade.api")

CHECK_WAIT_S = 1.0
"""Seconds that a readiness check waits for the answer to change."""

Load = Callable[[], Awaitable[object]]


class Readiness:
    """What a process loads, by name. A load that failed is tried again at the next check.

    What is loaded stays loaded: a database that goes away later makes no process unready, because no other would have
    it either.
    """

    def __init__(self, loads: Mapping[str, Load], stopping: Event) -> None:
        self._missing = dict(loads)
        self._stopping = stopping
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self) -> None:
        """Start to load what is missing."""
        for name in self._missing.keys() - self._tasks.keys():
            self._tasks[name] = asyncio.get_running_loop().create_task(self._load(name))

    async def check(self) -> None:
        """Raise HTTPException 503 if something is missing, or the process is about to end."""
        if self._stopping.is_set():
            raise HTTPException(503, "the service is stopping")
        self.begin()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=CHECK_WAIT_S)
        if self._missing:
            raise HTTPException(503, f"not loaded yet: {', '.join(sorted(self._missing))}", {"retry-after": "1"})

    def end(self) -> None:
        """Stop loading; nobody waits any more."""
        for task in self._tasks.values():
            task.cancel()

    async def _load(self, name: str) -> None:
        try:
            await self._missing[name]()
            del self._missing[name]
        except Exception as error:  # noqa: BLE001 (any error makes the process unready, and it says why)
            LOG.warning("not loaded", extra={"fields": {"what": name, "why": str(error) or type(error).__name__}})
        finally:
            del self._tasks[name]


SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def watch_stop_signals(stopping: Event) -> Generator[None]:
    """Within the block, a stop signal sets the event and then does what it did before.

    Outside the main thread no signals arrive, and this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def note_signal(number: int, frame: FrameType | None) -> None:
        stopping.set()
        earlier = before[signal.Signals(number)]
        if callable(earlier):
            earlier(number, frame)

    for number in SIGNALS:
        signal.signal(number, note_signal)
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
