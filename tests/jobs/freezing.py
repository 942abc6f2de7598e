"""A worker that freezes once, as by SIGSTOP: FREEZE=lease, when it has taken a chunk out of the queue and not yet leased it;
FREEZE=record, within the transaction that records.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence

import sqlalchemy as sa

from service.cli.serving.worker import work
from service.logs.lines import configure
from service.settings import Settings
from service.store.jobs.chunks import Chunks
from service.store.jobs.leases import ChunkId, LeasedChunk, OutcomeRow, OutcomeRows
from service.wiring import prepare_database
from tests.jobs.plain import engine_of

LOG = "frozen"


class Freezing(Chunks):
    """Chunks with a moment that takes as long as somebody likes."""

    moment = os.environ.get("FREEZE", "")

    def lease(self, chunk: ChunkId, generation: int, *, attempts: int | None = None) -> LeasedChunk | None:
        """Leases a chunk."""
        self._pass("lease")
        return super().lease(chunk, generation, attempts=attempts)

    def _count(self, connection: sa.Connection, group: OutcomeRows, new: Sequence[OutcomeRow]) -> None:
        super()._count(connection, group, new)
        self._pass("record")

    def _pass(self, moment: str) -> None:
        if self.moment == moment:
            self.moment = ""
            print(LOG, flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)


if __name__ == "__main__":
    configure("INFO")
    settings = Settings.from_env(os.environ)
    asyncio.run(work(settings, prepare_database(settings), engine=engine_of(settings), build_chunks=Freezing))
