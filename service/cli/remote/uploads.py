"""Submitting lines to a running service, once: batches and calibrations alike."""

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
from service.cli.rendering.console import console, say
from service.client.blocking import JobClient
from service.client.calls import J, SubmittedJob
from service.client.failures import RefusedError, UnreachableError
from service.errors import InputError, Problem
from service.problems import ProblemDetails

T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)

TRIES = 3
"""How often an upload is tried whose connection breaks; its key keeps it from making two batches."""


class UploadBody(Protocol):
    """Gzipped JSON Lines, each of which came from somewhere."""

    @property
    def file(self) -> BinaryIO:
        """The lines."""
        ...

    def digest(self, options: Mapping[str, str]) -> str:
        """What tells it from another, with its options."""
        ...

    def refuse_line(self, number: int, error: InputError) -> Refusal:
        """The record of a line, from 1, that the service cannot take."""
        ...


class Submit(Protocol[R_co]):
    """What submits gzipped JSON Lines under a key."""

    def __call__(self, lines: BinaryIO, options: Mapping[str, str], *, key: str) -> R_co:
        """What came of it."""
        ...


@dataclass(frozen=True, slots=True)
class Sending:
    """What the command line says of a submission. `options` are those of the route."""

    noun: Literal["batch", "calibration"]
    options: Mapping[str, str]
    key: str | None = None
    """The Idempotency-Key; None: one is made of the content."""

    def key_of(self, upload: UploadBody) -> str:
        """The key that it is sent under."""
        return self.key or f"callgrade-{upload.digest(self.options)}"


def build_options(*, tags: Iterable[str], **given: str | float | bool | None) -> dict[str, str]:
    """Options as they stand in a query. A usage error for a tag that is no key=value, or cannot stand there."""
    found = {name: _render_query_value(value) for name, value in given.items() if value is not None}
    pairs = [tag.partition("=") for tag in tags]
    for key, equals, value in pairs:
        if not (key and equals) or ":" in key or "," in key + value:
            raise typer.BadParameter("expected key=value without a comma, and no colon in the key", param_hint="--tag")
    if pairs:
        found["tags"] = ",".join(f"{key}:{value}" for key, _, value in pairs)
    return found


def _render_query_value(value: str | float | bool) -> str:  # noqa: FBT001 (it is a value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def send(submit: Submit[T], upload: UploadBody, sending: Sending) -> T:
    """What the service makes of a submission. RefusedError where it takes none of it."""
    key = sending.key_of(upload)
    return _insist(lambda: submit(upload.file, sending.options, key=key))


def _insist(send: Callable[[], T]) -> T:
    """What an upload under an Idempotency-Key gives; one whose connection breaks is tried again."""
    for _ in range(TRIES - 1):
        try:
            return send()
        except UnreachableError as error:
            if not error.connected:
                raise
            say("the connection broke; it is sent once more")
    return send()


def tell_submitted(found: SubmittedJob[J], what: str, sending: Sending) -> None:
    """That a submission was taken, now or before. `what`: what is in it."""
    if found.earlier:
        again = "another --idempotency-key" if sending.key else "--idempotency-key TEXT"
        before = f"this was submitted before, at {found.job.created_at}, and is {found.job.status.replace('_', ' ')}"
        say(f"{before}; it is not run again, {again} makes another {sending.noun} of it")
        return
    say(f"submitted {what}")
    if not sending.key:
        say(
            f"the Idempotency-Key is made of the content: the same command again gives this {sending.noun}, not a second one"
        )


def print_id(client: JobClient[J], name: str, *, watch: bool) -> ExitCode:
    """The id alone on standard output; then how it gets on, where that is wanted."""
    say(f"{name_command(client)} watch {name} shows how it gets on")
    console().print(name, soft_wrap=True)
    sys.stdout.flush()
    return watch_to_the_end(client, name) if watch else ExitCode.PASSED


def list_refusals(error: RefusedError, upload: UploadBody, sending: Sending) -> list[Refusal]:
    """The records that a service refused, each at its place. Raises what is told where it is not about lines."""
    return [upload.refuse_line(number, found) for number, found in _read_refused_lines(error.problem, sending)]


def _read_refused_lines(problem: ProblemDetails, sending: Sending) -> Sequence[tuple[int, InputError]]:
    """The lines of a body, from 1, that were refused, pointers of their errors starting at the line.

    Raises what is told where it is not about lines.
    """
    lines: dict[int, list[Problem]] = {}
    for place in problem.errors:
        number, _, rest = place.pointer.removeprefix("/").partition("/")
        lines.setdefault(int(number) if number.isdigit() else 0, []).append(
            Problem(f"/{rest}" if rest else "", place.detail)
        )
    if problem.status != 400 or not lines or 0 in lines:
        hint = (
            f"; --idempotency-key TEXT makes another {sending.noun} of it"
            if problem.status == 410 and not sending.key
            else ""
        )
        raise build_error(problem, hint=hint)
    return [(number, InputError(found)) for number, found in sorted(lines.items())]
