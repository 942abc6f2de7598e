"""Which worker processes are alive: each counts a beat a second, and the others watch whether the count stands still."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import sqlalchemy as sa

from service.store.database import Database, insert_new
from service.store.jobs.closing import close_if_over
from service.store.tables import BATCH_USAGE, CHUNKS, WORKERS

SILENT_S = 10.0
"""Seconds without a beat after which a worker counts as dead, and its chunks are ready again."""


def make_name() -> str:
    """Make a name for a worker that starts on this machine, or in this container."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


def is_of_this_machine(name: str) -> bool:
    """Whether a worker of that name runs, or ran, on this machine."""
    return name.rsplit("-", 2)[0] == socket.gethostname()


class WorkerRecord(NamedTuple):
    """A worker: its id, its beats so far, and the seconds since the last one by the database's clock."""

    id: str
    beats: int
    silent: float = 0.0


class Workers:
    """The workers that a database knows."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def beat(self, worker: str) -> None:
        """Count a beat. The first one registers the worker, also one that was taken for dead."""
        with self._database.begin() as connection:
            count_beat(connection, worker, self._database.now())

    def list_workers(self) -> tuple[WorkerRecord, ...]:
        """List the registered workers, by their last beat, the most recent first."""
        silent = (self._database.now() - WORKERS.c.beat_at).label("silent")
        chosen = sa.select(WORKERS.c.id, WORKERS.c.beats, silent).order_by(silent)
        return tuple([WorkerRecord(**row) for row in self._database.read_rows(chosen)])

    def reclaim(self, worker: WorkerRecord) -> int | None:
        """Give back the chunks of a dead worker, and count what it had reserved as possibly spent; return how many.

        None if it has beaten since, so that it is not dead.
        """
        with self._database.begin() as connection:
            connection.execute(sa.delete(WORKERS).where(WORKERS.c.id == worker.id, WORKERS.c.beats == worker.beats))
            if connection.execute(sa.select(WORKERS.c.id).where(WORKERS.c.id == worker.id)).one_or_none():
                return None
            return _give_back(connection, worker.id, deaths=1)

    def leave(self, worker: str) -> int:
        """Unregister a worker that ends, and give back what it still owns; return how many chunks."""
        with self._database.begin() as connection:
            connection.execute(sa.delete(WORKERS).where(WORKERS.c.id == worker))
            return _give_back(connection, worker, deaths=0)


def count_beat(connection: sa.Connection, worker: str, now: sa.ColumnElement[float]) -> None:
    """Count a beat in the transaction of a claim: so whoever owns something is registered, and is found if it dies."""
    insert_new(connection, WORKERS, {"id": worker})
    beaten = WORKERS.update().where(WORKERS.c.id == worker)
    connection.execute(beaten.values(beats=WORKERS.c.beats + 1, beat_at=now))


def _give_back(connection: sa.Connection, worker: str, *, deaths: int) -> int:
    own = (CHUNKS.c.owner == worker, CHUNKS.c.state == "running")
    in_order = sa.select(CHUNKS.c.batch, CHUNKS.c.first).order_by(CHUNKS.c.batch, CHUNKS.c.first)
    owned = connection.execute(in_order.where(*own).with_for_update()).all()
    ready = {"state": "ready", "owner": None, "due_at": 0.0, "deaths": CHUNKS.c.deaths + deaths}
    connection.execute(sa.update(CHUNKS).where(*own).values(ready))
    for batch in sorted({row.batch for row in owned if row.first >= 0}):
        close_if_over(connection, batch)
    usage = BATCH_USAGE.c
    spent = {"questions": usage.questions + usage.held_questions, "uncertain_usd": usage.uncertain_usd + usage.held_usd}
    held = (usage.owner == worker, (usage.held_questions > 0) | (usage.held_usd > 0))
    connection.execute(sa.update(BATCH_USAGE).where(*held).values(**spent, held_questions=0, held_usd=0.0))
    return len(owned)


class WorkerWatch:
    """Tells dead workers from those whose beats were not seen, by its own looks and its own clock alone.

    The database's clock may be changed, and nobody beats while the database is away.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic, *, silent: float = SILENT_S) -> None:
        self._now = now
        self._silent = silent
        self._seen: dict[str, tuple[int, float, int]] = {}

    def find_dead(self, workers: Iterable[WorkerRecord]) -> list[WorkerRecord]:
        """Return the workers without a beat for `silent` seconds, during which there were as many looks, one a second."""
        now, seen = self._now(), self._seen
        self._seen = {}
        found: list[WorkerRecord] = []
        for worker in workers:
            beats, since, looks = seen.get(worker.id, (worker.beats, now, 0))
            since, looks = (since, looks + 1) if beats == worker.beats else (now, 0)
            self._seen[worker.id] = (worker.beats, since, looks)
            if now - since > self._silent and looks > 0.8 * self._silent:
                found.append(worker)
        return found
