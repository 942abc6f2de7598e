"""Supervise workers in other processes: beside `callgrade serve`, and on the other cores beside a worker."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

LOG = logging.getLogger("callgrade.serve")

MAX_RESTART_DELAY_S = 30.0
"""The longest delay between a worker's end and its next start, in seconds."""


class Supervisor:
    """Keeps one worker running: restarts it with growing delays."""

    def __init__(self, *options: str, log_level: str, grace: float) -> None:
        """`options`: further ones of `callgrade worker`."""
        program = (sys.executable, "-P", "-m", "service.cli", "worker", "--beside", "--log-level", log_level.lower())
        self._command = [*program, *options]
        self._grace = grace
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep_running, name="worker", daemon=True)

    def start(self) -> None:
        """Start the worker."""
        self._thread.start()

    def stop_with(self, stopping: threading.Event) -> None:
        """Wait for the event, then tell the worker to end, so that it has the same grace period as requests."""
        stopping.wait()
        self._stopping.set()
        if self._process is not None:
            self._process.terminate()

    def stop(self) -> None:
        """End the worker, which may finish what is under way within the grace period."""
        self._stopping.set()
        if self._process is not None:
            self._process.terminate()
        self._thread.join(self._grace + 5.0)
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def _keep_running(self) -> None:
        wait = 1.0
        while not self._stopping.is_set():
            start = time.monotonic()
            # The worker ends when its standard input ends, even if this process is killed and cannot tell it to.
            with subprocess.Popen(self._command, stdin=subprocess.PIPE) as self._process:  # noqa: S603 (our own command)
                if self._stopping.is_set():  # told to stop while starting
                    self._process.terminate()
                code = self._process.wait()
            if self._stopping.is_set():
                return
            LOG.error("the worker has ended", extra={"fields": {"code": code, "batches": "wait for another one"}})
            wait = 1.0 if time.monotonic() - start > MAX_RESTART_DELAY_S else wait
            self._stopping.wait(wait)
            wait = min(MAX_RESTART_DELAY_S, wait * 2)


@contextmanager
def supervised_workers(
    number: int, *options: str, log_level: str, grace: float, stopping: threading.Event
) -> Generator[None]:
    """Run so many workers during the block. They are told to end as soon as `stopping` is set."""
    supervisors = [Supervisor(*options, log_level=log_level, grace=grace) for _ in range(number)]
    for one in supervisors:
        one.start()
        threading.Thread(target=one.stop_with, args=(stopping,), name="worker-end", daemon=True).start()
    try:
        yield
    finally:
        for one in supervisors:
            one.stop()
