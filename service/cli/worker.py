"""`callgrade worker`: works on batches until told to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from math import ceil

from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.io import batches, heap
from service.io.bootstrap import engine_of, limits_of, prepared, webhooks_of
from service.io.engine import Engine
from service.io.items import Items, wrapped
from service.io.logs import configure
from service.io.notices import Notices
from service.io.runner import Runner
from service.io.settings import Settings
from service.io.store.batches import Batches
from service.io.store.chunks import Chunks
from service.io.store.database import Database
from service.io.store.queue import Queue
from service.io.worker import Worker, working

NICE = 5
"""How far a worker stands back for the process that it runs beside: whoever waits for an answer goes first."""


def run_worker(*, log_level: str | None = None, beside: bool = False) -> ExitCode:
    """Work until told to stop; SettingsError where a setting cannot be used.

    `beside`: the end of standard input says so too, for it is the end of the process that started this one.
    """
    settings = read_settings()
    configure((log_level or settings.log_level).upper())
    if beside:
        os.nice(NICE)
    database = prepared(settings)
    try:
        batches.prepare(database)
        heap.own()
        asyncio.run(work(settings, database, beside=beside))
    finally:
        database.close()
    return ExitCode.PASSED


async def work(
    settings: Settings,
    database: Database,
    *,
    beside: bool = False,
    engine: Engine | None = None,
    chunks_of: Callable[[Database, Queue], Chunks] = Chunks,
) -> None:
    """Works until a signal says that it is enough.

    `engine`: what scores, default: as the settings say; `chunks_of`: what opens chunks and records.
    """
    engine = engine or engine_of(settings)
    queue = batches.Enqueuer(database)
    items = Items(engine, wrapped(limits_of(settings)))
    runner = Runner(chunks_of(database, queue), items, in_flight=settings.batch_in_flight, remind=batches.remind)
    kept = Batches(database, queue)
    worker = Worker(database, queue, runner, Notices(kept, webhooks_of(settings)))
    over = _told(beside=beside)
    sweep = partial(_swept, kept, settings.batch_days)
    grace = settings.graceful_seconds
    async with working(database, runner, worker, chunks=chunks_at_once(settings), sweep=sweep, grace=grace):
        await over.wait()
    await engine.close()


def chunks_at_once(settings: Settings) -> int:
    """As many chunks as keep all places busy while the last items of some are waited for, and others are opened."""
    return 2 + 2 * ceil(settings.batch_in_flight / settings.batch_chunk)


def _told(*, beside: bool) -> asyncio.Event:
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


def _swept(kept: Batches, days: int) -> None:
    kept.expire_due()
    kept.forget_old(days=days)
    batches.clear()
