"""`callgrade batch submit`: any file of traces becomes a batch, once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import typer
from pydantic import JsonValue

from service.cli.batch import watch_to_the_end
from service.cli.batch_body import Body
from service.cli.batch_service import Service, error_of
from service.cli.batch_table import quote_line
from service.cli.console import console, plural, say
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.inputs import Refused, names_file, read_text, tell_guesses
from service.cli.score import REFUSALS_TOLD, say_refused
from service.errors import CallgradeError, InputError, Problem
from service.io.bootstrap import limits_of
from service.io.client import Job, RefusedError, Submitted, UnreachableError
from service.io.files import read_yaml
from service.io.problems import ProblemDetails
from service.io.quotes import Quote
from service.io.store.batch import Batch

T = TypeVar("T")

TRIES = 3
"""How often an upload is tried whose connection breaks; its key keeps it from making two batches."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What the command line says of a batch. `options` are those of POST /v1/batches."""

    file: Path
    options: Mapping[str, str]
    rubric: str | None = None
    input_format: str = "auto"
    key: str | None = None
    """The Idempotency-Key; None: one is made of the content."""


def options_of(*, tags: Iterable[str], **given: str | float | bool | None) -> dict[str, str]:
    """Options as they stand in a query. A usage error for a tag that is no key=value, or cannot stand there."""
    found = {name: _queried(value) for name, value in given.items() if value is not None}
    pairs = [tag.partition("=") for tag in tags]
    for key, equals, value in pairs:
        if not (key and equals) or ":" in key or "," in key + value:
            raise typer.BadParameter("expected key=value without a comma, and no colon in the key", param_hint="--tag")
    if pairs:
        found["tags"] = ",".join(f"{key}:{value}" for key, _, value in pairs)
    return found


def _queried(value: str | float | bool) -> str:  # noqa: FBT001 (it is a value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def submit(service: Service, submission: Submission, *, watch: bool = False) -> ExitCode:
    """Submits a file: the batch's id alone on standard output, or what a dry run says."""
    skips = submission.options.get("skip_invalid") == "true"
    options, rubric = _with_rubric(submission)
    with Body() as body:
        named = None if submission.input_format == "auto" else submission.input_format
        body.fill(submission.file, limits_of(read_settings()), named=named, rubric=rubric)
        tell_guesses(body.guessed)
        if body.refused and not (skips and body.lines):
            why = f"{plural(len(body.refused), 'record')} cannot be read"
            refused = sorted(
                [*body.refused, *_refused_there(service, body, options)], key=lambda one: one.place.line or 0
            )
            return _not_submitted(refused, why, skips=skips or not body.lines)
        key = submission.key or f"callgrade-{body.digest(options)}"
        with service.batches() as client:
            try:
                found = sent(lambda: client.submit(body.file, options, key=key))
            except RefusedError as error:
                return _refused(error, body, skips=skips, own=submission.key is not None)
            if isinstance(found, Quote):
                console().print(quote_line(found), soft_wrap=True)
                return ExitCode.PASSED
            _tell_submitted(found, body, own=submission.key is not None)
            console().print(found.job.id, soft_wrap=True)
            sys.stdout.flush()
            return watch_to_the_end(client, found.job.id) if watch else ExitCode.PASSED


def _refused_there(service: Service, body: Body, options: Mapping[str, str]) -> list[Refused]:
    """What the service would not take of the lines that can be read: all that is wrong is told at once, where it can be asked."""
    if not body.lines:
        return []
    with suppress(CallgradeError), service.batches() as client:
        try:
            client.submit(body.file, {**options, "dry_run": "true"}, key=f"callgrade-{body.digest(options)}")
        except RefusedError as error:
            return [body.refused_at(n, found) for n, found in refused_lines(error.problem, noun="batch", own=True)]
    return []


def _with_rubric(submission: Submission) -> tuple[dict[str, str], JsonValue]:
    """The options, and the rubric of a file: the service does not have it."""
    choice, options = submission.rubric, dict(submission.options)
    if choice is None:
        return options, None
    path = Path(choice)
    if not names_file(choice):
        return {**options, "rubric": choice}, None
    try:
        return options, read_yaml(read_text(path, "--rubric"), source="")
    except InputError as error:
        raise type(error)(
            Problem(f"{path}: {one.path}".removesuffix(": "), one.message) for one in error.problems
        ) from None


def sent(send: Callable[[], T]) -> T:
    """What an upload under an Idempotency-Key gives; one whose connection breaks is tried again."""
    for _ in range(TRIES - 1):
        try:
            return send()
        except UnreachableError as error:
            if not error.begun:
                raise
            say("the connection broke; it is sent once more")
    return send()


def tell_earlier(job: Job, *, noun: str, own: bool) -> None:
    """That a submission was made before. `own`: under a key of the user's."""
    again = "another --idempotency-key" if own else "--idempotency-key TEXT"
    before = f"this was submitted before, at {job.created_at}, and is {job.status.replace('_', ' ')}"
    say(f"{before}; it is not run again, {again} makes another {noun} of it")


def tell_made(what: str, *, noun: str, own: bool) -> None:
    """That a submission was taken."""
    say(f"submitted {what}")
    if not own:
        say(f"the Idempotency-Key is made of the content: the same command again gives this {noun}, not a second one")


def _tell_submitted(found: Submitted[Batch], body: Body, *, own: bool) -> None:
    batch = found.job
    if found.earlier:
        tell_earlier(batch, noun="batch", own=own)
    else:
        tell_made(plural(batch.request_counts.total, "item"), noun="batch", own=own)
    for rejected in batch.rejected:
        problems = InputError([Problem(one.pointer, one.detail) for one in rejected.errors])
        body.refused.append(body.refused_at(rejected.line, problems))
    tell_refused(body.refused, "left out")
    say(f"callgrade batch watch {batch.id} shows how it gets on")


def _not_submitted(refused: Sequence[Refused], why: str, *, skips: bool) -> ExitCode:
    tell_refused(refused, "error")
    say(f"nothing was submitted: {why}" + ("" if skips else "; --skip-invalid leaves them out"))
    return ExitCode.DATA


def _refused(error: RefusedError, body: Body, *, skips: bool, own: bool) -> ExitCode:
    """Tells of a refused submission, each line of it at its place in the file."""
    refused = [body.refused_at(number, found) for number, found in refused_lines(error.problem, noun="batch", own=own)]
    return _not_submitted([*body.refused, *refused], error.problem.detail, skips=skips)


def refused_lines(problem: ProblemDetails, *, noun: str, own: bool) -> Sequence[tuple[int, InputError]]:
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
        hint = f"; --idempotency-key TEXT makes another {noun} of it" if problem.status == 410 and not own else ""
        raise error_of(problem, hint=hint)
    return [(number, InputError(found)) for number, found in sorted(lines.items())]


def tell_refused(refused: Iterable[Refused], label: str) -> None:
    """The first of some records with what is wrong with them."""
    found = list(refused)
    for one in found[:REFUSALS_TOLD]:
        say_refused(one, label)
    if len(found) > REFUSALS_TOLD:
        say(f"... and {plural(len(found) - REFUSALS_TOLD, 'more record')}")
