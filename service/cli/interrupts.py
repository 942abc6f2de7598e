"""Deliver signals to a process that is waiting in an event loop."""

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
    """Let a signal wake the waiting loop; otherwise one that arrives just before the wait, or in another thread, goes unnoticed.

    Python records a signal wherever it arrives, but calls the handler only when the main thread runs again.
    """
    if current_thread() is not main_thread():
        yield
        return
    receiver, sender = socket.socketpair()
    with receiver, sender:
        receiver.setblocking(False)
        sender.setblocking(False)
        loop.add_reader(receiver, receiver.recv, 1024)
        before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(receiver)


def complete(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine like `asyncio.run`, but react to Ctrl-C at once, even while the loop is idle."""
    with asyncio.Runner() as runner, wake_by_signals(runner.get_loop()):
        return runner.run(work)
