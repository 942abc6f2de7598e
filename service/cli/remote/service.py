"""The service that batches and calibrations are submitted to, and what is told of its refusals."""

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
    """Where it is, and the key for it."""

    server: str
    key: str | None = None

    def batches(self) -> AbstractContextManager[BatchClient]:
        """Its batches."""
        return self._open(lambda client: client.batches)

    def calibrations(self) -> AbstractContextManager[CalibrationClient]:
        """Its calibrations."""
        return self._open(lambda client: client.calibrations)

    def jobs(
        self, context: typer.Context
    ) -> AbstractContextManager[BatchClient] | AbstractContextManager[CalibrationClient]:
        """Those that the group of the command of a context is about."""
        group = context.parent.info_name if context.parent else None
        return self.calibrations() if group == "calibrate" else self.batches()

    @contextmanager
    def _open(self, part: Callable[[Client], C]) -> Generator[C]:
        """A part of a client; what goes wrong with it within the block is told as an error of the command's."""
        parts = urlsplit(self.server)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            raise typer.BadParameter("expected a URL such as http://127.0.0.1:8000", param_hint="--server")
        if self.key is not None and not (self.key.isascii() and self.key.isprintable()):
            raise typer.BadParameter("expected a key as `callgrade keys create` prints it", param_hint="--key")
        client = Client(self.server, self.key, retries=ONCE)  # the commands tell of every attempt themselves
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
    """What is told of a problem, and which exit code it has: called wrongly, bad data, or a fault elsewhere."""
    if problem.status in {401, 403}:
        return SettingsError.at("--key", f"{problem.detail} (or CALLGRADE_API_KEY)")
    if problem.status in {404, 405, 409, 410}:
        return SettingsError.at("", problem.detail + hint)
    if problem.status < 500 and problem.status != 429:
        places = [Problem(one.pointer, one.detail) for one in problem.errors] or [Problem("", problem.detail)]
        return InputError(places)
    return BusyError(problem.detail)
