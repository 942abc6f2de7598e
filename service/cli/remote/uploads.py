"""Submit batches and calibrations to a running service. An idempotency key keeps a repeated submission from counting twice."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Literal, Protocol, TypeVar

import typer

from service.cli.exits import ExitCode
from service.cli.inputs import Refusal
from service.cli.remote.jobs import name_command, watch_to_the_end
from service.cli.remote.service import build_error
from service.cli.rendering.console import build_console, say
from service.client.blocking import JobClient
from service.client.calls import J, SubmittedJob
from service.client.failures import RefusedError, UnreachableError
from service.errors import InputError, Problem
from service.problems import ProblemDetails

T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)

MAX_ATTEMPTS = 3
"""How often to try an upload whose connection breaks; its key keeps it from becoming two batches."""


class UploadBody(Protocol):
    """Gzipped JSON Lines whose origins are known."""

    @property
    def file(self) -> BinaryIO:
        """The gzipped lines."""
        ...

    def digest(self, options: Mapping[str, str]) -> str:
        """Return a hash of the lines and the options."""
        ...

    def refuse_line(self, number: int, error: InputError) -> Refusal:
        """Build the refusal of a line (from 1) that the service does not accept."""
        ...


class Submit(Protocol[R_co]):
    """A function that submits gzipped JSON Lines under an idempotency key."""

    def __call__(self, lines: BinaryIO, options: Mapping[str, str], *, key: str) -> R_co:
        """Submit the lines."""
        ...


@dataclass(frozen=True, slots=True)
class UploadRequest:
    """The command line's part of a submission. `options` are query parameters of the route."""

    noun: Literal["batch", "calibration"]
    options: Mapping[str, str]
    key: str | None = None
    """The Idempotency-Key; None means one derived from the content."""

    def build_key(self, upload: UploadBody) -> str:
        """Return the Idempotency-Key: the given one, or one derived from the content."""
        return self.key or f"callgrade-{upload.digest(self.options)}"


def build_options(*, tags: Iterable[str], **given: str | float | bool | None) -> dict[str, str]:
    """Render options as query parameters. A usage error for a tag that is not key=value or has forbidden characters."""
    options = {name: _render_query_value(value) for name, value in given.items() if value is not None}
    pairs = [tag.partition("=") for tag in tags]
    for key, equals, value in pairs:
        if not (key and equals) or ":" in key or "," in key + value:
            raise typer.BadParameter("expected key=value without a comma, and no colon in the key", param_hint="--tag")
    if pairs:
        options["tags"] = ",".join(f"{key}:{value}" for key, _, value in pairs)
    return options


def _render_query_value(value: str | float | bool) -> str:  # noqa: FBT001 (a value, not a flag)
    return str(value).lower() if isinstance(value, bool) else str(value)


def send(submit: Submit[T], upload: UploadBody, upload_request: UploadRequest) -> T:
    """Submit the body and return the service's answer. RefusedError if the service accepts nothing of it."""
    key = upload_request.build_key(upload)
    return _send_with_retries(lambda: submit(upload.file, upload_request.options, key=key))


def _send_with_retries(send: Callable[[], T]) -> T:
    """Send an upload, and send it again if the connection breaks, which its Idempotency-Key makes safe."""
    for _ in range(MAX_ATTEMPTS - 1):
        try:
            return send()
        except UnreachableError as error:
            if not error.connected:
                raise
            say("the connection broke; sending again")
    return send()


def print_submitted(submitted: SubmittedJob[J], what: str, upload_request: UploadRequest) -> None:
    """Print that a submission was accepted, now or earlier. `what`: what it contains."""
    if submitted.earlier:
        option = "another --idempotency-key" if upload_request.key else "--idempotency-key TEXT"
        status = submitted.job.status.replace("_", " ")
        earlier = f"this was already submitted at {submitted.job.created_at} (status: {status})"
        say(f"{earlier}; to run it again as another {upload_request.noun}, use {option}")
        return
    say(f"submitted {what}")
    if not upload_request.key:
        say(
            "the Idempotency-Key is derived from the content: "
            f"running the same command again returns this {upload_request.noun}, not a second one"
        )


def print_id(client: JobClient[J], name: str, *, watch: bool) -> ExitCode:
    """Print the id on standard output; with `watch`, then show the progress."""
    say(f"to follow it: {name_command(client)} watch {name}")
    build_console().print(name, soft_wrap=True)
    sys.stdout.flush()
    return watch_to_the_end(client, name) if watch else ExitCode.PASSED


def list_refusals(error: RefusedError, upload: UploadBody, upload_request: UploadRequest) -> list[Refusal]:
    """List the records that the service refused, each with its place. Raise the error if it is not about lines."""
    return [upload.refuse_line(number, found) for number, found in _read_refused_lines(error.problem, upload_request)]


def _read_refused_lines(problem: ProblemDetails, upload_request: UploadRequest) -> Sequence[tuple[int, InputError]]:
    """Read which lines of the body (from 1) were refused, with pointers that start at the line.

    Raise the error if it is not about lines.
    """
    lines: dict[int, list[Problem]] = {}
    for place in problem.errors:
        number, _, rest = place.pointer.removeprefix("/").partition("/")
        lines.setdefault(int(number) if number.isdigit() else 0, []).append(
            Problem(f"/{rest}" if rest else "", place.detail)
        )
    if problem.status != 400 or not lines or 0 in lines:
        hint = (
            f"; to run it as another {upload_request.noun}, use --idempotency-key TEXT"
            if problem.status == 410 and not upload_request.key
            else ""
        )
        raise build_error(problem, hint=hint)
    return [(number, InputError(found)) for number, found in sorted(lines.items())]
