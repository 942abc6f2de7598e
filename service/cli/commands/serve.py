"""`callgrade serve` and `callgrade worker`: the HTTP API with its pages, and the processes that work on batches."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import Annotated

import typer
from typer import Option

from service.cli.exits import ExitCode
from service.cli.options import read_settings

NICE_INCREMENT = 5
"""The nice value of a worker beside a server: requests, which somebody is waiting for, go first."""

commands = typer.Typer()


@commands.command("serve")
def serve(
    host: Annotated[str | None, Option(metavar="ADDRESS", help="Address. [default: CALLGRADE_HOST]")] = None,
    port: Annotated[
        int | None, Option(metavar="N", min=0, max=65_535, help="0 picks a free one. [default: CALLGRADE_PORT]")
    ] = None,
    workers: Annotated[int, Option(metavar="N", min=1, max=256, help="Number of server processes.")] = 1,
    browser: Annotated[bool, Option("--open", help="Open the pages in a browser.")] = False,
) -> int:
    """Serve the HTTP API and the pages. Settings come from CALLGRADE_* variables; logs are JSON lines on standard error."""
    from service.api.app import create_app
    from service.cli import serving
    from service.cli.working import supervised_workers
    from service.fits.own_files import note_own_files
    from service.logs.lines import configure, log_warnings
    from service.scoring_process import ScoringProcess
    from service.store.access.keys import Keys
    from service.web.app import add_pages, make_local_token
    from service.wiring import build_engine, prepare_database

    read = read_settings()
    settings = replace(read, host=host or read.host)
    configure(settings.log_level)
    serving.raise_file_limit()
    database = prepare_database(settings)
    serving.make_first_key(settings, Keys(database))
    engine = build_engine(settings, database)
    # Built here even when other processes serve, so that errors appear before anything listens.
    token = make_local_token()
    app = add_pages(create_app(settings, engine=engine, database=database, large_scorer=ScoringProcess()), token=token)
    log_warnings(engine.list_warnings())
    note_own_files(settings, database)
    number, grace = int(settings.worker), settings.graceful_seconds
    with serving.bind_listener(settings.host, read.port if port is None else port) as listener:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C, until the server handles both
        serving.announce(listener, "" if Keys(database).any_key() else token, workers=workers, browser=browser)
        try:
            with supervised_workers(number, grace=grace, stopping=app.state.stopping):
                serving.serve_on(app, settings, listener, workers=workers, token=token)
        except KeyboardInterrupt:
            serving.LOG.info("stopped")
    return ExitCode.PASSED


@commands.command("worker")
def worker(
    workers: Annotated[
        int | None, Option(metavar="N", min=1, max=256, help="Processes. [default: the number of cores]")
    ] = None,
    *,
    code: Annotated[bool, Option("--code", hidden=True, help="Take nothing that waits for judges.")] = False,
    beside: Annotated[bool, Option("--beside", hidden=True, help="End when standard input ends.")] = False,
    check: Annotated[bool, Option("--check", help="Exit 0 if a worker on this machine is alive, else 2.")] = False,
) -> int:
    """Work on batches until stopped. Any number of workers share the work: with SQLite on one machine."""
    # Only the first process asks judges: limits of providers hold for a process, and one keeps a provider busy.
    import asyncio
    import threading
    from functools import partial

    from service import heap
    from service.cli.working import check_worker, count_cores, supervised_workers, work
    from service.fits.own_files import note_own_files
    from service.logs.lines import configure
    from service.store.jobs.chunks import Chunks
    from service.wiring import prepare_database

    if check:
        return check_worker()
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
