"""`callgrade jobs`: submit batches to a running service; follow its batches and calibrations, and fetch what came of them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.command import command_group
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.options import FormatOption
from service.cli.remote.options import (
    LOCAL_URL,
    BudgetOption,
    DeadlineOption,
    IdempotencyOption,
    JobArgument,
    JudgeModelOption,
    KeyOption,
    NameOption,
    NewBudgetOption,
    NewQuestionsOption,
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
    from service.cli.remote.service import Service
    from service.cli.remote.uploads import JobUpload
    from service.client.jobs import AnyJob
    from service.reading.trace_files import BadRecord, TraceRecord

jobs = command_group(
    __name__, 140, "Submit batches to a running service; follow batches and calibrations, and fetch their results."
)

ShowFormatOption = Annotated[Literal["table", "json"], typer.Option("--format", "-f", help="Output format.")]


@jobs.command("submit")
def submit_batch(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="JSON or JSON Lines, also gzipped; - is standard input.")
    ],
    rubric: Annotated[
        str | None, typer.Option("--rubric", "-r", metavar="ID|FILE", help="Rubric for records that name none.")
    ] = None,
    judges: Annotated[
        Literal["off", "cached", "live", "fresh"] | None,
        typer.Option(help="How to ask judges about records that do not say; as in `callgrade score`."),
    ] = None,
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
    from service.cli.inputs import names_file, print_guesses
    from service.cli.remote.service import Service
    from service.cli.remote.uploads import JobUpload, build_options

    sent_rubric = _read_rubric(rubric) if rubric is not None and names_file(rubric) else None
    options = build_options(
        name=name,
        rubric=rubric if sent_rubric is None else None,
        judges=judges,
        judge_model=judge_model,
        tags=tag or (),
        budget_usd=budget_usd,
        max_questions=max_questions,
        deadline_hours=deadline_hours,
        webhook=webhook,
        skip_invalid=skip_invalid or None,
    )
    service, named = Service(server, key), None if input_format == "auto" else input_format
    guessed, left_out = Counter[str](), Counter[str]()
    with JobUpload("batch", options, idempotency_key) as upload:
        for record in _read_items(file, named, left_out):
            _add_record(upload, record, named, sent_rubric, guessed)
        print_guesses(guessed, left_out)
        if upload.refused and not (skip_invalid and upload.places):
            reason = f"{pluralize(len(upload.refused), 'record')} cannot be read"
            refused = sorted([*upload.refused, *_list_service_refusals(service, upload)], key=_find_line)
            return _print_not_submitted(refused, reason, skips=skip_invalid or not upload.places)
        return _send(service, upload, dry_run=dry_run, skips=skip_invalid, watch=watch)


@jobs.command("list")
def list_jobs(
    kind: Annotated[Literal["batch", "calibration"], typer.Option(help="Which jobs to list.")] = "batch",
    status: Annotated[str | None, typer.Option(metavar="STATUS", help="List only those with this status.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="Maximum number to list.")] = 20,
    after: Annotated[str | None, typer.Option(metavar="ID", help="List only those older than this one.")] = None,
    output_format: ShowFormatOption = "table",
    server: ServerOption = LOCAL_URL,
    key: KeyOption = None,
) -> int:
    """List batches or calibrations, newest first."""
    from service.cli.remote.service import Service
    from service.cli.remote.tables import show_many

    query = {"limit": str(limit), "after": after, "status": status}
    options = {name: value for name, value in query.items() if value is not None}
    with Service(server, key).connect() as client:
        page = client.batches.page(**options) if kind == "batch" else client.calibrations.page(**options)
    if output_format == "json":
        _print_json(page)
        return ExitCode.PASSED
    show_many(page.data)
    if page.has_more:
        say(f"there are more; --after {page.next} shows them")
    return ExitCode.PASSED


@jobs.command("show")
def show_job(
    job_id: JobArgument,
    output_format: ShowFormatOption = "table",
    server: ServerOption = LOCAL_URL,
    key: KeyOption = None,
) -> int:
    """Show the state of a job."""
    from service.cli.remote.service import Service

    with Service(server, key).find(job_id) as client:
        return _show(client.find(job_id), output_format)


@jobs.command("watch")
def watch_job(job_id: JobArgument, server: ServerOption = LOCAL_URL, key: KeyOption = None) -> int:
    """Show the progress of a job until it ends. Ctrl-C stops watching, not the job.

    Exit code 0 if it completed, whatever the verdicts (to gate on the results, use `callgrade summarize`); 2 if it failed,
    expired, was cancelled, has items without a report, or waits for a larger budget; 4 if it waits for a judge that is
    missing.
    """
    from service.cli.remote.following import watch_to_the_end
    from service.cli.remote.service import Service
    from service.client.jobs import BatchClient

    with Service(server, key).find(job_id) as client:
        if isinstance(client, BatchClient):  # the type checker needs the two kinds apart
            return watch_to_the_end(client, job_id)
        return watch_to_the_end(client, job_id)


@jobs.command("results")
def fetch_results(
    job_id: JobArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE|FOLDER",
            help="File to write to, which appears once it is complete; for a calibration, a folder. "
            "[default: standard output]",
        ),
    ] = None,
    errors: Annotated[bool, typer.Option("--errors", help="Fetch why items of a batch have no report.")] = False,
    offset: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Position of the first item to fetch, from 0.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it has ended.")] = False,
    server: ServerOption = LOCAL_URL,
    key: KeyOption = None,
) -> int:
    """Fetch the reports that a batch has so far, as JSON Lines in the order of its items; or a completed calibration.

    Every item of a batch is either here or among the --errors. With --output the exit code is 2 until all are there; run the
    same command again to continue. A calibration is written as `callgrade calibrate run` writes it.
    """
    from service.cli.remote.outcomes import fetch, fetch_calibration
    from service.cli.remote.service import Service
    from service.client.jobs import BatchClient

    with Service(server, key).find(job_id) as client:
        if isinstance(client, BatchClient):
            kind: Literal["results", "errors"] = "errors" if errors else "results"
            return fetch(client, job_id, kind, output=output, offset=offset, wait=wait)
        if output is None or errors or offset is not None:
            raise typer.BadParameter("a calibration is written to a folder as a whole", param_hint="--output")
        return fetch_calibration(client, job_id, output, wait=wait)


@jobs.command("cancel")
def cancel_job(job_id: JobArgument, server: ServerOption = LOCAL_URL, key: KeyOption = None) -> int:
    """Cancel a job. Items under way finish, the others never run; nothing is fitted."""
    from service.cli.remote.service import Service

    with Service(server, key).find(job_id) as client:
        return _show(client.cancel(job_id), "table")


@jobs.command("pause")
def pause_job(job_id: JobArgument, server: ServerOption = LOCAL_URL, key: KeyOption = None) -> int:
    """Pause a job until it is resumed. Items under way finish."""
    from service.cli.remote.service import Service

    with Service(server, key).find(job_id) as client:
        return _show(client.pause(job_id), "table")


@jobs.command("retry")
def retry_job(job_id: JobArgument, server: ServerOption = LOCAL_URL, key: KeyOption = None) -> int:
    """Run the failed items of an ended job again; a calibration is fitted anew."""
    from service.cli.remote.service import Service

    with Service(server, key).find(job_id) as client:
        return _show(client.retry(job_id), "table")


@jobs.command("resume")
def resume_job(
    job_id: JobArgument,
    budget_usd: NewBudgetOption = None,
    max_questions: NewQuestionsOption = None,
    server: ServerOption = LOCAL_URL,
    key: KeyOption = None,
) -> int:
    """Resume a paused job, with other limits if given."""
    from service.cli.remote.service import Service

    with Service(server, key).find(job_id) as client:
        return _show(client.resume(job_id, budget_usd=budget_usd, max_questions=max_questions), "table")


@jobs.command("delete")
def delete_job(job_id: JobArgument, server: ServerOption = LOCAL_URL, key: KeyOption = None) -> int:
    """Delete a job that has ended, with its items and results."""
    from service.cli.remote.service import Service

    with Service(server, key).find(job_id) as client:
        client.delete(job_id)
    say(f"{job_id} is deleted, with its items and results")
    return ExitCode.PASSED


def _show(job: AnyJob, output_format: Literal["table", "json"]) -> ExitCode:
    from service.cli.remote.tables import show_one

    if output_format == "json":
        _print_json(job)
    else:
        show_one(job)
    return ExitCode.PASSED


def _print_json(value: object) -> None:
    from pydantic_core import to_json

    sys.stdout.buffer.write(to_json(value) + b"\n")
    sys.stdout.buffer.flush()


def _read_rubric(choice: str) -> JsonValue:
    """Read the rubric from its file, which the service does not have."""
    from service.cli.inputs import read_text
    from service.packaged_files import read_yaml

    try:
        return read_yaml(read_text(Path(choice), "--rubric"), source="")
    except InputError as error:
        raise error.in_file(choice) from None


def _read_items(file: Path, named: str | None, left_out: Counter[str]) -> Iterator[TraceRecord | BadRecord]:
    """Yield the records of a file, replacing a document in the form of POST /v1/batches by its items."""
    from service.cli.inputs import read_records
    from service.reading.bare_traces import is_bare
    from service.reading.trace_files import BadRecord, RecordPlace, TraceRecord
    from service.wiring import build_limits

    for record in read_records([file], build_limits(read_settings()), left_out=left_out, named=named):
        items = record.value.get("items") if isinstance(record, TraceRecord) and is_bare(record) else None
        if isinstance(record, BadRecord) or not isinstance(items, list):
            yield record
            continue
        others = [name for name in record.value if name != "items"]
        if others:
            problems = [Problem(f"/{name}", "give the batch's options on the command line") for name in others]
            yield BadRecord(record.place, InputError(problems))
        for n, item in enumerate(items):
            place = RecordPlace(record.place.source, record.place.line, f"{record.place.pointer}/items/{n}")
            if isinstance(item, dict):
                yield TraceRecord(place, item)
            else:
                yield BadRecord(place, InputError.at("", "expected an object"))


def _add_record(
    upload: JobUpload, record: TraceRecord | BadRecord, named: str | None, rubric: JsonValue, guessed: Counter[str]
) -> None:
    """Add a record as the service takes it, or note that it cannot be read. `rubric`: for records that name none."""
    from pydantic_core import to_json

    from service.cli.inputs import Refusal, locate_error
    from service.reading.bare_traces import build_body, is_bare
    from service.reading.trace_files import BadRecord

    bare = not isinstance(record, BadRecord) and is_bare(record)
    try:
        if isinstance(record, BadRecord):
            raise record.error
        body = build_body(record, named=named, guessed=guessed)
    except InputError as error:
        upload.refused.append(Refusal(record.place, locate_error(error, record.place, bare=bare)))
        return
    upload.add(to_json(body if rubric is None else {"rubric": rubric, **body}) + b"\n", record.place, bare=bare)


def _send(service: Service, upload: JobUpload, *, dry_run: bool, skips: bool, watch: bool) -> ExitCode:
    from service.cli.remote.tables import render_quote
    from service.client.failures import RefusedError

    with service.connect() as client:
        batches = client.batches
        try:
            if dry_run:
                build_console().print(render_quote(upload.send(batches.quote)), soft_wrap=True)
                return ExitCode.PASSED
            submitted = upload.send(batches.submit)
        except RefusedError as error:
            refused = [*upload.refused, *upload.list_refusals(error)]
            return _print_not_submitted(refused, error.problem.detail, skips=skips)
        left_out = [*upload.refused]
        for rejected in submitted.job.rejected:
            problems = InputError([Problem(one.pointer, one.detail) for one in rejected.errors])
            left_out.append(upload.refuse_line(rejected.line, problems))
        print_refusals(left_out, "left out")
        what = pluralize(submitted.job.request_counts.total, "item")
        return upload.print_submitted(batches, submitted, what, watch=watch)


def _list_service_refusals(service: Service, upload: JobUpload) -> list[Refusal]:
    """Ask the service which readable lines it would refuse, so that all errors show at once. Empty if it cannot be asked."""
    from service.client.failures import RefusedError

    if not upload.places:
        return []
    with suppress(CallgradeError), service.connect() as client:
        try:
            upload.send(client.batches.quote)
        except RefusedError as error:
            return upload.list_refusals(error)
    return []


def _find_line(refused: Refusal) -> int:
    return refused.place.line or 0


def _print_not_submitted(refused: Sequence[Refusal], reason: str, *, skips: bool) -> ExitCode:
    print_refusals(refused, "error")
    say(f"nothing was submitted: {reason}" + ("" if skips else "; --skip-invalid leaves them out"))
    return ExitCode.DATA
