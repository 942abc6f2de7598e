"""uvicorn around the application."""

from __future__ import annotations

import logging
import socket
import sys
import threading
import webbrowser
from contextlib import suppress
from functools import partial

import typer
import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from service import heap
from service.api.app import create_app
from service.api.cross_site import is_loopback
from service.api.fairness.connections import Connection
from service.cli.rendering.console import say
from service.cli.serving.ending import EndNotice, end_by
from service.errors import SettingsError
from service.logs.lines import configure
from service.scoring_process import ScoringProcess
from service.settings import Settings
from service.store.access.keys import Keys
from service.web.app import add_pages
from service.wiring import build_database

LOG = logging.getLogger("callgrade.serve")

BACKLOG = 2048

SWITCH_S = 0.0005
"""Seconds for which a thread that scores keeps the event loop waiting; with Python's own 5 ms it answers half as fast."""

HUNG_S = 30
"""Seconds after which a process that does not say that it is alive is taken for hung, and replaced. It cannot say so while it
loads: uvicorn's own 5 s are less than that takes on a busy machine, where processes were replaced for ever."""


def build_application(settings: Settings, token: str) -> FastAPI:
    """The application of a worker process, which starts from nothing but the settings and the local token."""
    configure(settings.log_level)
    _own()
    app = create_app(settings, database=build_database(settings), large_scorer=ScoringProcess())
    add_pages(app, token=token)
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
    heap.claim_process()
    sys.setswitchinterval(SWITCH_S)


def make_first_key(settings: Settings, keys: Keys) -> None:
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


class Server(uvicorn.Server):
    """The one process that serves."""

    def __init__(self, config: uvicorn.Config, notice: EndNotice) -> None:
        super().__init__(config)
        self._notice = notice

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to answer; signals come to the server from before that on."""
        await super().startup(sockets)
        self.should_exit = self.should_exit or self._notice.given


def serve_on(
    app: FastAPI, settings: Settings, listener: socket.socket, notice: EndNotice, *, workers: int, token: str
) -> None:
    """Serves until told to stop. `token`: what opens the pages of further processes while there is no key."""
    stopping, grace = app.state.stopping, settings.graceful_seconds
    if workers > 1:
        listener.set_inheritable(True)
        processes = Processes(
            _build_config(partial(build_application, settings, token), settings, workers), listener, stopping
        )
        end_by(stopping, grace=grace, last=processes.kill)
        if notice.given:
            processes.should_exit.set()
        processes.run()
        return
    _own()
    end_by(stopping, grace=grace)
    Server(_build_config(lambda: app, settings, workers), notice).run(sockets=[listener])


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
        http=Connection,
        ws="none",
        timeout_graceful_shutdown=settings.graceful_seconds,
        timeout_worker_healthcheck=HUNG_S,
    )


def listener_at(host: str, port: int) -> socket.socket:
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


def log_address(listener: socket.socket, workers: int) -> None:
    """Says where the service listens."""
    host, port = listener.getsockname()[:2]
    LOG.info("listening", extra={"fields": {"host": host, "port": port, "workers": workers}})


def build_page_url(listener: socket.socket, token: str) -> str:
    """The address that a person opens; with `token` it signs them in."""
    bound, port = listener.getsockname()[:2]
    host = str({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bound, bound))  # noqa: S104 (what listens everywhere is reached here too)
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/" + (f"sign-in?token={token}" if token else "")


def show_pages(url: str, *, browser: bool) -> None:
    """Says where the pages are, and opens them. It stands beside the log, not in it, for it may open all there is."""
    with suppress(OSError):  # nobody reads it
        typer.echo(f"pages: {url}")
    if browser:
        # A browser on a terminal would wait until it is closed; one that is not there is no reason to stop.
        threading.Thread(target=webbrowser.open, args=(url,), name="browser", daemon=True).start()
