"""Submit, follow and fetch jobs of a running service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import typer
from pydantic import JsonValue, ValidationError
from typer import Argument, Option

from service.cli import options
from service.cli.app import build_command_group
from service.cli.exits import ExitCode
from service.cli.following import fetch, fetch_calibration, render_quote, show_job, show_jobs, watch_to_the_end
from service.cli.inputs import (
    CUSTOM_ID,
    Refusal,
    locate_error,
    names_file,
    print_guesses,
    print_refusals,
    read_bodies,
    read_document,
)
from service.cli.options import read_settings
from service.cli.screen import pluralize, print_line, say
from service.client.client import BatchClient, CalibrationClient, Client, build_key, pack_lines
from service.client.connection import ForeignError, RefusedError, Retries, UnreachableError
from service.errors import BusyError, CallgradeError, InputError, Problem, SettingsError
from service.problems import ProblemDetails
from service.reading.places import Layout, RecordPlace
from service.store.jobs.job import ID_PREFIXES
from service.wiring import build_limits

LOCAL_URL = "http://127.0.0.1:8000"

Server = Annotated[str, Option("--server", metavar="URL", envvar="CALLGRADE_SERVER", help="URL of the service.")]
Key = Annotated[str | None, Option("--key", metavar="TEXT", envvar="CALLGRADE_API_KEY", help="API key of the service.")]
Job = Annotated[str, Argument(metavar="ID", help="The id of a batch or calibration.")]
Wait = Annotated[bool, Option("--wait", help="Wait until it has ended, and show the progress.")]

commands = build_command_group("jobs", __doc__ or "")


@commands.command("submit")
def submit_batch(
    file: Annotated[Path, Argument(metavar="FILE", help="JSON or JSON Lines, also gzipped; - is standard input.")],
    rubric: Annotated[
        str | None, Option("--rubric", "-r", metavar="ID|FILE", help="Rubric where a record has none.")
    ] = None,
    judges: Annotated[
        Literal["off", "cached", "live", "fresh"] | None, Option(help="How to ask judges, unless a record says.")
    ] = None,
    judging: Annotated[
        Literal["live", "batch", "auto"] | None, Option(help="batch: half the price, within a day.")
    ] = None,
    input_format: options.InputFormat = "auto",
    name: Annotated[str | None, Option(metavar="TEXT", help="A name to recognize it by.")] = None,
    tag: Annotated[list[str] | None, Option(metavar="K=V", help="A tag to attach; repeatable.")] = None,
    budget_usd: Annotated[float | None, Option(metavar="X", min=0, help="Pause when judges have cost so much.")] = None,
    max_questions: Annotated[int | None, Option(metavar="N", min=0, help="Pause after so many questions.")] = None,
    skip_invalid: Annotated[bool, Option("--skip-invalid", help="Leave out records that cannot be scored.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Only print the number of questions and the price.")] = False,
    idempotency_key: Annotated[
        str | None, Option(metavar="TEXT", help="The same key submits once. [default: from the content]")
    ] = None,
    wait: Wait = False,
    quiet: options.Quiet = False,
    server: Server = LOCAL_URL,
    key: Key = None,
) -> int:
    """Submit traces as a batch, and print its id.

    Takes the same records as `callgrade score`. Each may have a "custom_id", which its result repeats; else the id of its trace
    is taken, if no item before it has that. Only the id of the batch goes to standard output.
    """
    query = {
        "name": name,
        "rubric": rubric,
        "judges": judges,
        "judging": judging,
        "tags": _join_tags(tag or ()),
        "budget_usd": budget_usd,
        "max_questions": max_questions,
        "skip_invalid": "true" if skip_invalid else None,
    }
    added: dict[str, JsonValue] = {}
    if rubric is not None and names_file(rubric):  # the service does not have the file
        added["rubric"] = read_document(Path(rubric), "--rubric", lambda value: value)
        query["rubric"] = None
    chosen = {name: str(value) for name, value in query.items() if value is not None}
    upload = _Upload()
    with pack_lines(upload.iter_lines(file, Layout(input_format), added)) as lines:
        print_guesses(upload.guessed, upload.left_out)
        if upload.refused and not (skip_invalid and upload.places):
            reason = f"{pluralize(len(upload.refused), 'record')} cannot be read"
            return upload.give_up(reason, skips=skip_invalid or not upload.places)
        with connect(server, key) as client:
            idempotency_key = idempotency_key or build_key(lines, chosen)
            try:
                if dry_run:
                    print_line(render_quote(client.batches.quote(lines, chosen, idempotency_key)))
                    return ExitCode.PASSED
                submitted = client.batches.submit(lines, chosen, idempotency_key)
            except RefusedError as error:
                upload.refuse_lines(error)
                return upload.give_up(error.problem.detail, skips=skip_invalid)
            job = submitted.job
            for one in job.rejected:
                upload.refuse(one.line, [Problem(place.pointer, place.detail) for place in one.errors])
            print_refusals(upload.refused, "left out")
            if submitted.earlier:
                earlier = f"this was already submitted at {job.created_at} (status: {job.status.replace('_', ' ')})"
                say(f"{earlier}{ANOTHER_BATCH}")
            else:
                count = pluralize(job.request_counts.total, "item")
                say(f"submitted {count}; the same command again returns this batch, not a second one")
            print_line(job.id)
            if wait:
                return watch_to_the_end(client.batches, job.id, quiet=quiet)
    say(f"to follow it: callgrade jobs watch {job.id}")
    return ExitCode.PASSED


ANOTHER_BATCH = "; to run it as another batch, use another --idempotency-key"


def _join_tags(tags: Sequence[str]) -> str | None:
    """Join tags as the query parameter. A usage error for one that is not key=value or has forbidden characters."""
    pairs = [tag.partition("=") for tag in tags]
    for key, equals, value in pairs:
        if not (key and equals) or ":" in key or "," in key + value:
            raise typer.BadParameter("expected key=value without a comma, and no colon in the key", param_hint="--tag")
    return ",".join(f"{key}:{value}" for key, _, value in pairs) or None


class _Upload:
    """Where each line of a submission is from, and the records that are left out of it."""

    def __init__(self) -> None:
        self.places: list[tuple[RecordPlace, bool]] = []
        """Of each line; and whether it was a trace without a request around it."""
        self.refused: list[Refusal] = []
        self.guessed, self.left_out = Counter[str](), Counter[str]()
        self._names = set[str]()

    def iter_lines(self, file: Path, layout: Layout, added: dict[str, JsonValue]) -> Iterator[dict[str, JsonValue]]:
        """Yield the records of a file as lines, each with `added` unless it has its own."""
        limits = build_limits(read_settings())
        for record in read_bodies([file], limits, layout, guessed=self.guessed, left_out=self.left_out):
            if isinstance(record, Refusal):
                self.refused.append(record)
            else:
                self.places.append((record.place, record.bare))
                yield {**added, **self._name_item(record.body), **record.body}

    def _name_item(self, body: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Name an item after its trace, unless another item has that name."""
        trace = body.get("trace")
        try:
            name = CUSTOM_ID.validate_python(trace.get("id") if isinstance(trace, dict) else None)
        except ValidationError:
            return {}
        if "custom_id" in body or name in self._names:
            return {}
        self._names.add(name)
        return {"custom_id": name}

    def refuse_lines(self, error: RefusedError) -> None:
        """Note the records that the service refused. Raise the error if it is not about lines."""
        lines: dict[int, list[Problem]] = {}
        for place in error.problem.errors:
            number, _, rest = place.pointer.removeprefix("/").partition("/")
            problem = Problem(f"/{rest}" if rest else "", place.detail)
            lines.setdefault(int(number) if number.isdigit() else 0, []).append(problem)
        if error.problem.status != 400 or not lines or 0 in lines:
            raise build_error(error.problem, hint=ANOTHER_BATCH if error.problem.status == 410 else "")
        for number, found in sorted(lines.items()):
            self.refuse(number, found)

    def refuse(self, number: int, problems: Sequence[Problem]) -> None:
        """Note what is wrong with a line, counted from 1."""
        place, bare = self.places[number - 1]
        self.refused.append(Refusal(place, locate_error(InputError(problems), place, bare=bare)))

    def give_up(self, reason: str, *, skips: bool) -> ExitCode:
        """Print why nothing was submitted."""
        print_refusals(sorted(self.refused, key=lambda one: one.place.line or 0))
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
) -> None:
    """List batches or calibrations, newest first."""
    query = {"limit": str(limit)} | ({"after": after} if after else {}) | ({"status": status} if status else {})
    with connect(server, key) as client:
        page = client.batches.page(**query) if kind == "batch" else client.calibrations.page(**query)
    show_jobs(page, output_format)
    if page.has_more and output_format == "table":
        say(f"there are more; --after {page.next} shows them")


