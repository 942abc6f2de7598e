"""`callgrade jobs`: submit batches to a running service; follow its batches and calibrations, and fetch what came of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Option

from service.cli import options
from service.cli.exits import ExitCode
from service.cli.options import build_command_group, read_settings
from service.cli.screen import pluralize, print_line, print_refusals, say
from service.errors import InputError, Problem

if TYPE_CHECKING:
    from pydantic import JsonValue

    from service.cli.inputs import Refusal

LOCAL_URL = "http://127.0.0.1:8000"

Server = Annotated[str, Option("--server", metavar="URL", envvar="CALLGRADE_SERVER", help="URL of the service.")]
Key = Annotated[str | None, Option("--key", metavar="TEXT", envvar="CALLGRADE_API_KEY", help="API key of the service.")]
Job = Annotated[str, Argument(metavar="ID", help="The id of a batch or calibration.")]

commands = build_command_group(
    "jobs", "Submit batches to a running service; follow batches and calibrations, and fetch their results."
)


@commands.command("submit")
def submit_batch(
    file: Annotated[Path, Argument(metavar="FILE", help="JSON or JSON Lines, also gzipped; - is standard input.")],
    rubric: Annotated[
        str | None, Option("--rubric", "-r", metavar="ID|FILE", help="Rubric for records without one.")
    ] = None,
    judges: Annotated[
        Literal["off", "cached", "live", "fresh"] | None, Option(help="How to ask judges, unless a record says.")
    ] = None,
    judge_model: Annotated[str | None, Option(metavar="MODEL", help="Model to use as the judge.")] = None,
    judging: Annotated[
        Literal["live", "batch", "auto"] | None, Option(help="batch: at half the price, within a day.")
    ] = None,
    input_format: options.InputFormat = "auto",
    name: Annotated[str | None, Option(metavar="TEXT", help="A name to recognize it by.")] = None,
    tag: Annotated[list[str] | None, Option(metavar="K=V", help="A tag to attach; repeatable.")] = None,
    budget_usd: Annotated[
        float | None, Option(metavar="X", min=0, help="Pause when judges have cost this much.")
    ] = None,
    max_questions: Annotated[
        int | None, Option(metavar="N", min=0, help="Pause after this many requests to judges.")
    ] = None,
    skip_invalid: Annotated[bool, Option("--skip-invalid", help="Leave out records that cannot be scored.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Only print the number of questions and the price.")] = False,
    idempotency_key: Annotated[
        str | None, Option(metavar="TEXT", help="The same key submits once. [default: from the content]")
    ] = None,
    watch: Annotated[bool, Option("--watch", "--wait", help="Wait until it ends, and show the progress.")] = False,
    quiet: options.Quiet = False,
    server: Server = LOCAL_URL,
    key: Key = None,
) -> int:
    """Submit traces as a batch, and print its id.

    Takes the same records as `callgrade score`. Each may have a "custom_id", which its result repeats; else the id of its trace
    is taken, if no item before it has that. Only the id of the batch goes to standard output.
    """
    from pydantic_core import to_json

    from service.cli.following import render_quote, watch_to_the_end
    from service.cli.inputs import Refusal, names_file, print_guesses, read_bodies, read_document
    from service.cli.remote import BatchUpload, build_options, connect
    from service.client.failures import RefusedError
    from service.reading.places import Layout
    from service.wiring import build_limits

    sent_rubric: JsonValue = None
    if rubric is not None and names_file(rubric):  # the service does not have the file
        sent_rubric = read_document(Path(rubric), "--rubric", lambda value: value)
    query = build_options(
        name=name,
        rubric=rubric if sent_rubric is None else None,
        judges=judges,
        judge_model=judge_model,
        judging=judging,
        tags=tag,
        budget_usd=budget_usd,
        max_questions=max_questions,
        skip_invalid=skip_invalid or None,
    )
    guessed, left_out, refused, names = Counter[str](), Counter[str](), list[Refusal](), set[str]()
    with BatchUpload(query, idempotency_key) as upload:
        limits = build_limits(read_settings())
        for record in read_bodies([file], limits, Layout(input_format), guessed=guessed, left_out=left_out):
            if isinstance(record, Refusal):
                refused.append(record)
            else:
                body = _name_item(record.body, names)
                body = body if sent_rubric is None else {"rubric": sent_rubric, **body}
                upload.add(to_json(body) + b"\n", record.place, bare=record.bare)
        print_guesses(guessed, left_out)
        if refused and not (skip_invalid and upload.places):
            reason = f"{pluralize(len(refused), 'record')} cannot be read"
            return _print_not_submitted(refused, reason, skips=skip_invalid or not upload.places)
        with connect(server, key) as client:
            try:
                if dry_run:
                    print_line(render_quote(upload.send(client.batches.quote)))
                    return ExitCode.PASSED
                submitted = upload.send(client.batches.submit)
            except RefusedError as error:
                refused += upload.list_refusals(error)
                return _print_not_submitted(refused, error.problem.detail, skips=skip_invalid)
            for one in submitted.job.rejected:
                problems = InputError([Problem(place.pointer, place.detail) for place in one.errors])
                refused.append(upload.refuse_line(one.line, problems))
            print_refusals(refused, "left out")
            upload.print_submitted(submitted, watched=watch)
            return watch_to_the_end(client.batches, submitted.job.id, quiet=quiet) if watch else ExitCode.PASSED


def _name_item(body: Mapping[str, JsonValue], names: set[str]) -> dict[str, JsonValue]:
    """Name an item after its trace, unless it has a name, or another item has that one."""
    from pydantic import ValidationError

    from service.cli.inputs import CUSTOM_ID

    trace = body.get("trace")
    name = trace.get("id") if isinstance(trace, dict) else None
    if "custom_id" in body or not isinstance(name, str) or name in names:
        return dict(body)
    with suppress(ValidationError):
        names.add(CUSTOM_ID.validate_python(name))
        return {"custom_id": name, **body}
    return dict(body)


def _print_not_submitted(refused: list[Refusal], reason: str, *, skips: bool) -> ExitCode:
    print_refusals(sorted(refused, key=lambda one: one.place.line or 0))
    say(f"nothing was submitted: {reason}" + ("" if skips else "; --skip-invalid leaves them out"))
    return ExitCode.DATA


@commands.command("list")
def list_jobs(
    kind: Annotated[Literal["batch", "calibration"], Option(help="Which jobs to list.")] = "batch",
    status: Annotated[str | None, Option(metavar="STATUS", help="List only those with this status.")] = None,
    limit: Annotated[int, Option(metavar="N", min=1, max=100, help="Maximum number to list.")] = 20,
    after: Annotated[str | None, Option(metavar="ID", help="List only those older than this one.")] = None,
    output_format: options.TableOrJson = "table",
    server: Server = LOCAL_URL,
    key: Key = None,
) -> int:
    """List batches or calibrations, newest first."""
    from service.cli.following import show_jobs
    from service.cli.remote import connect

    query = {"limit": str(limit)} | ({"after": after} if after else {}) | ({"status": status} if status else {})
    with connect(server, key) as client:
        page = client.batches.page(**query) if kind == "batch" else client.calibrations.page(**query)
    show_jobs(page, output_format)
    if page.has_more and output_format == "table":
        say(f"there are more; --after {page.next} shows them")
    return ExitCode.PASSED


@commands.command("show")
def show_one_job(
    job_id: Job, output_format: options.TableOrJson = "table", server: Server = LOCAL_URL, key: Key = None
) -> int:
    """Show the state of a job."""
    from service.cli.following import show_job
    from service.cli.remote import connect_for

    with connect_for(job_id, server, key) as jobs:
        show_job(jobs.find(job_id), output_format)
    return ExitCode.PASSED


@commands.command("watch")
def watch_job(job_id: Job, quiet: options.Quiet = False, server: Server = LOCAL_URL, key: Key = None) -> int:
    """Show the progress of a job until it ends. Ctrl-C stops watching, not the job.

    Exit code 0 if it completed, whatever the verdicts (to gate on the results, use `callgrade summarize`); 2 if it failed,
    expired, was cancelled, has items without a report, or waits for a larger budget; 4 if it waits for a judge that is
    missing.
    """
    from service.cli.following import watch_to_the_end
    from service.cli.remote import connect_for

    with connect_for(job_id, server, key) as jobs:
        return watch_to_the_end(jobs, job_id, quiet=quiet)


@commands.command("results")
def fetch_results(
    job_id: Job,
    output: Annotated[
        Path | None,
        Option(
            "--output",
            "-o",
            metavar="FILE|FOLDER",
            help="File to write to, which appears once all is fetched; for a calibration, a folder. "
            "[default: standard output]",
        ),
    ] = None,
    errors: Annotated[bool, Option("--errors", help="Fetch why items of a batch have no report.")] = False,
    wait: Annotated[bool, Option("--wait", help="Wait until it has ended.")] = False,
    server: Server = LOCAL_URL,
    key: Key = None,
) -> int:
    """Fetch the reports that a batch has so far, as JSON Lines in the order of its items; or a completed calibration.

    Every item of a batch is either here or among the --errors. The exit code is 2 if the batch has not ended, so that more will
    come. A calibration is written as `callgrade calibrate run` writes it.
    """
    from service.cli.following import fetch, fetch_calibration
    from service.cli.remote import connect_for
    from service.client.jobs import BatchClient

    with connect_for(job_id, server, key) as jobs:
        if isinstance(jobs, BatchClient):
            return fetch(jobs, job_id, "errors" if errors else "results", output=output, wait=wait)
        if output is None or errors:
            raise typer.BadParameter("a calibration is written to a folder as a whole", param_hint="--output")
        return fetch_calibration(jobs, job_id, output, wait=wait)


def _add_verb(verb: Literal["cancel", "pause", "retry", "delete"], text: str) -> None:
    @commands.command(verb, help=text)
    def change_job(job_id: Job, server: Server = LOCAL_URL, key: Key = None) -> int:
        from service.cli.following import show_job
        from service.cli.remote import connect_for

        with connect_for(job_id, server, key) as jobs:
            change = {"cancel": jobs.cancel, "pause": jobs.pause, "retry": jobs.retry, "delete": jobs.delete}[verb]
            job = change(job_id)
        if job is None:
            say(f"{job_id} is deleted, with its items and results")
        else:
            show_job(job)
        return ExitCode.PASSED


_add_verb("cancel", "Cancel a job. Items under way finish, the others never run; nothing is fitted.")
_add_verb("pause", "Pause a job until it is resumed. Items under way finish.")
_add_verb("retry", "Run the failed items of an ended job again; a calibration is fitted anew.")
_add_verb("delete", "Delete a job that has ended, with its items and results.")


@commands.command("resume")
def resume_job(
    job_id: Job,
    budget_usd: Annotated[float | None, Option(metavar="X", min=0, help="New budget for the whole job.")] = None,
    max_questions: Annotated[int | None, Option(metavar="N", min=0, help="New limit on requests to judges.")] = None,
    server: Server = LOCAL_URL,
    key: Key = None,
) -> int:
    """Resume a paused job, with other limits if given."""
    from service.cli.following import show_job
    from service.cli.remote import connect_for

    with connect_for(job_id, server, key) as jobs:
        show_job(jobs.resume(job_id, budget_usd=budget_usd, max_questions=max_questions))
    return ExitCode.PASSED
