"""Decide when a worker polls the engine's queues: as soon as something is waiting there, and not before.

One poll by the engine runs several statements, and polling three queues ten times a second would cost an idle worker 5 % of a
core. So one small query covers all queues, and rings the bell of each that has work for which the worker has room. It is a
query rather than a PostgreSQL notification because it also works on SQLite, passes every pooler, and locks nothing on commit.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping

import sqlalchemy as sa

from service.store.database import Database

LOG = logging.getLogger("callgrade.batches")

POLL_S = 0.1
"""Seconds between queries."""

FALLBACK_POLL_S = 5.0
"""Seconds after which the engine polls a queue whose bell was not rung."""


class Bell:
    """Replaces the stop event that the engine's polling loop of one queue waits for."""

    def __init__(self) -> None:
        self._rung = threading.Event()
        self._over = False

    def ring(self) -> None:
        """Wake the loop: the queue has work."""
        self._rung.set()

    def end(self) -> None:
        """Stop the loop."""
        self._over = True
        self._rung.set()

    def is_set(self) -> bool:
        """Whether the loop must stop."""
        return self._over

    def wait(self, timeout: float) -> bool:
        """Wait until the bell rings, or FALLBACK_POLL_S passes; return whether to stop. Ignores the engine's timeout."""
        del timeout
        self._rung.wait(FALLBACK_POLL_S)
        self._rung.clear()
        return self._over


class Bells:
    """The bells of several queues, and the threads that poll them."""

    def __init__(
        self, database: Database, loops: Mapping[str, Callable[[Bell], None]], has_room: Callable[[str], bool]
    ) -> None:
        """`loops`: by queue, the loop to run with its bell; `has_room`: whether the worker can start more work from a queue."""
        self._database = database
        self._has_room = has_room
        self._bells = {queue: Bell() for queue in loops}
        self._query = _build_query(database, loops)
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=loop, args=(self._bells[queue],), name=f"queue {queue}", daemon=True)
            for queue, loop in loops.items()
        ]
        self._threads.append(threading.Thread(target=self._watch, name="bells", daemon=True))

    def start(self) -> None:
        """Start all threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the loops, and wait for their threads."""
        self._over.set()
        for bell in self._bells.values():
            bell.end()
        for thread in self._threads:
            thread.join(timeout=10.0)

    def _watch(self) -> None:
        while not self._over.wait(POLL_S):
            try:
                self._poll()
            except Exception:  # the database is away and will come back
                LOG.debug("the queues were not looked at", exc_info=True)

    def _poll(self) -> None:
        with self._database.read() as connection:
            answers = connection.execute(self._query).one()
        for (queue, bell), waits in zip(self._bells.items(), answers, strict=True):
            if waits and self._has_room(queue):
                bell.ring()


def _build_query(database: Database, queues: Iterable[str]) -> sa.TextClause:
    """Build the query that tells, for each queue, whether something waits; worded so that the engine's index serves it."""
    table = "workflow_status" if database.is_sqlite else "dbos.workflow_status"
    some = f"SELECT 1 FROM {table} WHERE status = 'ENQUEUED' AND status IN ('ENQUEUED', 'PENDING')"  # noqa: S608 (names of ours)
    return sa.text("SELECT " + ", ".join(f"EXISTS ({some} AND queue_name = '{queue}')" for queue in queues))
