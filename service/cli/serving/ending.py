"""The end of a process that serves: in time, whatever some thread of it is still at."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable

from service.cli.exits import ExitCode

LOG = logging.getLogger("callgrade.serve")

CLOSING_S = 3.0
"""Seconds for letting go of connections and files, after the time that requests under way have."""


class EndNotice:
    """Whether this process was told to end since it began to listen for that.

    A signal interrupts whatever is under way; but where that is a look for garbage, Python drops the interrupt. Whoever goes on
    to serve asks here once signals come to it.
    """

    given = False

    def listen(self) -> None:
        """Has SIGTERM, and SIGINT unless it is ignored, interrupt this process."""
        signal.signal(signal.SIGTERM, self._interrupt)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._interrupt)

    def _interrupt(self, *_: object) -> None:
        self.given = True
        raise KeyboardInterrupt


def end_by(stopping: threading.Event, *, grace: float, last: Callable[[], None] = lambda: None) -> None:
    """Once `stopping` is set the process ends within `grace` seconds and a few more; at the latest then, after `last`.

    A thread cannot be cancelled, and Python waits for all of them at its end: one long trace would hold it up.
    """
    threading.Thread(target=_end, args=(stopping, grace + CLOSING_S, last), name="ending", daemon=True).start()


def _end(stopping: threading.Event, seconds: float, last: Callable[[], None]) -> None:
    stopping.wait()
    threading.Event().wait(seconds)
    LOG.error("ended before all was done", extra={"fields": {"seconds": seconds}})
    last()
    os._exit(ExitCode.INTERNAL)