@commands.command("show")
def show_one_job(
    job_id: Job, output_format: options.TableOrJson = "table", server: Server = LOCAL_URL, key: Key = None
) -> None:
    """Show the state of a job."""
    with connect_for(job_id, server, key) as jobs:
        show_job(jobs.find(job_id), output_format)


@commands.command("watch")
def watch_job(job_id: Job, quiet: options.Quiet = False, server: Server = LOCAL_URL, key: Key = None) -> int:
    """Show the progress of a job until it ends. Ctrl-C stops watching, not the job.

    Exit code 0 if it completed, whatever the verdicts (to gate on the results, use `callgrade summarize`); 2 if it failed,
    expired, was cancelled, has items without a report, or waits for a larger budget; 4 if it waits for a judge that is
    missing.
    """
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
    wait: Wait = False,
    server: Server = LOCAL_URL,
    key: Key = None,
) -> int:
    """Fetch the reports that a batch has so far, as JSON Lines in the order of its items; or a completed calibration.

    Every item of a batch is either here or among the --errors. The exit code is 2 if the batch has not ended, so that more will
    come. A calibration is written as `callgrade calibrate run` writes it.
    """
    with connect_for(job_id, server, key) as jobs:
        if isinstance(jobs, BatchClient):
            return fetch(jobs, job_id, "errors" if errors else "results", output=output, wait=wait)
        if output is None or errors:
            raise typer.BadParameter("a calibration is written to a folder as a whole", param_hint="--output")
        return fetch_calibration(jobs, job_id, output, wait=wait)


