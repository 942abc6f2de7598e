"""`callgrade worker --check`: a liveness probe for the worker of this machine, which listens on no port."""

from __future__ import annotations

import threading

from sqlalchemy.exc import DBAPIError

from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.rendering.console import say
from service.store.database import Database, is_transient
from service.store.jobs.workers import SILENT_S, Workers, is_of_this_machine
from service.wiring import build_database

DATABASE_TIMEOUT_S = 5.0
"""How long to wait for the database, in seconds."""


def check_worker() -> ExitCode:
    """Return PASSED if a worker of this machine gave a recent sign of life, else FAILED.

    An unreachable database also means PASSED: the worker waits for it, and a probe must not restart the worker and lose its
    work.
    """
    database = build_database(read_settings())
    answers: list[bool] = []
    # A daemon thread, which does not delay the end of the process: a connection may hang for long.
    thread = threading.Thread(target=lambda: answers.append(_is_alive(database)), daemon=True)
    thread.start()
    thread.join(DATABASE_TIMEOUT_S)
    if not answers:
        say("the database does not answer, so it is unknown whether the worker is alive")
    return ExitCode.PASSED if all(answers) else ExitCode.FAILED


def _is_alive(database: Database) -> bool:
    try:
        known = Workers(database).list_workers()
    except DBAPIError as error:
        return is_transient(error)  # missing tables will not go away by themselves: there never was a worker
    return any(worker.silent <= SILENT_S for worker in known if is_of_this_machine(worker.id))
