"""`callgrade worker`: work on batches until told to stop."""

from __future__ import annotations

import os
from typing import Annotated, Literal

import typer

from service.cli.command import command
from service.cli.context import read_settings
from service.cli.exits import ExitCode

NICE_INCREMENT = 5
"""The nice value of a worker beside a server: requests, which somebody is waiting for, go first."""


@command(70)
def worker(
    log_level: Annotated[
        Literal["debug", "info", "warning", "error", "critical"] | None,
        typer.Option(help="Log this level and above. [default: CALLGRADE_LOG_LEVEL or info]"),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=256, help="Number of worker processes. [default: one for each core]"),
    ] = None,
    *,
    code: Annotated[
        bool, typer.Option("--code", hidden=True, help="Leave what waits for judges or a sandbox to other workers.")
    ] = False,
    beside: Annotated[bool, typer.Option("--beside", hidden=True, help="End when standard input ends.")] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only check whether a worker on this machine is alive: exit 0 if so, else 2."),
    ] = False,
) -> int:
    """Work on batches until told to stop. Any number of workers share the work: with SQLite on one machine."""
    if check:
        from service.cli.serving.alive import check_worker

        return check_worker()
    return run_worker(log_level=log_level, workers=workers, code=code, beside=beside)


def run_worker(
    *, log_level: str | None = None, workers: int | None = None, code: bool = False, beside: bool = False
) -> ExitCode:
    """Work until told to stop; SettingsError if a setting cannot be used.

    `workers`: number of processes, this one included; None means one for each core. Without Redis only the first one asks
    judges: limits of providers hold for a process. `code`: take nothing that waits for judges or a sandbox.
    `beside`: also stop when standard input ends, because then the process that started this one has ended.
    """
    import asyncio
    import threading
    from functools import partial

    from service import heap
    from service.cli.serving.supervise import supervised_workers
    from service.cli.serving.worker import count_cores, work
    from service.logs.lines import configure
    from service.own_files import note_own_files
    from service.store.jobs.chunks import Chunks
    from service.wiring import prepare_database

    settings, stopping = read_settings(), threading.Event()
    level = (log_level or settings.log_level).upper()
    configure(level)
    if beside and workers is None:  # the worker of a server, not one of a worker
        os.nice(NICE_INCREMENT)
    database = prepare_database(settings)
    try:
        if not beside:  # else the parent process has done it
            note_own_files(settings, database)
        heap.claim_process()
        options = ("--workers", "1", *([] if settings.cache_url else ["--code"]))
        more = (workers or count_cores()) - 1
        grace = settings.graceful_seconds
        with supervised_workers(more, *options, log_level=level, grace=grace, stopping=stopping):
            asyncio.run(
                work(
                    settings, database, beside=beside, stopping=stopping, build_chunks=partial(Chunks, judges=not code)
                )
            )
    finally:
        database.close()
    return ExitCode.PASSED
