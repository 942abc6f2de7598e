"""The worker that `callgrade serve` starts beside itself: a process of its own, so that batches cost requests no time."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

LOG = logging.getLogger("callgrade.serve")

LONGEST = 30.0
"""Seconds between a worker's end and the next start, at most."""


class Supervisor:
    """Keeps one worker running: starts it again, later each time.

    Also where there is one already that SQLite cannot share: it may be that of a server that was killed, and about to end.
    """

    def __init__(self, *, log_level: str, grace: float) -> None:
        self._command = [
            sys.executable,
            "-P",
            "-m",
            "service.cli",
            "worker",
            "--beside",
            "--log-level",
            log_level.lower(),
        ]
        self._grace = grace
        self._over = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name="worker", daemon=True)

    def start(self) -> None:
        """Starts the worker."""
        self._thread.start()

    def stop_with(self, stopping: threading.Event) -> None:
        """Waits for the event, and tells the worker to end: it has the same time as those who are served."""
        stopping.wait()
        self._over.set()
        if self._process is not None:
            self._process.terminate()

    def stop(self) -> None:
        """Ends it: what is under way may be finished within the grace."""
        self._over.set()
        if self._process is not None:
            self._process.terminate()
        self._thread.join(self._grace + 5.0)
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def _keep(self) -> None:
        wait = 1.0
        while not self._over.is_set():
            start = time.monotonic()
            # It ends when its standard input does: also where this process is killed and can tell it nothing.
            with subprocess.Popen(self._command, stdin=subprocess.PIPE) as self._process:  # noqa: S603 (our own command)
                if self._over.is_set():  # told to stop in the moment of the start
                    self._process.terminate()
                code = self._process.wait()
            if self._over.is_set():
                return
            LOG.error("the worker has ended", extra={"fields": {"code": code, "batches": "wait for another one"}})
            wait = 1.0 if time.monotonic() - start > LONGEST else wait
            self._over.wait(wait)
            wait = min(LONGEST, wait * 2)


@contextmanager
def worker_beside(*, log_level: str, grace: float, wanted: bool, stopping: threading.Event) -> Generator[None]:
    """A worker for as long as the block lasts, where one is wanted. It is told to end as soon as `stopping` is set."""
    if not wanted:
        yield
        return
    supervisor = Supervisor(log_level=log_level, grace=grace)
    supervisor.start()
    threading.Thread(target=supervisor.stop_with, args=(stopping,), name="worker-end", daemon=True).start()
    try:
        yield
    finally:
        supervisor.stop()
