"""Serve the HTTP API and the pages."""

from __future__ import annotations

import logging
import os
import resource
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Annotated

import typer
import uvicorn
from fastapi import FastAPI
from typer import Option
from uvicorn.supervisors import Multiprocess

from service import heap
from service.api.app import create_app
from service.api.cross_site import is_loopback
from service.cli.commands.worker import supervised_workers
from service.cli.exits import ExitCode
from service.cli.options import read_settings
from service.cli.screen import say
from service.errors import SettingsError
from service.fits.own_files import note_own_files
from service.logs.lines import configure, log_warnings
from service.scoring_process import ScoringProcess
from service.settings import Settings
from service.store.access.keys import Keys
from service.web.app import add_pages, make_local_token
from service.wiring import build_database, build_engine, prepare_database

LOG = logging.getLogger("callgrade.serve")

BACKLOG = 2048

SWITCH_INTERVAL_S = 0.0005
"""Seconds after which a scoring thread gives way to the event loop. With Python's default of 5 ms the service is half as fast."""

HEALTHCHECK_TIMEOUT_S = 30
"""Seconds without a sign of life after which a process is replaced. A process that is still loading gives none, and on a busy
machine loading takes longer than uvicorn's default of 5 s, so processes were replaced for ever."""

MAX_HEAD_BYTES = 65_536
"""Most bytes of a head, or of a trailer."""

MAX_CONNECTIONS = 8_192
"""Connections of a process at once; on one more, a request is answered 503."""

OPEN_FILES = 16_384
"""Open files that a process allows itself, if it may; each connection is one."""

CLOSING_S = 3.0
"""Seconds for closing connections and files, after the grace period of requests under way."""


def main(
    host: Annotated[str | None, Option(metavar="ADDRESS", help="Address. [default: CALLGRADE_HOST]")] = None,
    port: Annotated[
        int | None, Option(metavar="N", min=0, max=65_535, help="0: a free one. [default: CALLGRADE_PORT]")
    ] = None,
    workers: Annotated[int, Option(metavar="N", min=1, max=256, help="Number of server processes.")] = 1,
    browser: Annotated[bool, Option("--open", help="Open the pages in a browser.")] = False,
) -> None:
    """Serve the HTTP API and the pages. Settings come from CALLGRADE_* variables; logs are JSON lines on standard error."""
    read = read_settings()
    settings = replace(read, host=host or read.host)
    configure(settings.log_level)
    _raise_file_limit()
    database = prepare_database(settings)
    keys = Keys(database)
    _make_first_key(settings, keys)
    engine = build_engine(settings, database)
    # Built here even when other processes serve, so that errors appear before anything listens.
    token = make_local_token()
    app = add_pages(create_app(settings, engine=engine, database=database, large_scorer=ScoringProcess()), token=token)
    log_warnings(engine.list_warnings())
    note_own_files(settings, database)
    number, grace = int(settings.worker), settings.graceful_seconds
    with bind_listener(settings.host, read.port if port is None else port) as listener:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C, until the server handles both
        announce(listener, "" if keys.any_key() else token, workers=workers, browser=browser)
        try:
            with supervised_workers(number, grace=grace, stopping=app.state.stopping):
                serve_on(app, settings, listener, workers=workers, token=token)
        except KeyboardInterrupt:
            LOG.info("stopped")


def _force_exit_after(stopping: threading.Event, *, grace: float, last: Callable[[], None] = lambda: None) -> None:
    """Exit the process `grace` seconds and a few more after `stopping` is set, if it still runs; call `last` before.

    A thread cannot be cancelled, and Python waits for all threads at exit, so one long trace would delay it.
    """

    def end() -> None:
        stopping.wait()
        threading.Event().wait(grace + CLOSING_S)
        LOG.error("ended before all was done", extra={"fields": {"seconds": grace + CLOSING_S}})
        last()
        os._exit(ExitCode.INTERNAL)

    threading.Thread(target=end, name="ending", daemon=True).start()


def build_application(settings: Settings, token: str) -> FastAPI:
    """Build the application in a server process, which gets only the settings and the local token."""
    configure(settings.log_level)
    _tune_process()
    app = create_app(settings, database=build_database(settings), large_scorer=ScoringProcess())
    add_pages(app, token=token)
    _force_exit_after(app.state.stopping, grace=settings.graceful_seconds)
    return app


