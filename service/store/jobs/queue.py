"""What is put into the queue of work, within the transaction that makes it due."""

from __future__ import annotations

from typing import Protocol

import sqlalchemy as sa


class Queue(Protocol):
    """The queue that workers take from. What is put in counts when the transaction is committed, or not at all."""

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
        """A chunk is to be worked on, in `delay` seconds. One of the same generation is put in once only.

        `ahead`: how many batches of the same tenant came before; those of others have their turns in between.
        """
        ...

    def enqueue_finish(self, connection: sa.Connection, batch: str) -> None:
        """A batch is to be ended: nothing of it is under way any more."""
        ...

    def enqueue_notice(self, connection: sa.Connection, batch: str, *, attempt: int = 1, delay: float = 0.0) -> None:
        """Whoever wants to be told of the end of a batch is to be told, in `delay` seconds."""
        ...