def _add_verb(verb: Literal["cancel", "pause", "retry", "delete"], text: str) -> None:
    @commands.command(verb, help=text)
    def change_job(job_id: Job, server: Server = LOCAL_URL, key: Key = None) -> None:
        with connect_for(job_id, server, key) as jobs:
            change = {"cancel": jobs.cancel, "pause": jobs.pause, "retry": jobs.retry, "delete": jobs.delete}[verb]
            job = change(job_id)
        if job is None:
            say(f"{job_id} is deleted, with its items and results")
        else:
            show_job(job)


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
) -> None:
    """Resume a paused job, with other limits if given."""
    with connect_for(job_id, server, key) as jobs:
        show_job(jobs.resume(job_id, budget_usd=budget_usd, max_questions=max_questions))


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
        text = f"no answer from {server} (--server): {error}; to start one: callgrade serve"
        raise SettingsError.at("", text) from None
    except ForeignError as error:
        raise SettingsError.at("", f"{server}: {error}") from None
    except RefusedError as error:
        raise build_error(error.problem) from None


@contextmanager
def connect_for(job_id: str, server: str, key: str | None) -> Generator[BatchClient | CalibrationClient]:
    """Open the client for the kind of job that an id names. A usage error for an id of no kind."""
    kind = job_id.partition("_")[0]
    if kind not in ID_PREFIXES.values():
        kinds = "_... or ".join(ID_PREFIXES.values())
        raise typer.BadParameter(f"expected the id of a job, such as {kinds}_..., not {job_id}")
    with connect(server, key) as client:
        yield client.calibrations if kind == ID_PREFIXES["calibration"] else client.batches


def build_error(problem: ProblemDetails, *, hint: str = "") -> CallgradeError:
    """Build the error for a problem response; its type decides the exit code: wrong usage, bad data, or a fault elsewhere."""
    if problem.status in {401, 403}:
        return SettingsError.at("--key", f"{problem.detail} (or CALLGRADE_API_KEY)")
    if problem.status in {404, 405, 409, 410}:
        return SettingsError.at("", problem.detail + hint)
    if problem.status < 500 and problem.status != 429:
        places = [Problem(one.pointer, one.detail) for one in problem.errors] or [Problem("", problem.detail)]
        return InputError(places)
    return BusyError(problem.detail)
