"""A worker that freezes once, as by SIGSTOP: FREEZE=claim, when it has claimed a chunk and not yet begun it; FREEZE=record,
within the transaction that records, when it knows that the chunk is its own and has written outcomes.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Literal

import sqlalchemy as sa

from service.cli.working import work
from service.logs.lines import configure
from service.settings import Settings
from service.store.jobs.chunks import Chunks
from service.store.jobs.leases import ClaimedChunk, OutcomeRow
from service.wiring import prepare_database
from tests.jobs.plain import engine_of

LOG = "frozen"


class Freezing(Chunks):
    """Chunks with a moment that takes as long as somebody likes."""

    moment = os.environ.get("FREEZE", "")

    def claim(self, *, idle: bool = True) -> ClaimedChunk | Literal["alone"] | None:
        """Claims a chunk."""
        claimed = super().claim(idle=idle)
        if claimed is not None:
            self._pass("claim")
        return claimed

    def _insert(self, connection: sa.Connection, batch: str, new: list[OutcomeRow]) -> None:
        super()._insert(connection, batch, new)
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
