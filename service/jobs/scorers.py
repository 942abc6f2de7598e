"""A pool of processes that score blocks of items, so that a worker uses more than one core.

Only the worker talks to the database and to judges: SQLite allows one writer, and provider limits span all processes.
What code makes of an item does not depend on the process; an item that must wait comes back to the worker unscored.
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

MIN_POOL_ITEMS = 25
"""Items in a block that is worth a process."""


def build_process_engine() -> Engine:
    """Build an engine from the settings of this process."""
    settings = Settings.from_env(os.environ)
    configure(settings.log_level)
    return build_engine(settings)


END_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Signals that may reach a whole process group; the worker itself ends its scorers."""


class ScorerPool:
    """Scoring processes, each started when first needed. If one dies while scoring, the worker ends with it."""

    def __init__(self, number: int, limits: Limits, *, build: Callable[[], Engine] = build_process_engine) -> None:
        """`build`: a module-level function that builds the engine of each process."""
        self.number = number
        context = get_context("spawn")
        self._pool = ProcessPoolExecutor(number, context, _prepare, (build, limits))

    def score(self, items: Sequence[ChunkItem]) -> list[OutcomeRow | None]:
        """Return the outcome of each item; None for one that must wait for a judge or a sandbox. Blocks: call it in a thread."""
        if len(items) < MIN_POOL_ITEMS:
            return [None] * len(items)
        try:
            return self._submit(items).result()
        except BrokenProcessPool:
            # Whoever leases the chunks next sees from this death that their items are suspect.
            LOG.critical("a process that scored items has ended, and the worker ends with it")
            os.kill(os.getpid(), signal.SIGKILL)
            raise

    def _submit(self, items: Sequence[ChunkItem]) -> Future[list[OutcomeRow | None]]:
        """Start the task with signals blocked, as a new process inherits this thread's mask and must be deaf from its start."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, END_SIGNALS)
        try:
            return self._pool.submit(_score, items)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def close(self) -> None:
        """Shut down the processes. Blocks while one ends its block: the queue to them must outlive what tells them to end."""
        self._pool.shutdown(wait=True, cancel_futures=True)


_scorers: list[ItemScorer] = []
"""The scorer of this process, in a process of the pool."""


def _prepare(build: Callable[[], Engine], limits: Limits) -> None:
    for number in END_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, END_SIGNALS)
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
