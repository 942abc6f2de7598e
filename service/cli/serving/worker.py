"""Work on batches until a signal ends it."""

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
"""A container's CPU quota: microseconds per period, or `max`, and the period."""


async def work(
    settings: Settings,
    database: Database,
    *,
    beside: bool = False,
    pool: ScorerPool | None = None,
    engine: Engine | None = None,
    build_chunks: Callable[[Database, Queue], Chunks] = Chunks,
) -> None:
    """Work on jobs until a signal ends it.

    `pool`: processes that score beside this one and end with it. `engine`: defaults to the one of the settings, with large
    items scored in a separate process. `build_chunks`: builds the store of chunks.
    """
    apart = None if engine else ScoringProcess()
    engine = engine or build_engine(settings, database)
    if not beside:  # else the parent process has logged them
        log_warnings(engine.list_warnings())
    queue = job_queue.Enqueuer(database)
    items = ItemScorer(engine, widen_limits(build_limits(settings)), apart=apart, pool=pool)
    in_flight, threads = settings.batch_in_flight, 2 if pool is None else max(2, pool.number)
    runner = Runner(build_chunks(database, queue), items, in_flight=in_flight, remind=job_queue.remind, threads=threads)
    batches = Batches(database, queue)
    worker = Worker(database, queue, runner, NoticeSender(database, queue, build_webhooks(settings)))
    stop = _build_stop_event(beside=beside)
    sweep = partial(_sweep, batches, settings)
    grace = settings.graceful_seconds
    async with keep_working(database, runner, worker, chunks=count_chunks(settings, threads), sweep=sweep, grace=grace):
        await stop.wait()
    for one in (apart, pool):
        if one is not None:
            one.close()
    await engine.close()


def build_pool(settings: Settings, number: int) -> ScorerPool | None:
    """Build a pool of `number` scoring processes; None if one core is enough."""
    return ScorerPool(number, widen_limits(build_limits(settings))) if number > 1 else None


def count_chunks(settings: Settings, workers: int = 1) -> int:
    """Return how many chunks to run at once, so that all cores stay busy while some chunks finish and others start."""
    return 2 + max(workers, 2 * ceil(settings.batch_in_flight / settings.batch_chunk))


def count_cores(quota: Path = QUOTA) -> int:
    """Count the cores that this process may use, at least 1: its CPU affinity, limited by its container's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        microseconds, period = quota.read_text().split()
    except (OSError, ValueError):
        return cores
    return cores if microseconds == "max" else max(1, min(cores, int(microseconds) // int(period)))


def _build_stop_event(*, beside: bool) -> asyncio.Event:
    """Build an event that is set when the worker must end."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if beside:
        reading = partial(_wait_for_eof, lambda: loop.call_soon_threadsafe(stop.set))
        threading.Thread(target=reading, name="beside", daemon=True).start()
    return stop


def _wait_for_eof(then: Callable[[], object]) -> None:
    while os.read(
        sys.stdin.fileno(), 1_024
    ):  # unbuffered, because the process would wait at exit for the lock of a buffer
        pass
    then()


def _sweep(batches: Batches, settings: Settings) -> None:
    batches.expire_due()
    batches.forget_old(days=settings.batch_days)
    Audit(batches.database).forget_old(days=settings.audit_days)
    Answers(batches.database).forget_old()
    Labels(batches.database).forget_old(days=settings.batch_days)
    UsageStore(batches.database).forget_old(int(time.time() // DAY_S))
    job_queue.delete_old()
