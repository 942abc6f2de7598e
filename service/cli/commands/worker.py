"""`callgrade worker`: works on batches until told to stop."""

from __future__ import annotations

import os
from typing import Annotated, Literal

import typer

from service.cli.command import command
from service.cli.context import read_settings
from service.cli.exits import ExitCode

NICE = 5
"""How far a worker stands back for the process that it runs beside: whoever waits for an answer goes first."""


@command(70)
def worker(
    log_level: Annotated[
        Literal["debug", "info", "warning", "error", "critical"] | None,
        typer.Option(help="Least severe log record written. [default: CALLGRADE_LOG_LEVEL or info]"),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=256, help="Cores for what code makes of items. [default: all of them]"),
    ] = None,
    *,
    beside: Annotated[bool, typer.Option("--beside", hidden=True, help="End with standard input.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only tell whether a worker of this machine is alive: 0 if so, 2 if not.")
    ] = False,
) -> int:
    """Work on batches, until told to stop. On PostgreSQL any number of workers share the work; SQLite takes one."""
    if check:
        from service.cli.serving.alive import check_worker

        return check_worker()
    return run_worker(log_level=log_level, workers=workers, beside=beside)


def run_worker(*, log_level: str | None = None, workers: int | None = None, beside: bool = False) -> ExitCode:
    """Work until told to stop; SettingsError where a setting cannot be used.

    `workers`: cores for what code makes of items; None: all.
    `beside`: the end of standard input says so too, for it is the end of the process that started this one.
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
        os.nice(NICE)
    database = prepare_database(settings)
    try:
        job_queue.prepare(database)
        if not beside:  # the process that this one is beside has done it
            note_own_files(settings, database)
        heap.claim_process()
        pool = build_pool(settings, workers or count_cores())
        asyncio.run(work(settings, database, beside=beside, pool=pool))
    finally:
        database.close()
    return ExitCode.PASSED
