"""Talk to the service that runs jobs: connect, submit, and turn its refusals into errors of the command."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO, TypeVar
from urllib.parse import urlsplit

import typer

from service.cli.inputs import Refusal, locate_error
from service.cli.screen import pluralize, print_line, say
from service.client.client import Client
from service.client.failures import ForeignError, RefusedError, Retries, UnreachableError
from service.client.jobs import BatchClient, CalibrationClient, SubmittedJob, build_key
from service.errors import BusyError, CallgradeError, InputError, Problem, SettingsError
from service.problems import ProblemDetails
from service.reading.places import RecordPlace
from service.store.jobs.job import ID_PREFIXES
from service.store.jobs.jobs import Batch

T = TypeVar("T")

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
        raise SettingsError.at(
            "", f"no answer from {server} (--server): {error}; to start one: callgrade serve"
        ) from None
    except ForeignError as error:
        raise SettingsError.at("", f"{server}: {error}") from None
    except RefusedError as error:
        raise _build_error(error.problem) from None


@contextmanager
def connect_for(job_id: str, server: str, key: str | None) -> Generator[BatchClient | CalibrationClient]:
    """Open the client for the kind of job that an id names. A usage error for an id of no kind."""
    kinds = {ID_PREFIXES["scores"]: "batches", ID_PREFIXES["calibration"]: "calibrations"}
    kind = kinds.get(job_id.partition("_")[0])
    if kind is None:
        raise typer.BadParameter(f"expected the id of a job, such as {'_... or '.join(kinds)}_..., not {job_id}")
    with connect(server, key) as client:
        yield client.batches if kind == "batches" else client.calibrations


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
class BatchUpload:
    """Gzipped JSON Lines for a batch, in a temporary file that is removed on leaving the block, and where each line came from.

    `options` are query parameters of the route. `given_key`: the Idempotency-Key, which keeps a repeated submission from counting
    twice; None for one derived from the content.
    """

    options: Mapping[str, str]
    given_key: str | None = None
    places: list[tuple[RecordPlace, bool]] = field(default_factory=list[tuple[RecordPlace, bool]])
    """Of each line; and whether it was a trace without a request around it."""

    def __enter__(self) -> BatchUpload:
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
        """Submit everything. RefusedError if it is refused."""
        self._packed.close()
        return submit(self._file, self.options, self.given_key or build_key(self._file, self.options))

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
            hint = "; to run it as another batch, use --idempotency-key TEXT" if used else ""
            raise _build_error(error.problem, hint=hint)
        return [self.refuse_line(number, InputError(found)) for number, found in sorted(lines.items())]

    def print_submitted(self, submitted: SubmittedJob[Batch], *, watched: bool) -> None:
        """Print that it was accepted, now or earlier, how to follow it if it is not `watched`, and its id on standard output."""
        job = submitted.job
        if submitted.earlier:
            option = "another --idempotency-key" if self.given_key else "--idempotency-key TEXT"
            earlier = f"this was already submitted at {job.created_at} (status: {job.status.replace('_', ' ')})"
            say(f"{earlier}; to run it again as another batch, use {option}")
        else:
            repeated = "" if self.given_key else "; the same command again returns this batch, not a second one"
            say(f"submitted {pluralize(job.request_counts.total, 'item')}{repeated}")
        if not watched:
            say(f"to follow it: callgrade jobs watch {job.id}")
        print_line(job.id)


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
