"""`callgrade worker --check`: whether a worker of this machine is alive, for a probe, since a worker listens on no port."""

from __future__ import annotations

import threading

from sqlalchemy.exc import DBAPIError

from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.rendering.console import say
from service.store.database import Database, is_transient
from service.store.workers import SILENT_S, Workers, is_of_this_machine
from service.wiring import build_database

PATIENCE = 5.0
"""Seconds that the database has."""


def check_worker() -> ExitCode:
    """PASSED where a worker of this machine gave a sign of life just now, else FAILED.

    A database that is out of reach says nothing of the worker, which waits for it: that is PASSED too, lest a probe restarts
    it, and with it what it had under way.
    """
    database = build_database(read_settings())
    found: list[bool] = []
    # A thread that the end of the process does not wait for: a connection may hang for long.
    thread = threading.Thread(target=lambda: found.append(_alive(database)), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if not found:
        say("the database does not answer; whether the worker is alive is unknown")
    return ExitCode.PASSED if all(found) else ExitCode.FAILED


def _alive(database: Database) -> bool:
    try:
        known = Workers(database).list_workers()
    except DBAPIError as error:
        return is_transient(error)  # tables that are missing are no passing trouble: no worker ever was there
    return any(worker.silent <= SILENT_S for worker in known if is_of_this_machine(worker.id))
