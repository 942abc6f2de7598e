"""Talk to the service that runs jobs: connect, and turn its refusals into errors of the command."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from urllib.parse import urlsplit

import typer

from service.client.client import Client
from service.client.failures import ForeignError, RefusedError, Retries, UnreachableError
from service.client.jobs import BatchClient, CalibrationClient
from service.errors import BusyError, CallgradeError, InputError, Problem, SettingsError
from service.problems import ProblemDetails
from service.store.jobs.job import ID_PREFIXES

RETRIES = Retries(attempts=3, first_wait_s=0.2, longest_wait_s=5.0)
"""Somebody is waiting. Repeating is safe: the key of an upload keeps it from becoming two batches."""


@contextmanager
def connect(server: str, key: str | None) -> Generator[Client]:
    """Open a client; its errors within the block become errors of the command."""
    parts = urlsplit(server)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise typer.BadParameter("expected a URL such as http://127.0.0.1:8000", param_hint="--server")
    if key is not None and not (key.isascii() and key.isprintable()):
        raise typer.BadParameter("expected a key as `callgrade keys create` prints it", param_hint="--key")
    try:
        with Client(server, key, retries=RETRIES) as client:
            yield client
    except UnreachableError as error:
        text = f"no answer from {server} (--server): {error}; to start one: callgrade serve"
        raise SettingsError.at("", text) from None
    except ForeignError as error:
        raise SettingsError.at("", f"{server}: {error}") from None
    except RefusedError as error:
        raise build_error(error.problem) from None


@contextmanager
def connect_for(job_id: str, server: str, key: str | None) -> Generator[BatchClient | CalibrationClient]:
    """Open the client for the kind of job that an id names. A usage error for an id of no kind."""
    kind = job_id.partition("_")[0]
    if kind not in ID_PREFIXES.values():
        kinds = "_... or ".join(ID_PREFIXES.values())
        raise typer.BadParameter(f"expected the id of a job, such as {kinds}_..., not {job_id}")
    with connect(server, key) as client:
        yield client.calibrations if kind == ID_PREFIXES["calibration"] else client.batches


def build_error(problem: ProblemDetails, *, hint: str = "") -> CallgradeError:
    """Build the error for a problem response; its type decides the exit code: wrong usage, bad data, or a fault elsewhere."""
    if problem.status in {401, 403}:
        return SettingsError.at("--key", f"{problem.detail} (or CALLGRADE_API_KEY)")
    if problem.status in {404, 405, 409, 410}:
        return SettingsError.at("", problem.detail + hint)
    if problem.status < 500 and problem.status != 429:
        places = [Problem(one.pointer, one.detail) for one in problem.errors] or [Problem("", problem.detail)]
        return InputError(places)
    return BusyError(problem.detail)
