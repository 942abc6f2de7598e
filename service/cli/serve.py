"""`callgrade serve`: uvicorn around the application. All that is heavy is imported here."""

from __future__ import annotations

import logging
import signal
import socket
import sys
import threading
from dataclasses import replace
from functools import partial

import typer
import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from service.api.app import create_app
from service.api.connections import Connection, allow_files
from service.api.foreign import is_loopback
from service.cli.console import say
from service.cli.context import read_settings
from service.cli.ending import end_by
from service.cli.exits import ExitCode
from service.cli.supervise import worker_beside
from service.errors import SettingsError
from service.io import heap
from service.io.batches import prepare
from service.io.bootstrap import database_of, prepared
from service.io.logs import configure
from service.io.settings import Settings
from service.io.store.keys import Keys

LOG = logging.getLogger("callgrade.serve")

BACKLOG = 2048

SWITCH_S = 0.0005
"""Seconds for which a thread that scores keeps the event loop waiting; with Python's own 5 ms it answers half as fast."""


def run_serve(
    *, host: str | None = None, port: int | None = None, log_level: str | None = None, workers: int = 1
) -> ExitCode:
    """Serve until told to stop. What is not given comes from the settings; SettingsError where one cannot be used."""
    read = read_settings()
    level = (log_level or read.log_level).upper()
    settings = replace(read, log_level=level, host=host or read.host)
    configure(level)
    allow_files()
    database = prepared(settings)
    prepare(database)
    _keyed(settings, Keys(database))
    app = create_app(
        settings, database=database
    )  # here, also for workers: what cannot be used is told before anything listens
    with _listener(settings.host, read.port if port is None else port) as listener:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        _told(listener, workers)
        try:
            with worker_beside(
                log_level=level, grace=settings.graceful_seconds, wanted=settings.worker, stopping=app.state.stopping
            ):
                _serve(app, settings, listener, workers=workers)
        except KeyboardInterrupt:
            LOG.info("stopped")
    return ExitCode.PASSED


def application(settings: Settings) -> FastAPI:
    """The application of a worker process, which starts from nothing but the settings."""
    configure(settings.log_level)
    _own()
    app = create_app(settings, database=database_of(settings))
    end_by(app.state.stopping, grace=settings.graceful_seconds)
    return app


class Processes(Multiprocess):
    """Those that serve, under one that starts and ends them."""

    def __init__(self, config: uvicorn.Config, listener: socket.socket, stopping: threading.Event) -> None:
        super().__init__(config, sockets=[listener])
        self._stopping = stopping

    def terminate_all(self) -> None:
        """Tells them to end."""
        self._stopping.set()
        super().terminate_all()

    def kill(self) -> None:
        """Ends those that have not ended."""
        for process in self.processes:
            process.process.kill()


def _own() -> None:
    """Sets this process up for what it is for: to answer soon, whatever its threads are at."""
    heap.own()
    sys.setswitchinterval(SWITCH_S)


def _keyed(settings: Settings, keys: Keys) -> None:
    """Makes the first key where that is wanted; SettingsError where anybody could come in for want of one."""
    if settings.first_key and (made := keys.create_first()):
        say("there was no key yet; here is one for everything, which is not shown again:")
        typer.echo(made[1], err=True)
    if not is_loopback(settings.host) and not keys.any_key():
        message = (
            f"{settings.host} can be reached from elsewhere, and there is no key yet: "
            "make one with `callgrade keys create --name NAME`, or listen on 127.0.0.1"
        )
        raise SettingsError.at("CALLGRADE_HOST", message)


def _serve(app: FastAPI, settings: Settings, listener: socket.socket, *, workers: int) -> None:
    stopping, grace = app.state.stopping, settings.graceful_seconds
    if workers > 1:
        listener.set_inheritable(True)
        processes = Processes(_config(partial(application, settings), settings, workers), listener, stopping)
        end_by(stopping, grace=grace, last=processes.kill)
        processes.run()
        return
    _own()
    end_by(stopping, grace=grace)
    uvicorn.Server(_config(lambda: app, settings, workers)).run(sockets=[listener])


def _config(factory: object, settings: Settings, workers: int) -> uvicorn.Config:
    return uvicorn.Config(
        factory,  # pyright: ignore[reportArgumentType] (a factory, as `factory` says)
        factory=True,
        workers=workers,
        log_config=None,
        log_level="debug" if settings.log_level == "DEBUG" else "warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        http=Connection,
        ws="none",
        timeout_graceful_shutdown=settings.graceful_seconds,
    )


def _listener(host: str, port: int) -> socket.socket:
    """The bound socket; a usage error where the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        # create_server appends the address once more, in brackets.
        reason = (error.strerror or str(error)).partition(" (while")[0]
        raise typer.BadParameter(f"cannot listen on {host}, port {port}: {reason}") from None
    # Connections inherit it. asyncio sets it only on sockets it made itself, and without it every answer waits 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _told(listener: socket.socket, workers: int) -> None:
    host, port = listener.getsockname()[:2]
    LOG.info("listening", extra={"fields": {"host": host, "port": port, "workers": workers}})
