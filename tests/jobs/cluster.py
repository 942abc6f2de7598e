"""A PostgreSQL server of a test's own, which it may stop and start."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

DEBIAN = Path("/usr/lib/postgresql")


class Cluster:
    """A server in a folder."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._data = folder / "data"
        self._user = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root
        with socket.create_server(("127.0.0.1", 0)) as found:
            self._port: int = found.getsockname()[1]
        if self._user:
            shutil.chown(folder, self._user)
        self._run("initdb", "--auth=trust", "--username=postgres", "--no-sync", f"--pgdata={self._data}")
        self._options = f"-h 127.0.0.1 -p {self._port} -k {folder}"

    @property
    def url(self) -> str:
        """The address of its database."""
        return f"postgresql+psycopg://postgres@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        """Starts it, and waits until it takes connections."""
        self._control("start", "-o", self._options)

    def stop(self, mode: str) -> None:
        """Stops it: `fast` ends what is under way in order, `immediate` is a crash."""
        self._control("stop", "-m", mode)

    def _control(self, *command: str) -> None:
        self._run("pg_ctl", "-w", "-s", f"--pgdata={self._data}", f"--log={self._data}/server.log", *command)

    def _run(self, program: str, *command: str) -> None:
        subprocess.run(
            [self._programs / program, *command], user=self._user, check=True, cwd="/", stdout=subprocess.DEVNULL
        )


@contextmanager
def cluster() -> Generator[Cluster]:
    """A server that runs; the test is skipped where there is none to run."""
    found = shutil.which("initdb") or max(map(str, DEBIAN.glob("*/bin/initdb")), default=None)
    if found is None:
        pytest.skip("no PostgreSQL to start: initdb is not there")
    with tempfile.TemporaryDirectory() as folder:
        made = Cluster(Path(found).parent, Path(folder))
        made.start()
        try:
            yield made
        finally:
            made.stop("immediate")
