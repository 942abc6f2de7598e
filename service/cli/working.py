"""Work on batches until a signal ends it, keep workers in other processes running, and probe whether one is alive."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from math import ceil
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from service.cli.exits import ExitCode
from service.cli.options import read_settings
from service.cli.screen import say
from service.engine import Engine
from service.jobs.items import ItemScorer, widen_limits
from service.jobs.provider_judging import Polling, ProviderJudging
from service.jobs.runner import Runner
from service.jobs.worker import Worker, keep_working, send_notice
from service.logs.lines import log_warnings
from service.scoring_process import ScoringProcess
from service.settings import Settings
from service.store.access.audit import Audit
from service.store.access.usage import UsageStore
from service.store.database import Database, is_transient
from service.store.jobs.chunks import Chunks
from service.store.jobs.jobs import Batches
from service.store.jobs.provider_batches import ProviderBatches
from service.store.jobs.workers import SILENT_S, Workers, is_of_this_machine, make_name
from service.store.labelling.labels import Labels
from service.store.times import DAY_S
from service.wiring import build_database, build_engine, build_limits, build_webhooks, build_wire

LOG = logging.getLogger("callgrade.serve")

DATABASE_TIMEOUT_S = 5.0
"""How long to wait for the database, in seconds."""

MAX_RESTART_DELAY_S = 30.0
"""The longest delay between a worker's end and its next start, in seconds."""

QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""A container's CPU quota: microseconds per period, or `max`, and the period."""


async def work(  # noqa: PLR0913 (the last four are for tests, and by name)
    settings: Settings,
    database: Database,
    *,
    beside: bool = False,
    stopping: threading.Event | None = None,
    engine: Engine | None = None,
    build_chunks: Callable[[Database, str], Chunks] = Chunks,
    polling: Polling = Polling(),  # noqa: B008 (frozen)
) -> None:
    """Work on jobs until a signal ends it.

    `stopping` is set when the end begins. `engine`: defaults to the one of the settings, with large items scored in a separate
    process. `build_chunks`: builds the store of chunks for a worker of this name. `polling`: of providers' batches.
    """
    apart = None if engine else ScoringProcess()
    engine = engine or build_engine(settings, database)
    if not beside:  # else the parent process has logged them
        log_warnings(engine.list_warnings())
    items = ItemScorer(engine, widen_limits(build_limits(settings)), apart=apart)
    chunks = build_chunks(database, make_name())
    stage = ProviderJudging(engine, items, ProviderBatches(database), build_wire(settings), polling)
    runner = Runner(chunks, items, in_flight=settings.batch_in_flight, stage=stage)
    notify = partial(send_notice, database, build_webhooks(settings))
    worker = Worker(chunks, runner, notify, most=count_chunks(settings))
    stop = _build_stop_event(beside=beside)
    sweep = partial(_sweep, Batches(database), settings)
    async with keep_working(worker, sweep=sweep, grace=settings.graceful_seconds):
        watching = asyncio.create_task(stage.watch())
        await stop.wait()
        watching.cancel()
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

        def wait_for_eof() -> None:
            while os.read(sys.stdin.fileno(), 1_024):  # unbuffered: at exit the process would wait for a buffer's lock
                pass
            loop.call_soon_threadsafe(stop.set)

        threading.Thread(target=wait_for_eof, name="beside", daemon=True).start()
    return stop


def _sweep(batches: Batches, settings: Settings) -> None:
    batches.expire_due()
    batches.forget_old(days=settings.batch_days)
    Audit(batches.database).forget_old(days=settings.audit_days)
    Labels(batches.database).forget_old(days=settings.batch_days)
    UsageStore(batches.database).forget_old(int(time.time() // DAY_S))


class Supervisor:
    """Keeps one worker running: restarts it with growing delays. `options`: further ones of `callgrade worker`."""

    def __init__(self, *options: str, grace: float) -> None:
        program = (sys.executable, "-P", "-m", "service.cli", "worker", "--beside")
        self._command = [*program, *options]
        self._grace = grace
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep_running, name="worker", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Tell the worker to end."""
        self._stopping.set()
        if self._process is not None:
            self._process.terminate()

    def stop(self) -> None:
        """End the worker, which may finish what is under way within the grace period."""
        self.end()
        self._thread.join(self._grace + 5.0)
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def _keep_running(self) -> None:
        wait = 1.0
        while not self._stopping.is_set():
            start = time.monotonic()
            # The worker ends when its standard input ends, even if this process is killed and cannot tell it to.
            with subprocess.Popen(self._command, stdin=subprocess.PIPE) as self._process:  # noqa: S603 (our own command)
                if self._stopping.is_set():  # told to stop while starting
                    self._process.terminate()
                code = self._process.wait()
            if self._stopping.is_set():
                return
            LOG.error("the worker has ended", extra={"fields": {"code": code, "batches": "wait for another one"}})
            wait = 1.0 if time.monotonic() - start > MAX_RESTART_DELAY_S else wait
            self._stopping.wait(wait)
            wait = min(MAX_RESTART_DELAY_S, wait * 2)


@contextmanager
def supervised_workers(number: int, *options: str, grace: float, stopping: threading.Event) -> Generator[None]:
    """Run so many workers during the block.

    They are told to end as soon as `stopping` is set, so that they have the same grace period as requests.
    """
    supervisors = [Supervisor(*options, grace=grace) for _ in range(number)]

    def end_all() -> None:
        stopping.wait()
        for one in supervisors:
            one.end()

    threading.Thread(target=end_all, name="worker-end", daemon=True).start()
    try:
        yield
    finally:
        for one in supervisors:
            one.stop()


def check_worker() -> ExitCode:
    """Return PASSED if a worker of this machine gave a recent sign of life, else FAILED.

    An unreachable database also means PASSED: the worker waits for it, and a probe must not restart the worker and lose its
    work.
    """
    database = build_database(read_settings())
    answers: list[bool] = []
    # A daemon thread, which does not delay the end of the process: a connection may hang for long.
    thread = threading.Thread(target=lambda: answers.append(_is_alive(database)), daemon=True)
    thread.start()
    thread.join(DATABASE_TIMEOUT_S)
    if not answers:
        say("the database does not answer, so it is unknown whether the worker is alive")
    return ExitCode.PASSED if all(answers) else ExitCode.FAILED


def _is_alive(database: Database) -> bool:
    try:
        known = Workers(database).list_workers()
    except DBAPIError as error:
        return is_transient(error)  # missing tables will not go away by themselves: there never was a worker
    return any(worker.silent <= SILENT_S for worker in known if is_of_this_machine(worker.id))
