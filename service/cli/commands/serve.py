"""`callgrade serve`: serve the HTTP API and the pages, with a worker process beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import typer

from service.cli.command import command
from service.cli.context import read_settings
from service.cli.exits import ExitCode


@command(60)
def serve(
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address to listen on. [default: CALLGRADE_HOST or 127.0.0.1]")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, max=65_535, help="Port; 0 picks a free one. [default: CALLGRADE_PORT or 8000]"
        ),
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error", "critical"] | None,
        typer.Option(help="Log this level and above. [default: CALLGRADE_LOG_LEVEL or info]"),
    ] = None,
    workers: Annotated[int, typer.Option(metavar="N", min=1, max=256, help="Number of server processes.")] = 1,
) -> int:
    """Serve the HTTP API and the pages. Settings come from CALLGRADE_* variables; logs are JSON lines on standard error."""
    return run_serve(host=host, port=port, log_level=log_level, workers=workers)


def run_serve(
    *,
    host: str | None = None,
    port: int | None = None,
    log_level: str | None = None,
    workers: int = 1,
    browser: bool = False,
) -> ExitCode:
    """Serve until a signal stops it; `browser` opens the pages.

    Arguments that are None come from the settings; SettingsError if one cannot be used.
    """
    from service.api.app import create_app
    from service.api.fairness.connections import raise_file_limit
    from service.cli.serving.ending import StopSignal
    from service.cli.serving.server import (
        LOG,
        bind_listener,
        build_page_url,
        log_address,
        make_first_key,
        serve_on,
        show_pages,
    )
    from service.cli.serving.supervise import supervised_workers
    from service.logs.lines import configure, log_warnings
    from service.own_files import note_own_files
    from service.scoring_process import ScoringProcess
    from service.store.access.keys import Keys
    from service.web.app import add_pages, make_local_token
    from service.wiring import build_engine, prepare_database

    read = read_settings()
    level = (log_level or read.log_level).upper()
    settings = replace(read, log_level=level, host=host or read.host)
    configure(level)
    raise_file_limit()
    database = prepare_database(settings)
    make_first_key(settings, Keys(database))
    engine = build_engine(settings, database)
    # Built here even when other processes serve, so that errors appear before anything listens.
    token = make_local_token()
    app = add_pages(create_app(settings, engine=engine, database=database, large_scorer=ScoringProcess()), token=token)
    log_warnings(engine.list_warnings())
    note_own_files(settings, database)
    with bind_listener(settings.host, read.port if port is None else port) as listener:
        stop_signal = StopSignal()
        stop_signal.listen()
        log_address(listener, workers)
        show_pages(build_page_url(listener, "" if Keys(database).any_key() else token), browser=browser)
        try:
            with supervised_workers(
                int(settings.worker), log_level=level, grace=settings.graceful_seconds, stopping=app.state.stopping
            ):
                serve_on(app, settings, listener, stop_signal, workers=workers, token=token)
        except KeyboardInterrupt:
            LOG.info("stopped")
    return ExitCode.PASSED
