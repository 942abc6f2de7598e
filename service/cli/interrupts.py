"""Signals to a process that waits in an event loop."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any, TypeVar

T = TypeVar("T")


@contextmanager
def wake_by_signals(loop: asyncio.AbstractEventLoop) -> Generator[None]:
    """A signal wakes the loop that waits: else one that comes just before the wait, or to another thread, is not looked at.

    Python notes a signal wherever it arrives, and calls its handler only when the main thread goes on.
    """
    if current_thread() is not main_thread():
        yield
        return
    heard, told = socket.socketpair()
    with heard, told:
        heard.setblocking(False)
        told.setblocking(False)
        loop.add_reader(heard, heard.recv, 1024)
        before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(heard)


def complete(work: Coroutine[Any, Any, T]) -> T:
    """What `asyncio.run` does, and ctrl-C is heard however quiet it is."""
    with asyncio.Runner() as runner, wake_by_signals(runner.get_loop()):
        return runner.run(work)
