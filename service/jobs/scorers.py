"""Processes beside a worker that score blocks of items, so that a batch has more than one core.

The worker alone speaks to the database and to judges: SQLite has one that writes, and the limits of providers hold over all.
What code makes of an item does not depend on where it is made; an item that waits for somebody comes back as it went.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process

from service.engine import Engine
from service.jobs.items import ItemScorer, WaitingItem
from service.logs.lines import configure
from service.reading.strict_json import Limits
from service.settings import Settings
from service.store.jobs.leases import ChunkItem, OutcomeRow
from service.wiring import build_engine

LOG = logging.getLogger("callgrade.worker")

LEAST_ITEMS = 25
"""Items of a block that is worth a process."""


def build_own_engine() -> Engine:
    """The engine as the settings of this process have it."""
    settings = Settings.from_env(os.environ)
    configure(settings.log_level)
    return build_engine(settings)


ENDING = (signal.SIGINT, signal.SIGTERM)
"""What all processes of a group may be sent; the worker itself ends those that score."""


class ScorerPool:
    """Some processes, each begun when it is first needed. The end of one in the middle of its work is the worker's end."""

    def __init__(self, number: int, limits: Limits, *, build: Callable[[], Engine] = build_own_engine) -> None:
        """`build`: a function of a module, which gives each process its engine."""
        self.number = number
        context = get_context("spawn")
        self._pool = ProcessPoolExecutor(number, context, _prepare, (build, limits))

    def score(self, items: Sequence[ChunkItem]) -> list[OutcomeRow | None]:
        """The outcome of each item; None where somebody must be waited for. For a thread: it waits."""
        if len(items) < LEAST_ITEMS:
            return [None] * len(items)
        try:
            return self._submit(items).result()
        except BrokenProcessPool:
            # Whoever opens the chunks next knows by this one's death that their items are to be suspected.
            LOG.critical("a process that scored items has ended, and the worker ends with it")
            os.kill(os.getpid(), signal.SIGKILL)
            raise

    def _submit(self, items: Sequence[ChunkItem]) -> Future[list[OutcomeRow | None]]:
        """A process that is begun here is deaf from its first moment on: it inherits what this thread blocks."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        try:
            return self._pool.submit(_score, items)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def close(self) -> None:
        """Ends the processes."""
        self._pool.shutdown(wait=False, cancel_futures=True)


_scorers: list[ItemScorer] = []
"""In a process of the pool, its own one."""


def _prepare(build: Callable[[], Engine], limits: Limits) -> None:
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    threading.Thread(target=_end_with_the_worker, name="worker", daemon=True).start()
    _scorers.append(ItemScorer(build(), limits))


def _end_with_the_worker() -> None:
    worker = parent_process()
    if worker is not None:
        worker.join()
        os._exit(0)


def _score(items: Sequence[ChunkItem]) -> list[OutcomeRow | None]:
    found = _scorers[0].begin(items)
    return [None if isinstance(one, WaitingItem) else one for one in found]