class ServerProcesses(Multiprocess):
    """Several server processes under one parent that starts and ends them."""

    def __init__(self, config: uvicorn.Config, listener: socket.socket, stopping: threading.Event) -> None:
        super().__init__(config, sockets=[listener])
        self._stopping = stopping

    def terminate_all(self) -> None:
        """Tell the processes to end."""
        self._stopping.set()
        super().terminate_all()

    def kill(self) -> None:
        """Kill the processes that are still running."""
        for process in self.processes:
            process.process.kill()


def _tune_process() -> None:
    """Tune this process for fast answers while its threads are busy."""
    heap.claim_process()
    sys.setswitchinterval(SWITCH_INTERVAL_S)


def _raise_file_limit() -> None:
    """Raise this process's limit of open files to `OPEN_FILES`, or as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _make_first_key(settings: Settings, keys: Keys) -> None:
    """Create the first key if the settings ask for it; SettingsError if the host is public and there is no key."""
    if settings.first_key and (first := keys.create_first()):
        say("there was no key yet; here is one for everything, which is not shown again:")
        typer.echo(first[1], err=True)
    if not is_loopback(settings.host) and not keys.any_key():
        message = (
            f"{settings.host} can be reached from other machines, and there is no key yet: "
            "create one with `callgrade keys create --name NAME`, or listen on 127.0.0.1"
        )
        raise SettingsError.at("CALLGRADE_HOST", message)


def serve_on(app: FastAPI, settings: Settings, listener: socket.socket, *, workers: int, token: str) -> None:
    """Serve until told to stop. `token` opens the pages of further processes while there is no key."""
    stopping, grace = app.state.stopping, settings.graceful_seconds
    if workers > 1:
        listener.set_inheritable(True)
        processes = ServerProcesses(
            _build_config(partial(build_application, settings, token), settings, workers), listener, stopping
        )
        _force_exit_after(stopping, grace=grace, last=processes.kill)
        processes.run()
        return
    _tune_process()
    _force_exit_after(stopping, grace=grace)
    uvicorn.Server(_build_config(lambda: app, settings, workers)).run(sockets=[listener])


def _build_config(factory: object, settings: Settings, workers: int) -> uvicorn.Config:
    return uvicorn.Config(
        factory,  # pyright: ignore[reportArgumentType] (a factory, as `factory` says)
        factory=True,
        workers=workers,
        log_config=None,
        log_level="debug" if settings.log_level == "DEBUG" else "warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        http="h11",  # httptools, which is faster, bounds neither a head nor the requests that are sent ahead
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        limit_concurrency=MAX_CONNECTIONS,
        ws="none",
        timeout_graceful_shutdown=settings.graceful_seconds,
        timeout_worker_healthcheck=HEALTHCHECK_TIMEOUT_S,
    )


def bind_listener(host: str, port: int) -> socket.socket:
    """Bind the listening socket; a usage error if the address is not available."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        # create_server appends the address again, in brackets.
        reason = (error.strerror or str(error)).partition(" (while")[0]
        raise typer.BadParameter(f"cannot listen on {host}, port {port}: {reason}") from None
    # Connections inherit TCP_NODELAY. asyncio sets it only on sockets that it made itself; without it every answer takes 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def announce(listener: socket.socket, token: str, *, workers: int, browser: bool) -> None:
    """Log where the service listens; print the URL of the pages, with the token that signs the visitor in, and open it.

    The URL is not logged, because its token may open everything.
    """
    bound, port = listener.getsockname()[:2]
    LOG.info("listening", extra={"fields": {"host": bound, "port": port, "workers": workers}})
    host = str({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bound, bound))  # noqa: S104 (a wildcard is reachable on loopback)
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/" + (f"sign-in?token={token}" if token else "")
    with suppress(OSError):  # nobody reads standard output
        typer.echo(f"pages: {url}")
    if browser:
        # In a thread, because a text browser blocks until it is closed, and a missing browser is no reason to stop.
        threading.Thread(target=webbrowser.open, args=(url,), name="browser", daemon=True).start()
