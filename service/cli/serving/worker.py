"""Work on batches until a signal says that it is enough."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from math import ceil
from pathlib import Path

from service.engine import Engine
from service.jobs import job_queue
from service.jobs.items import ItemScorer, widen_limits
from service.jobs.notices import NoticeSender
from service.jobs.runner import Runner
from service.jobs.scorers import ScorerPool
from service.jobs.worker import Worker, keep_working
from service.logs.lines import log_warnings
from service.scoring_process import ScoringProcess
from service.settings import Settings
from service.store.access.answers import Answers
from service.store.access.audit import Audit
from service.store.access.usage import DAY_S, UsageStore
from service.store.database import Database
from service.store.jobs.batches import Batches
from service.store.jobs.chunks import Chunks
from service.store.jobs.queue import Queue
from service.store.labelling.labels import Labels
from service.wiring import build_engine, build_limits, build_webhooks

QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""What a container is given of the cores: microseconds of each period, or `max`, and the period."""


async def work(
    settings: Settings,
    database: Database,
    *,
    beside: bool = False,
    pool: ScorerPool | None = None,
    engine: Engine | None = None,
    chunks_of: Callable[[Database, Queue], Chunks] = Chunks,
) -> None:
    """Works until a signal says that it is enough.

    `pool`: processes that score beside this one; they end with it. `engine`: what scores, default: as the settings say, with
    large items apart; `chunks_of`: what opens chunks and records.
    """
    apart = None if engine else ScoringProcess()
    engine = engine or build_engine(settings, database)
    if not beside:  # the process it stands beside has said so
        log_warnings(engine.list_warnings())
    queue = job_queue.Enqueuer(database)
    items = ItemScorer(engine, widen_limits(build_limits(settings)), apart=apart, pool=pool)
    in_flight, threads = settings.batch_in_flight, 2 if pool is None else max(2, pool.number)
    runner = Runner(chunks_of(database, queue), items, in_flight=in_flight, remind=job_queue.remind, threads=threads)
    kept = Batches(database, queue)
    worker = Worker(database, queue, runner, NoticeSender(database, queue, build_webhooks(settings)))
    over = _watch_for_end(beside=beside)
    sweep = partial(_sweep, kept, settings)
    grace = settings.graceful_seconds
    async with keep_working(
        database, runner, worker, chunks=chunks_at_once(settings, threads), sweep=sweep, grace=grace
    ):
        await over.wait()
    for one in (apart, pool):
        if one is not None:
            one.close()
    await engine.close()


def build_pool(settings: Settings, number: int) -> ScorerPool | None:
    """So many processes that score, none where one core is enough."""
    return ScorerPool(number, widen_limits(build_limits(settings))) if number > 1 else None


def chunks_at_once(settings: Settings, workers: int = 1) -> int:
    """As many chunks as keep all places and cores busy while the last items of some are waited for, and others are opened."""
    return 2 + max(workers, 2 * ceil(settings.batch_in_flight / settings.batch_chunk))


def count_cores(quota: Path = QUOTA) -> int:
    """The cores that this process may use, at least 1: those that it may run on, and what its container is given of them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        given, period = quota.read_text().split()
    except (OSError, ValueError):
        return cores
    return cores if given == "max" else max(1, min(cores, int(given) // int(period)))


def _watch_for_end(*, beside: bool) -> asyncio.Event:
    """Set as soon as the worker is to end."""
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    if beside:
        reading = partial(_read_to_the_end, lambda: loop.call_soon_threadsafe(over.set))
        threading.Thread(target=reading, name="beside", daemon=True).start()
    return over


def _read_to_the_end(then: Callable[[], object]) -> None:
    while os.read(
        sys.stdin.fileno(), 1_024
    ):  # not through the buffer, whose lock the end of the process would wait for
        pass
    then()


def _sweep(kept: Batches, settings: Settings) -> None:
    kept.expire_due()
    kept.forget_old(days=settings.batch_days)
    Audit(kept.database).forget_old(days=settings.audit_days)
    Answers(kept.database).forget_old()
    Labels(kept.database).forget_old(days=settings.batch_days)
    UsageStore(kept.database).forget_old(int(time.time() // DAY_S))
    job_queue.delete_old()
