"""What the store puts into the work queue, within the transaction that makes it due."""

from __future__ import annotations

from typing import Protocol

import sqlalchemy as sa


class Queue(Protocol):
    """The queue that workers take from. An entry takes effect when its transaction commits, or not at all."""

    def enqueue_chunk(
        self,
        connection: sa.Connection,
        batch: str,
        number: int,
        *,
        generation: int = 0,
        delay: float = 0.0,
        ahead: int = 0,
    ) -> None:
        """Enqueue a chunk, due in `delay` seconds. The same generation of a chunk is enqueued once only.

        `ahead`: how many batches of the same tenant came before; batches of others take turns in between.
        """
        ...

    def enqueue_finish(self, connection: sa.Connection, batch: str) -> None:
        """Enqueue the end of a batch: none of it is under way any more."""
        ...

    def enqueue_notice(self, connection: sa.Connection, batch: str, *, attempt: int = 1, delay: float = 0.0) -> None:
        """Enqueue a notice that a batch has ended, due in `delay` seconds."""
        ...
