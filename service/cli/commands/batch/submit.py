"""`callgrade batch submit`: any file of traces becomes a batch, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.command import command
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.options import FormatOption
from service.cli.remote.options import (
    LOCAL,
    BudgetOption,
    DeadlineOption,
    IdempotencyOption,
    JudgeModelOption,
    KeyOption,
    NameOption,
    QuestionsOption,
    ServerOption,
    TagOption,
    WatchOption,
    WebhookOption,
)
from service.cli.rendering.console import console, plural, say
from service.cli.rendering.refusals import tell_refusals
from service.errors import CallgradeError, InputError, Problem

if TYPE_CHECKING:
    from pydantic import JsonValue

    from service.cli.inputs import Refusal
    from service.cli.remote.body import BatchBody
    from service.cli.remote.service import Service
    from service.cli.remote.uploads import Sending
    from service.client.calls import SubmittedJob
    from service.store.jobs.batches import Batch

RubricOption = Annotated[
    str | None, typer.Option("--rubric", "-r", metavar="ID|FILE", help="Rubric for the records that name none.")
]
JudgesOption = Annotated[
    Literal["off", "cached", "live", "fresh"] | None,
    typer.Option(help="How judges are asked, for the records that do not say."),
]


@dataclass(frozen=True, slots=True)
class Submission:
    """What the command line says of the records of a batch."""

    file: Path
    rubric: str | None = None
    input_format: str = "auto"


@command(10)
def batch_submit(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="JSON or JSON Lines, also gzipped; - is standard input.")
    ],
    rubric: RubricOption = None,
    judges: JudgesOption = None,
    judge_model: JudgeModelOption = None,
    input_format: FormatOption = "auto",
    name: NameOption = None,
    tag: TagOption = None,
    budget_usd: BudgetOption = None,
    max_questions: QuestionsOption = None,
    deadline_hours: DeadlineOption = None,
    webhook: WebhookOption = None,
    skip_invalid: Annotated[
        bool, typer.Option("--skip-invalid", help="Leave records out that cannot be scored; else one refuses all.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what judges would be asked, and for how much.")
    ] = False,
    idempotency_key: IdempotencyOption = None,
    watch: WatchOption = False,
    server: ServerOption = LOCAL,
    key: KeyOption = None,
) -> int:
    """Submit traces as a batch, and print its id alone on standard output.

    Records are those of `callgrade score`, and may have a "custom_id" each, by which results name them.
    """
    from service.cli.remote.service import Service
    from service.cli.remote.uploads import Sending, build_options

    options = build_options(
        name=name,
        judges=judges,
        judge_model=judge_model,
        tags=tag or (),
        budget_usd=budget_usd,
        max_questions=max_questions,
        deadline_hours=deadline_hours,
        webhook=webhook,
        skip_invalid=skip_invalid or None,
        dry_run=dry_run or None,
    )
    sending = Sending("batch", options, idempotency_key)
    return submit(Service(server, key), Submission(file, rubric, input_format), sending, watch=watch)


def submit(service: Service, submission: Submission, sending: Sending, *, watch: bool = False) -> ExitCode:
    """Submits a file: the batch's id alone on standard output, or what a dry run says."""
    from service.cli.inputs import tell_guesses
    from service.cli.remote.body import BatchBody
    from service.wiring import build_limits

    skips = sending.options.get("skip_invalid") == "true"
    options, rubric = _add_rubric(submission, sending.options)
    sending = replace(sending, options=options)
    with BatchBody() as body:
        named = None if submission.input_format == "auto" else submission.input_format
        body.fill(submission.file, build_limits(read_settings()), named=named, rubric=rubric)
        tell_guesses(body.guessed, body.left_out)
        if body.refused and not (skips and body.lines):
            why = f"{plural(len(body.refused), 'record')} cannot be read"
            refused = [*body.refused, *_list_refusals_there(service, body, sending)]
            return _tell_not_submitted(sorted(refused, key=_line), why, skips=skips or not body.lines)
        return _send(service, body, sending, skips=skips, watch=watch)


def _send(service: Service, body: BatchBody, sending: Sending, *, skips: bool, watch: bool) -> ExitCode:
    from service.cli.remote.tables import render_quote
    from service.cli.remote.uploads import list_refusals, print_id, send
    from service.client.failures import RefusedError

    with service.batches() as client:
        try:
            if sending.options.get("dry_run") == "true":
                console().print(render_quote(send(client.quote, body, sending)), soft_wrap=True)
                return ExitCode.PASSED
            found = send(client.submit, body, sending)
        except RefusedError as error:
            refused = [*body.refused, *list_refusals(error, body, sending)]
            return _tell_not_submitted(refused, error.problem.detail, skips=skips)
        _tell(found, body, sending)
        return print_id(client, found.job.id, watch=watch)


def _line(refused: Refusal) -> int:
    return refused.place.line or 0


def _list_refusals_there(service: Service, body: BatchBody, sending: Sending) -> list[Refusal]:
    """What the service would not take of the lines that can be read: all that is wrong is told at once, where it can be asked."""
    from service.cli.remote.uploads import list_refusals
    from service.client.failures import RefusedError

    if not body.lines:
        return []
    asked = replace(sending, key=f"callgrade-{body.digest(sending.options)}")
    with suppress(CallgradeError), service.batches() as client:
        try:
            client.quote(body.file, asked.options, key=asked.key_of(body))
        except RefusedError as error:
            return list_refusals(error, body, asked)
    return []


def _add_rubric(submission: Submission, options: Mapping[str, str]) -> tuple[dict[str, str], JsonValue]:
    """The options, and the rubric of a file: the service does not have it."""
    from service.cli.inputs import names_file, read_text
    from service.packaged_files import read_yaml

    choice = submission.rubric
    if choice is None:
        return dict(options), None
    path = Path(choice)
    if not names_file(choice):
        return {**options, "rubric": choice}, None
    try:
        return dict(options), read_yaml(read_text(path, "--rubric"), source="")
    except InputError as error:
        raise error.in_file(str(path)) from None


def _tell(found: SubmittedJob[Batch], body: BatchBody, sending: Sending) -> None:
    from service.cli.remote.uploads import tell_submitted

    tell_submitted(found, plural(found.job.request_counts.total, "item"), sending)
    for rejected in found.job.rejected:
        problems = InputError([Problem(one.pointer, one.detail) for one in rejected.errors])
        body.refused.append(body.refuse_line(rejected.line, problems))
    tell_refusals(body.refused, "left out")


def _tell_not_submitted(refused: Sequence[Refusal], why: str, *, skips: bool) -> ExitCode:
    tell_refusals(refused, "error")
    say(f"nothing was submitted: {why}" + ("" if skips else "; --skip-invalid leaves them out"))
    return ExitCode.DATA
