"""Connect to the service that takes batches and calibrations, and turn its refusals into errors of the command."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

import typer

from service.client.blocking import BatchClient, CalibrationClient, Client
from service.client.failures import ONCE, ForeignError, RefusedError, UnreachableError
from service.errors import BusyError, CallgradeError, InputError, Problem, SettingsError
from service.problems import ProblemDetails

C = TypeVar("C", BatchClient, CalibrationClient)


@dataclass(frozen=True, slots=True)
class Service:
    """The URL of a service, and the API key for it."""

    server: str
    key: str | None = None

    def batches(self) -> AbstractContextManager[BatchClient]:
        """Open the client for batches."""
        return self._open(lambda client: client.batches)

    def calibrations(self) -> AbstractContextManager[CalibrationClient]:
        """Open the client for calibrations."""
        return self._open(lambda client: client.calibrations)

    def jobs(
        self, context: typer.Context
    ) -> AbstractContextManager[BatchClient] | AbstractContextManager[CalibrationClient]:
        """Open the client for the kind of job that the command's group is about."""
        group = context.parent.info_name if context.parent else None
        return self.calibrations() if group == "calibrate" else self.batches()

    @contextmanager
    def _open(self, part: Callable[[Client], C]) -> Generator[C]:
        """Open a part of a client; its errors within the block become errors of the command."""
        parts = urlsplit(self.server)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            raise typer.BadParameter("expected a URL such as http://127.0.0.1:8000", param_hint="--server")
        if self.key is not None and not (self.key.isascii() and self.key.isprintable()):
            raise typer.BadParameter("expected a key as `callgrade keys create` prints it", param_hint="--key")
        client = Client(self.server, self.key, retries=ONCE)  # the commands retry, and report each attempt
        try:
            yield part(client)
        except UnreachableError as error:
            raise SettingsError.at("", f"no answer from {self.server} (--server, CALLGRADE_SERVER): {error}") from None
        except ForeignError as error:
            raise SettingsError.at("", f"{self.server}: {error}") from None
        except RefusedError as error:
            raise build_error(error.problem) from None
        finally:
            client.close()


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
