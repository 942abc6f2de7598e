"""Talk to the service that runs jobs: connect, submit, and turn its refusals into errors of the command."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

import typer

from service.cli.exits import ExitCode
from service.cli.following import watch_to_the_end
from service.cli.inputs import Refusal, locate_error
from service.cli.screen import print_line, say
from service.client.client import Client
from service.client.failures import ONCE, ForeignError, RefusedError, UnreachableError
from service.client.jobs import BatchClient, CalibrationClient, SubmittedJob, build_key
from service.errors import BusyError, CallgradeError, InputError, Problem, SettingsError
from service.problems import ProblemDetails
from service.reading.trace_files import RecordPlace
from service.store.jobs.batches import Batch
from service.store.jobs.calibrations import Calibration
from service.store.jobs.job import ID_PREFIXES

T = TypeVar("T")

AnyJobs: TypeAlias = BatchClient | CalibrationClient

MAX_ATTEMPTS = 3
"""How often to try an upload whose connection breaks; its key keeps it from becoming two jobs."""


@contextmanager
def connect(server: str, key: str | None) -> Generator[Client]:
    """Open a client; its errors within the block become errors of the command."""
    parts = urlsplit(server)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise typer.BadParameter("expected a URL such as http://127.0.0.1:8000", param_hint="--server")
    if key is not None and not (key.isascii() and key.isprintable()):
        raise typer.BadParameter("expected a key as `callgrade keys create` prints it", param_hint="--key")
    client = Client(server, key, retries=ONCE)  # the commands retry, and report each attempt
    try:
        yield client
    except UnreachableError as error:
        raise SettingsError.at("", f"no answer from {server} (--server, CALLGRADE_SERVER): {error}") from None
    except ForeignError as error:
        raise SettingsError.at("", f"{server}: {error}") from None
    except RefusedError as error:
        raise _build_error(error.problem) from None
    finally:
        client.close()


@contextmanager
def connect_for(job_id: str, server: str, key: str | None) -> Generator[AnyJobs]:
    """Open the client for the kind of job that an id names. A usage error for an id of neither kind."""
    kinds = {ID_PREFIXES["scores"]: "batches", ID_PREFIXES["calibration"]: "calibrations"}
    prefix = job_id.partition("_")[0]
    if prefix not in kinds:
        raise typer.BadParameter(f"expected the id of a job, such as {'_... or '.join(kinds)}_..., not {job_id}")
    with connect(server, key) as client:
        yield client.batches if kinds[prefix] == "batches" else client.calibrations


def _build_error(problem: ProblemDetails, *, hint: str = "") -> CallgradeError:
    """Build the error for a problem response; its type decides the exit code: wrong usage, bad data, or a fault elsewhere."""
    if problem.status in {401, 403}:
        return SettingsError.at("--key", f"{problem.detail} (or CALLGRADE_API_KEY)")
    if problem.status in {404, 405, 409, 410}:
        return SettingsError.at("", problem.detail + hint)
    if problem.status < 500 and problem.status != 429:
        places = [Problem(one.pointer, one.detail) for one in problem.errors] or [Problem("", problem.detail)]
        return InputError(places)
    return BusyError(problem.detail)


@dataclass
class JobUpload:
    """Gzipped JSON Lines for a job, in a temporary file that is removed on leaving the block, and where each line came from.

    `options` are query parameters of the route. `given_key`: the Idempotency-Key, which keeps a repeated submission from counting
    twice; None for one derived from the content. `refused` holds the records that are not in it because they cannot be read.
    """

    noun: Literal["batch", "calibration"]
    options: Mapping[str, str]
    given_key: str | None = None
    places: list[tuple[RecordPlace, bool]] = field(default_factory=list[tuple[RecordPlace, bool]])
    """Of each line; and whether it was a trace without a request around it."""
    refused: list[Refusal] = field(default_factory=list[Refusal])

    def __enter__(self) -> JobUpload:
        self._file: BinaryIO = tempfile.TemporaryFile()  # type: ignore[assignment]
        self._packed = gzip.GzipFile(fileobj=self._file, mode="wb", compresslevel=6, mtime=0)
        return self

    def __exit__(self, *_: object) -> None:
        self._packed.close()
        self._file.close()

    def add(self, line: bytes, place: RecordPlace, *, bare: bool = False) -> None:
        """Add a line, which ends in a newline."""
        self.places.append((place, bare))
        self._packed.write(line)

    def send(self, submit: Callable[[BinaryIO, Mapping[str, str], str], T]) -> T:
        """Submit everything; send it again if the connection breaks, which the key makes safe. RefusedError if it is refused."""
        self._packed.close()
        key = self.given_key or build_key(self._file, self.options)
        for _ in range(MAX_ATTEMPTS - 1):
            try:
                return submit(self._file, self.options, key)
            except UnreachableError as error:
                if not error.connected:
                    raise
                say("the connection broke; sending again")
        return submit(self._file, self.options, key)

    def refuse_line(self, number: int, error: InputError) -> Refusal:
        """Build the refusal of a line (from 1) that the service does not accept; the error's pointers start at the line."""
        if not 1 <= number <= len(self.places):
            return Refusal(RecordPlace("the service"), error)
        place, bare = self.places[number - 1]
        return Refusal(place, locate_error(error, place, bare=bare))

    def list_refusals(self, error: RefusedError) -> list[Refusal]:
        """List the records that the service refused, each with its place. Raise the error if it is not about lines."""
        lines: dict[int, list[Problem]] = {}
        for place in error.problem.errors:
            number, _, rest = place.pointer.removeprefix("/").partition("/")
            problem = Problem(f"/{rest}" if rest else "", place.detail)
            lines.setdefault(int(number) if number.isdigit() else 0, []).append(problem)
        if error.problem.status != 400 or not lines or 0 in lines:
            used = error.problem.status == 410 and not self.given_key
            hint = f"; to run it as another {self.noun}, use --idempotency-key TEXT" if used else ""
            raise _build_error(error.problem, hint=hint)
        return [self.refuse_line(number, InputError(found)) for number, found in sorted(lines.items())]

    def print_submitted(
        self, client: AnyJobs, submitted: SubmittedJob[Batch] | SubmittedJob[Calibration], what: str, *, watch: bool
    ) -> ExitCode:
        """Print that it was accepted, now or earlier, and its id on standard output; with `watch`, then show the progress.

        `what`: what it contains.
        """
        job = submitted.job
        if submitted.earlier:
            option = "another --idempotency-key" if self.given_key else "--idempotency-key TEXT"
            earlier = f"this was already submitted at {job.created_at} (status: {job.status.replace('_', ' ')})"
            say(f"{earlier}; to run it again as another {self.noun}, use {option}")
        else:
            say(f"submitted {what}")
            if not self.given_key:
                say(
                    "the Idempotency-Key is derived from the content: "
                    f"running the same command again returns this {self.noun}, not a second one"
                )
        say(f"to follow it: callgrade jobs watch {job.id}")
        print_line(job.id)
        return watch_to_the_end(client, job.id) if watch else ExitCode.PASSED


def build_options(*, tags: Iterable[str] | None, **given: str | float | bool | None) -> dict[str, str]:
    """Render options as query parameters. A usage error for a tag that is not key=value or has forbidden characters."""
    options = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in given.items()
        if value is not None
    }
    pairs = [tag.partition("=") for tag in tags or ()]
    for key, equals, value in pairs:
        if not (key and equals) or ":" in key or "," in key + value:
            raise typer.BadParameter("expected key=value without a comma, and no colon in the key", param_hint="--tag")
    if pairs:
        options["tags"] = ",".join(f"{key}:{value}" for key, _, value in pairs)
    return options
