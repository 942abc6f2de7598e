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
        typer.Option(metavar="N", min=1, max=256, help="Number of cores for scoring by code. [default: all]"),
    ] = None,
    *,
    beside: Annotated[bool, typer.Option("--beside", hidden=True, help="End when standard input ends.")] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only check whether a worker on this machine is alive: exit 0 if so, else 2."),
    ] = False,
) -> int:
    """Work on batches until told to stop. With PostgreSQL any number of workers share the work; SQLite allows one."""
    if check:
        from service.cli.serving.alive import check_worker

        return check_worker()
    return run_worker(log_level=log_level, workers=workers, beside=beside)


def run_worker(*, log_level: str | None = None, workers: int | None = None, beside: bool = False) -> ExitCode:
    """Work until told to stop; SettingsError if a setting cannot be used.

    `workers`: number of cores for scoring by code; None means all.
    `beside`: also stop when standard input ends, because then the process that started this one has ended.
    """
    import asyncio

    from service import heap
    from service.cli.serving.worker import build_pool, count_cores, work
    from service.jobs import job_queue
    from service.logs.lines import configure
    from service.own_files import note_own_files
    from service.wiring import prepare_database

    settings = read_settings()
    configure((log_level or settings.log_level).upper())
    if beside:
        os.nice(NICE_INCREMENT)
    database = prepare_database(settings)
    try:
        job_queue.prepare(database)
        if not beside:  # else the parent process has done it
            note_own_files(settings, database)
        heap.claim_process()
        pool = build_pool(settings, workers or count_cores())
        asyncio.run(work(settings, database, beside=beside, pool=pool))
    finally:
        database.close()
    return ExitCode.PASSED
