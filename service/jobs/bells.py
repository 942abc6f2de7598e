"""When a worker looks into the engine's queues: as soon as something waits there, and not before.

A look of the engine's own is several statements, and three queues ten times a second would cost an idle worker 5 % of a core.
So one small question is asked for all of them, and those are rung that have work which the worker has room for. It is a
question and not a notification of PostgreSQL, for it serves SQLite too, passes every pooler, and locks nothing on commit.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping

import sqlalchemy as sa

from service.store.database import Database

LOG = logging.getLogger("callgrade.batches")

LOOK_S = 0.1
"""Seconds between questions."""

UNASKED_S = 5.0
"""Seconds after which the engine looks into a queue that was not rung."""


class Bell:
    """What the engine's loop over one queue waits for, in place of the event that ends it."""

    def __init__(self) -> None:
        self._rung = threading.Event()
        self._over = False

    def ring(self) -> None:
        """There is something in the queue."""
        self._rung.set()

    def end(self) -> None:
        """The loop is to end."""
        self._over = True
        self._rung.set()

    def is_set(self) -> bool:
        """Whether the loop is to end."""
        return self._over

    def wait(self, timeout: float) -> bool:
        """Waits until it is rung, or long enough; whether the loop is to end. `timeout` is the engine's, and is no matter."""
        del timeout
        self._rung.wait(UNASKED_S)
        self._rung.clear()
        return self._over


class Bells:
    """The bells of some queues, and the threads over them."""

    def __init__(
        self, database: Database, loops: Mapping[str, Callable[[Bell], None]], has_room: Callable[[str], bool]
    ) -> None:
        """`loops`: by queue what looks into it when its bell rings; `has_room`: whether more of it could be begun."""
        self._database = database
        self._has_room = has_room
        self._bells = {queue: Bell() for queue in loops}
        self._question = _build_question(database, loops)
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=loop, args=(self._bells[queue],), name=f"queue {queue}", daemon=True)
            for queue, loop in loops.items()
        ]
        self._threads.append(threading.Thread(target=self._watch, name="bells", daemon=True))

    def start(self) -> None:
        """Begins to look."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends the loops, and waits for them."""
        self._over.set()
        for bell in self._bells.values():
            bell.end()
        for thread in self._threads:
            thread.join(timeout=10.0)

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            try:
                self._ask()
            except Exception:  # the database is away, and will be back
                LOG.debug("the queues were not looked at", exc_info=True)

    def _ask(self) -> None:
        with self._database.read() as connection:
            answers = connection.execute(self._question).one()
        for (queue, bell), waits in zip(self._bells.items(), answers, strict=True):
            if waits and self._has_room(queue):
                bell.ring()


def _build_question(database: Database, queues: Iterable[str]) -> sa.TextClause:
    """Whether something waits in each queue, in words for which the engine has an index."""
    table = "workflow_status" if database.is_sqlite else "dbos.workflow_status"
    some = f"SELECT 1 FROM {table} WHERE status = 'ENQUEUED' AND status IN ('ENQUEUED', 'PENDING')"  # noqa: S608 (names of ours)
    return sa.text("SELECT " + ", ".join(f"EXISTS ({some} AND queue_name = '{queue}')" for queue in queues))
