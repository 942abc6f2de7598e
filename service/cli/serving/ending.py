"""End a serving process in time, whatever its threads are doing."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable

from service.cli.exits import ExitCode

LOG = logging.getLogger("callgrade.serve")

CLOSING_S = 3.0
"""Seconds for closing connections and files, after the grace period of requests under way."""


class StopSignal:
    """Records whether this process was told to stop since it began to listen.

    A signal raises KeyboardInterrupt, but Python drops one that is raised during garbage collection. So a server checks here
    once it handles signals itself.
    """

    received = False

    def listen(self) -> None:
        """Make SIGTERM, and SIGINT unless it is ignored, interrupt this process."""
        signal.signal(signal.SIGTERM, self._interrupt)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._interrupt)

    def _interrupt(self, *_: object) -> None:
        self.received = True
        raise KeyboardInterrupt


def force_exit_after(stopping: threading.Event, *, grace: float, last: Callable[[], None] = lambda: None) -> None:
    """Exit the process `grace` seconds and a few more after `stopping` is set, if it still runs; call `last` before.

    A thread cannot be cancelled, and Python waits for all threads at exit, so one long trace would delay it.
    """
    threading.Thread(target=_end, args=(stopping, grace + CLOSING_S, last), name="ending", daemon=True).start()


def _end(stopping: threading.Event, seconds: float, last: Callable[[], None]) -> None:
    stopping.wait()
    threading.Event().wait(seconds)
    LOG.error("ended before all was done", extra={"fields": {"seconds": seconds}})
    last()
    os._exit(ExitCode.INTERNAL)
