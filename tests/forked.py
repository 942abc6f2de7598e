"""Processes forked from one that has loaded what takes long: each begins at once, and is a process like any other.

What starts them is one process, which loads `tests.loaded`, starts no thread and does nothing else. Where several processes
test (pytest-xdist) the one that they work for starts it, while they collect, and they all `join` it: to load takes 5 s.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver, get_context, resource_tracker
from pathlib import Path
from signal import SIGKILL, SIGTERM, Signals
from typing import NamedTuple, TypeAlias

FORKING = get_context("forkserver")
FORKING.set_forkserver_preload(["tests.loaded"])


def share() -> str:
    """Starts the process that forks, unless it runs. Where it is, for others to join."""
    forkserver.ensure_running()
    return str(forkserver._forkserver._forkserver_address)


def join(address: str) -> None:
    """Has processes of this one forked there. They live no longer than before: those who asked for them end them."""
    server = forkserver._forkserver
    server._forkserver_address = address
    server._forkserver_alive_fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    server.ensure_running = resource_tracker.ensure_running


def run_module(module: str, args: Sequence[str]) -> None:
    """Does in this process what `python -m module` does."""
    sys.argv = [module, *args]
    sys.modules.pop(module, None)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


class Command(NamedTuple):
    """What `python -m module` runs, with its environment, and where its output and its errors go."""

    module: str
    args: tuple[str, ...]
    environ: Mapping[str, str]
    log: Path

    def run(self, python: str) -> None:
        """Runs it in this process. `python`: what it starts as a Python of its own."""
        sys.executable = python
        os.environ.clear()
        os.environ.update(self.environ)
        with self.log.open("ab") as log:
            for stream in (sys.stdout, sys.stderr):
                os.dup2(log.fileno(), stream.fileno())
        run_module(self.module, self.args)

    def anew(self) -> subprocess.Popen[bytes]:
        """Runs it in a process that loads all by itself."""
        with self.log.open("wb") as log:
            called = [sys.executable, "-m", self.module, *self.args]
            return subprocess.Popen(called, env=self.environ, stdout=log, stderr=log)


class Forked:
    """A process that runs a command."""

    def __init__(self, command: Command) -> None:
        from tests.launchers import find_launchers  # it forks likewise: it needs this module

        command.log.write_bytes(b"")
        self._process = FORKING.Process(target=command.run, args=(str(find_launchers() / "python"),))
        self._process.start()

    @property
    def pid(self) -> int:
        """Its number."""
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended; TimeoutError where it does not."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise TimeoutError
        return self._process.exitcode

    def send_signal(self, number: Signals) -> None:
        """Sends a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Asks it to end."""
        self.send_signal(SIGTERM)

    def kill(self) -> None:
        """Ends it."""
        self.send_signal(SIGKILL)


Process: TypeAlias = "Forked | subprocess.Popen[bytes]"
