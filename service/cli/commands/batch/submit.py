"""`callgrade batch submit`: submit a file of traces as a batch. Submitting it again does not make a second batch."""

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
    LOCAL_URL,
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
from service.cli.rendering.console import build_console, pluralize, say
from service.cli.rendering.refusals import print_refusals
from service.errors import CallgradeError, InputError, Problem

if TYPE_CHECKING:
    from pydantic import JsonValue

    from service.cli.inputs import Refusal
    from service.cli.remote.body import BatchBody
    from service.cli.remote.service import Service
    from service.cli.remote.uploads import UploadRequest
    from service.client.calls import SubmittedJob
    from service.store.jobs.batches import Batch

RubricOption = Annotated[
    str | None, typer.Option("--rubric", "-r", metavar="ID|FILE", help="Rubric for records that name none.")
]
JudgesOption = Annotated[
    Literal["off", "cached", "live", "fresh"] | None,
    typer.Option(help="How to ask judges about records that do not say; as in `callgrade score`."),
]


@dataclass(frozen=True, slots=True)
class BatchInput:
    """The file of a batch, and the options that apply to its records."""

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
        bool,
        typer.Option("--skip-invalid", help="Leave out records that cannot be scored, instead of refusing the batch."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print how many questions judges would be asked, and the price.")
    ] = False,
    idempotency_key: IdempotencyOption = None,
    watch: WatchOption = False,
    server: ServerOption = LOCAL_URL,
    key: KeyOption = None,
) -> int:
    """Submit traces as a batch, and print its id.

    Takes the same records as `callgrade score`. Each may have a "custom_id", which its result repeats. Only the id goes to
    standard output.
    """
    from service.cli.remote.service import Service
    from service.cli.remote.uploads import UploadRequest, build_options

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
    upload_request = UploadRequest("batch", options, idempotency_key)
    return submit(Service(server, key), BatchInput(file, rubric, input_format), upload_request, watch=watch)


def submit(
    service: Service, batch_input: BatchInput, upload_request: UploadRequest, *, watch: bool = False
) -> ExitCode:
    """Submit a file and print the batch's id, or the quote of a dry run."""
    from service.cli.inputs import print_guesses
    from service.cli.remote.body import BatchBody
    from service.wiring import build_limits

    skips = upload_request.options.get("skip_invalid") == "true"
    options, rubric = _add_rubric(batch_input, upload_request.options)
    upload_request = replace(upload_request, options=options)
    with BatchBody() as body:
        named = None if batch_input.input_format == "auto" else batch_input.input_format
        body.fill(batch_input.file, build_limits(read_settings()), named=named, rubric=rubric)
        print_guesses(body.guessed, body.left_out)
        if body.refused and not (skips and body.lines):
            reason = f"{pluralize(len(body.refused), 'record')} cannot be read"
            refused = [*body.refused, *_list_service_refusals(service, body, upload_request)]
            return _print_not_submitted(sorted(refused, key=_find_line), reason, skips=skips or not body.lines)
        return _send(service, body, upload_request, skips=skips, watch=watch)


def _send(service: Service, body: BatchBody, upload_request: UploadRequest, *, skips: bool, watch: bool) -> ExitCode:
    from service.cli.remote.tables import render_quote
    from service.cli.remote.uploads import list_refusals, print_id, send
    from service.client.failures import RefusedError

    with service.batches() as client:
        try:
            if upload_request.options.get("dry_run") == "true":
                build_console().print(render_quote(send(client.quote, body, upload_request)), soft_wrap=True)
                return ExitCode.PASSED
            submitted = send(client.submit, body, upload_request)
        except RefusedError as error:
            refused = [*body.refused, *list_refusals(error, body, upload_request)]
            return _print_not_submitted(refused, error.problem.detail, skips=skips)
        _print_submitted(submitted, body, upload_request)
        return print_id(client, submitted.job.id, watch=watch)


def _find_line(refused: Refusal) -> int:
    return refused.place.line or 0


def _list_service_refusals(service: Service, body: BatchBody, upload_request: UploadRequest) -> list[Refusal]:
    """Ask the service which readable lines it would refuse, so that all errors show at once. Empty if it cannot be asked."""
    from service.cli.remote.uploads import list_refusals
    from service.client.failures import RefusedError

    if not body.lines:
        return []
    quote_request = replace(upload_request, key=f"callgrade-{body.digest(upload_request.options)}")
    with suppress(CallgradeError), service.batches() as client:
        try:
            client.quote(body.file, quote_request.options, key=quote_request.build_key(body))
        except RefusedError as error:
            return list_refusals(error, body, quote_request)
    return []


def _add_rubric(batch_input: BatchInput, options: Mapping[str, str]) -> tuple[dict[str, str], JsonValue]:
    """Add a rubric's id to the options, or read the rubric from its file, which the service does not have."""
    from service.cli.inputs import names_file, read_text
    from service.packaged_files import read_yaml

    choice = batch_input.rubric
    if choice is None:
        return dict(options), None
    path = Path(choice)
    if not names_file(choice):
        return {**options, "rubric": choice}, None
    try:
        return dict(options), read_yaml(read_text(path, "--rubric"), source="")
    except InputError as error:
        raise error.in_file(str(path)) from None


def _print_submitted(submitted: SubmittedJob[Batch], body: BatchBody, upload_request: UploadRequest) -> None:
    from service.cli.remote.uploads import print_submitted

    print_submitted(submitted, pluralize(submitted.job.request_counts.total, "item"), upload_request)
    for rejected in submitted.job.rejected:
        problems = InputError([Problem(one.pointer, one.detail) for one in rejected.errors])
        body.refused.append(body.refuse_line(rejected.line, problems))
    print_refusals(body.refused, "left out")


def _print_not_submitted(refused: Sequence[Refusal], reason: str, *, skips: bool) -> ExitCode:
    print_refusals(refused, "error")
    say(f"nothing was submitted: {reason}" + ("" if skips else "; --skip-invalid leaves them out"))
    return ExitCode.DATA
