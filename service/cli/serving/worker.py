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
from service.jobs.items import ItemScorer, widen_limits
from service.jobs.notices import NoticeSender
from service.jobs.runner import Runner
from service.jobs.worker import Worker, keep_working
from service.logs.lines import log_warnings
from service.scoring_process import ScoringProcess
from service.settings import Settings
from service.store.access.audit import Audit
from service.store.access.usage import DAY_S, UsageStore
from service.store.database import Database
from service.store.jobs.batches import Batches
from service.store.jobs.chunks import Chunks
from service.store.jobs.workers import make_name
from service.store.labelling.labels import Labels
from service.wiring import build_engine, build_limits, build_webhooks

QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""A container's CPU quota: microseconds per period, or `max`, and the period."""


async def work(
    settings: Settings,
    database: Database,
    *,
    beside: bool = False,
    stopping: threading.Event | None = None,
    engine: Engine | None = None,
    build_chunks: Callable[[Database, str], Chunks] = Chunks,
) -> None:
    """Work on jobs until a signal ends it.

    `stopping` is set when the end begins. `engine`: defaults to the one of the settings, with large items scored in a separate
    process. `build_chunks`: builds the store of chunks for a worker of this name.
    """
    apart = None if engine else ScoringProcess()
    engine = engine or build_engine(settings, database)
    if not beside:  # else the parent process has logged them
        log_warnings(engine.list_warnings())
    items = ItemScorer(engine, widen_limits(build_limits(settings)), apart=apart)
    chunks = build_chunks(database, make_name())
    runner = Runner(chunks, items, in_flight=settings.batch_in_flight)
    notices = NoticeSender(database, build_webhooks(settings))
    worker = Worker(chunks, runner, notices, most=count_chunks(settings))
    stop = _build_stop_event(beside=beside)
    sweep = partial(_sweep, Batches(database), settings)
    async with keep_working(worker, chunks, sweep=sweep, grace=settings.graceful_seconds):
        await stop.wait()
        if stopping is not None:
            stopping.set()
    runner.close()
    if apart is not None:
        apart.close()
    await engine.close()


def count_chunks(settings: Settings) -> int:
    """Return how many chunks to run at once, so that all places stay taken while some chunks finish and others start."""
    return 2 + 2 * ceil(settings.batch_in_flight / settings.batch_chunk)


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
    Labels(batches.database).forget_old(days=settings.batch_days)
    UsageStore(batches.database).forget_old(int(time.time() // DAY_S))
