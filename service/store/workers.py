"""Which worker processes are alive, by the database's clock: each sends a heartbeat every second."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from service.errors import SettingsError
from service.store.database import Database
from service.store.tables import WORKERS

SILENT_S = 10.0
"""Seconds without a heartbeat after which a worker counts as dead and others take over its work."""


SQLITE_WORKER = "sqlite"
"""The only worker of an SQLite store. The fixed name lets a restart go on with the work of the last run."""


def make_name() -> str:
    """Make a name for a worker that starts on this machine, or in this container. Two of one name would share work."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


def is_of_this_machine(name: str) -> bool:
    """Whether a worker of that name runs, or ran, on this machine."""
    return name == SQLITE_WORKER or name.rsplit("-", 2)[0] == socket.gethostname()


class WorkerRecord(NamedTuple):
    """A worker: its id, and the seconds since its last heartbeat."""

    id: str
    silent: float
    beat_at: float
    """When it last sent a heartbeat, by the database's clock."""


class Workers:
    """The workers that a database knows."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def register(self, worker: str) -> None:
        """Register the id of a process that starts. Raises SettingsError if it is taken: two of one id would share work."""
        now = self._database.now()
        try:
            with self._database.begin() as connection:
                connection.execute(sa.insert(WORKERS).values(id=worker, started_at=now, beat_at=now))
        except IntegrityError:
            raise SettingsError.at("CALLGRADE_DATABASE_URL", f"another worker is called {worker}") from None

    def beat(self, worker: str) -> None:
        """Record that a worker is alive. One that was taken for dead is registered again."""
        now = self._database.now()
        with self._database.begin() as connection:
            known = connection.execute(sa.update(WORKERS).where(WORKERS.c.id == worker).values(beat_at=now))
            if not known.rowcount:
                connection.execute(sa.insert(WORKERS).values(id=worker, started_at=now, beat_at=now))

    def list_workers(self) -> tuple[WorkerRecord, ...]:
        """List the registered workers, by their last heartbeat, the most recent first."""
        silent = (self._database.now() - WORKERS.c.beat_at).label("silent")
        with self._database.read() as connection:
            found = connection.execute(sa.select(WORKERS.c.id, silent, WORKERS.c.beat_at).order_by(silent))
            return tuple([WorkerRecord(row.id, row.silent, row.beat_at) for row in found])

    def forget(self, worker: str) -> None:
        """Unregister a worker: it has ended, or its work was taken over."""
        with self._database.begin() as connection:
            connection.execute(sa.delete(WORKERS).where(WORKERS.c.id == worker))

    def forget_dead(self, worker: WorkerRecord) -> None:
        """Unregister a dead worker, unless it has sent a heartbeat meanwhile."""
        with self._database.begin() as connection:
            known = WORKERS.c.id == worker.id, WORKERS.c.beat_at == worker.beat_at
            connection.execute(sa.delete(WORKERS).where(*known))


class WorkerWatch:
    """Tells dead workers from those whose heartbeats were not seen, by its own looks and its own clock alone.

    The database's clock may be changed, and nobody sends heartbeats while the database is away.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic, *, silent: float = SILENT_S) -> None:
        self._now = now
        self._silent = silent
        self._seen: dict[str, tuple[float, float, int]] = {}

    def find_dead(self, workers: Iterable[WorkerRecord]) -> list[WorkerRecord]:
        """Return the workers without a heartbeat for `silent` seconds, during which there were as many looks, one a second."""
        now, seen = self._now(), self._seen
        self._seen = {}
        found: list[WorkerRecord] = []
        for worker in workers:
            beat, since, looks = seen.get(worker.id, (worker.beat_at, now, 0))
            since, looks = (since, looks + 1) if beat == worker.beat_at else (now, 0)
            self._seen[worker.id] = (worker.beat_at, since, looks)
            if now - since > self._silent and looks > 0.8 * self._silent:
                found.append(worker)
        return found
