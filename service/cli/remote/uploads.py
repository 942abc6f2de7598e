"""Submit batches and calibrations to a running service. An idempotency key keeps a repeated submission from counting twice."""

from __future__ import annotations

import gzip
import hashlib
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import BinaryIO, Literal, TypeVar

import typer
from pydantic_core import to_json

from service.cli.exits import ExitCode
from service.cli.inputs import Refusal, locate_error
from service.cli.remote.following import watch_to_the_end
from service.cli.remote.service import build_error
from service.cli.rendering.console import build_console, say
from service.client.failures import RefusedError, UnreachableError
from service.client.jobs import J, JobClient, SubmittedJob
from service.errors import InputError, Problem
from service.reading.trace_files import RecordPlace

T = TypeVar("T")

MAX_ATTEMPTS = 3
"""How often to try an upload whose connection breaks; its key keeps it from becoming two jobs."""


@dataclass
class JobUpload:
    """Gzipped JSON Lines for a job, in a temporary file that is removed on leaving the block, and where each line came from.

    `options` are query parameters of the route. `given_key`: the Idempotency-Key; None for one derived from the content.
    `refused` holds the records that are not in it because they cannot be read.
    """

    noun: Literal["batch", "calibration"]
    options: Mapping[str, str]
    given_key: str | None = None
    places: list[tuple[RecordPlace, bool]] = field(default_factory=list[tuple[RecordPlace, bool]])
    """Of each line; and whether it was a trace without a request around it."""
    refused: list[Refusal] = field(default_factory=list[Refusal])

    def __post_init__(self) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115 (closed by __exit__)
        self._packed = gzip.GzipFile(fileobj=self.file, mode="wb", compresslevel=6, mtime=0)
        self._hash = hashlib.sha256()

    def __enter__(self) -> JobUpload:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._packed.close()
        self.file.close()

    def add(self, line: bytes, place: RecordPlace, *, bare: bool = False) -> None:
        """Add a line, which ends in a newline."""
        self.places.append((place, bare))
        self._hash.update(line)
        self._packed.write(line)

    def send(self, submit: Callable[[BinaryIO, Mapping[str, str], str], T]) -> T:
        """Submit everything; send it again if the connection breaks, which the key makes safe. RefusedError if it is refused."""
        self._packed.close()
        digest = self._hash.copy()
        digest.update(to_json(sorted(self.options.items())))
        key = self.given_key or f"callgrade-{digest.hexdigest()}"
        for _ in range(MAX_ATTEMPTS - 1):
            try:
                return submit(self.file, self.options, key)
            except UnreachableError as error:
                if not error.connected:
                    raise
                say("the connection broke; sending again")
        return submit(self.file, self.options, key)

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
            raise build_error(error.problem, hint=hint)
        return [self.refuse_line(number, InputError(found)) for number, found in sorted(lines.items())]

    def print_submitted(self, client: JobClient[J], submitted: SubmittedJob[J], what: str, *, watch: bool) -> ExitCode:
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
        build_console().print(job.id, soft_wrap=True)
        sys.stdout.flush()
        return watch_to_the_end(client, job.id) if watch else ExitCode.PASSED


def build_options(*, tags: Iterable[str], **given: str | float | bool | None) -> dict[str, str]:
    """Render options as query parameters. A usage error for a tag that is not key=value or has forbidden characters."""
    options = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in given.items()
        if value is not None
    }
    pairs = [tag.partition("=") for tag in tags]
    for key, equals, value in pairs:
        if not (key and equals) or ":" in key or "," in key + value:
            raise typer.BadParameter("expected key=value without a comma, and no colon in the key", param_hint="--tag")
    if pairs:
        options["tags"] = ",".join(f"{key}:{value}" for key, _, value in pairs)
    return options
