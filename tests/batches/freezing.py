"""A worker that freezes, as by SIGSTOP, when it has taken its first chunk out of the queue and has not yet opened it."""

from __future__ import annotations

import asyncio
import os
import signal

from service.cli.worker import work
from service.io.bootstrap import prepared
from service.io.logs import configure
from service.io.settings import Settings
from service.io.store.chunks import ChunkId, Chunks, Opened

LOG = "frozen"


class Freezing(Chunks):
    """Chunks of which the first opening takes as long as somebody likes."""

    frozen = False

    def open(self, chunk: ChunkId, generation: int) -> Opened | None:
        """Opens a chunk."""
        if not self.frozen:
            self.frozen = True
            print(LOG, flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)
        return super().open(chunk, generation)


if __name__ == "__main__":
    configure("INFO")
    settings = Settings.from_env(os.environ)
    asyncio.run(work(settings, prepared(settings), chunks_of=Freezing))
