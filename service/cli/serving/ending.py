"""The end of a process that serves: in time, whatever some thread of it is still at."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

from service.cli.exits import ExitCode

LOG = logging.getLogger("callgrade.serve")

CLOSING_S = 3.0
"""Seconds for letting go of connections and files, after the time that requests under way have."""


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
