"""Connect to the service that runs jobs, and turn its refusals into errors of the command."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urlsplit

import typer

from service.client.client import Client
from service.client.failures import ONCE, ForeignError, RefusedError, UnreachableError
from service.client.jobs import BatchClient, CalibrationClient
from service.errors import BusyError, CallgradeError, InputError, Problem, SettingsError
from service.problems import ProblemDetails
from service.store.jobs.job import ID_PREFIXES

AnyJobs: TypeAlias = BatchClient | CalibrationClient


@dataclass(frozen=True, slots=True)
class Service:
    """The URL of a service, and the API key for it."""

    server: str
    key: str | None = None

    @contextmanager
    def connect(self) -> Generator[Client]:
        """Open a client; its errors within the block become errors of the command."""
        parts = urlsplit(self.server)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            raise typer.BadParameter("expected a URL such as http://127.0.0.1:8000", param_hint="--server")
        if self.key is not None and not (self.key.isascii() and self.key.isprintable()):
            raise typer.BadParameter("expected a key as `callgrade keys create` prints it", param_hint="--key")
        client = Client(self.server, self.key, retries=ONCE)  # the commands retry, and report each attempt
        try:
            yield client
        except UnreachableError as error:
            raise SettingsError.at("", f"no answer from {self.server} (--server, CALLGRADE_SERVER): {error}") from None
        except ForeignError as error:
            raise SettingsError.at("", f"{self.server}: {error}") from None
        except RefusedError as error:
            raise build_error(error.problem) from None
        finally:
            client.close()

    @contextmanager
    def find(self, job_id: str) -> Generator[AnyJobs]:
        """Open the client for the kind of job that an id names. A usage error for an id of neither kind."""
        kinds = {ID_PREFIXES["scores"]: "batches", ID_PREFIXES["calibration"]: "calibrations"}
        prefix = job_id.partition("_")[0]
        if prefix not in kinds:
            raise typer.BadParameter(f"expected the id of a job, such as {'_... or '.join(kinds)}_..., not {job_id}")
        with self.connect() as client:
            yield client.batches if kinds[prefix] == "batches" else client.calibrations


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
