"""Work on batches until stopped."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from math import ceil
from pathlib import Path
from typing import Annotated

from sqlalchemy.exc import DBAPIError
from typer import Option

from service import heap
from service.cli.exits import ExitCode
from service.cli.options import read_settings
from service.cli.screen import say
from service.engine import Engine
from service.fits.own_files import note_own_files
from service.jobs.items import ItemScorer, widen_limits
from service.jobs.provider_judging import Polling, ProviderJudging
from service.jobs.runner import Runner
from service.jobs.worker import Worker, keep_working, send_notice
from service.logs.lines import configure, log_warnings
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
from service.wiring import build_database, build_engine, build_limits, build_model, build_webhooks, prepare_database

LOG = logging.getLogger("callgrade.serve")

DATABASE_TIMEOUT_S = 5.0
"""How long to wait for the database, in seconds."""

LOOK_S = 0.2
"""How often the process of a worker is looked at, in seconds."""

MAX_RESTART_DELAY_S = 30.0
"""The longest delay between a worker's end and its next start, in seconds."""

QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""A container's CPU quota: microseconds per period, or `max`, and the period."""


NICE_INCREMENT = 5
"""The nice value of a worker beside a server: requests, which somebody is waiting for, go first."""


def main(
    workers: Annotated[
        int | None, Option(metavar="N", min=1, max=256, help="Processes. [default: one per core]")
    ] = None,
    *,
    code: Annotated[bool, Option("--code", hidden=True, help="Take nothing that waits for judges.")] = False,
    beside: Annotated[bool, Option("--beside", hidden=True, help="End when standard input ends.")] = False,
    check: Annotated[bool, Option("--check", help="Exit 0 if a worker on this machine is alive, else 2.")] = False,
) -> int:
    """Work on batches until stopped. Any number of workers share the work: with SQLite on one machine."""
    # Only the first process asks judges: limits of providers hold for a process, and one keeps a provider busy.
    if check:
        return _check_worker()
    settings, stopping = read_settings(), threading.Event()
    configure(settings.log_level)
    if beside and workers is None:  # the worker of a server, not one of a worker
        os.nice(NICE_INCREMENT)
    database = prepare_database(settings)
    try:
        if not beside:  # else the parent process has done it
            note_own_files(settings, database)
        heap.claim_process()
        more, grace = (workers or count_cores()) - 1, settings.graceful_seconds
        build_chunks = partial(Chunks, judges=not code)
        with supervised_workers(more, "--workers", "1", "--code", grace=grace, stopping=stopping):
            asyncio.run(work(settings, database, beside=beside, stopping=stopping, build_chunks=build_chunks))
    finally:
        database.close()
    return ExitCode.PASSED


def _check_worker() -> ExitCode:
    """Return PASSED if a worker of this machine gave a recent sign of life, else FAILED.

    An unreachable database also means PASSED: the worker waits for it, and a probe must not restart the worker and lose its
    work.
    """
    database, answers = build_database(read_settings()), list[bool]()

    def look() -> None:
        try:
            known = Workers(database).list_workers()
            answers.append(any(one.silent <= SILENT_S for one in known if is_of_this_machine(one.id)))
        except DBAPIError as error:  # missing tables will not go away by themselves: there never was a worker
            answers.append(is_transient(error))

    # A daemon thread, which does not delay the end of the process: a connection may hang for long.
    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(DATABASE_TIMEOUT_S)
    if not answers:
        say("the database does not answer, so it is unknown whether the worker is alive")
    return ExitCode.PASSED if all(answers) else ExitCode.FAILED


async def work(
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
    stage = ProviderJudging(engine, items, ProviderBatches(database), build_model(settings), polling)
    runner = Runner(chunks, items, in_flight=settings.batch_in_flight, stage=stage)
    notify = partial(send_notice, database, build_webhooks(settings))
    # All places stay taken while some chunks finish and others start.
    most = 2 + 2 * ceil(settings.batch_in_flight / settings.batch_chunk)
    worker = Worker(chunks, runner, notify, most=most)
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


@contextmanager
def supervised_workers(number: int, *options: str, grace: float, stopping: threading.Event) -> Generator[None]:
    """Keep so many workers running during the block; `options`: further ones of `callgrade worker`.

    They are told to end as soon as `stopping` is set, also by the end of the block, and have the same grace period as requests.
    """
    command = (sys.executable, "-P", "-m", "service.cli", "worker", "--beside", *options)
    threads = [
        threading.Thread(target=_keep_running, args=(command, grace, stopping), name="worker", daemon=True)
        for _ in range(number)
    ]
    for one in threads:
        one.start()
    try:
        yield
    finally:
        stopping.set()
        for one in threads:
            one.join(grace + 10.0)


def _keep_running(command: Sequence[str], grace: float, stopping: threading.Event) -> None:
    """Start a worker again with growing delays until `stopping` is set; then it may finish what is under way."""
    wait = 1.0
    while not stopping.is_set():
        start = time.monotonic()
        # The worker ends when its standard input ends, even if this process is killed and cannot tell it to.
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:  # noqa: S603 (our own command)
            while process.poll() is None and not stopping.wait(LOOK_S):
                pass
            if stopping.is_set():
                process.terminate()  # once: a second signal may find its loop half closed
                with suppress(subprocess.TimeoutExpired):
                    process.wait(grace + 5.0)
                process.kill()
                return
        fields = {"code": process.returncode, "batches": "wait for another one"}
        LOG.error("the worker has ended", extra={"fields": fields})
        wait = 1.0 if time.monotonic() - start > MAX_RESTART_DELAY_S else wait
        stopping.wait(wait)
        wait = min(MAX_RESTART_DELAY_S, wait * 2)
