"""Show jobs of a service, follow one to its end, and fetch what came of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from service.cli.exits import ExitCode, describe_absence
from service.cli.options import writing
from service.cli.progress import ProgressLine, describe_judging
from service.cli.screen import pluralize, print_table, say
from service.client.client import AnyJob, BatchClient, CalibrationClient, Kind
from service.client.connection import ForeignError
from service.core.money import Cost, format_usd
from service.errors import CallgradeError, JudgeDownError
from service.jobs.pauses import read_pause
from service.jobs.quotes import Quote
from service.store.jobs.calibrations import Calibration
from service.store.jobs.job import ENDED_STATUSES, JobList
from service.store.jobs.jobs import Batch

JobClient = BatchClient | CalibrationClient


def _count_done(job: AnyJob) -> int:
    """Count the items that have an outcome."""
    return job.request_counts.completed + job.request_counts.failed


def _render_time(text: str | None) -> str:
    """Render an RFC 3339 time for people."""
    return (text or "").replace("T", " ").replace("Z", " UTC")


def show_jobs(page: JobList[Batch] | JobList[Calibration], form: Literal["table", "json"]) -> None:
    """Print several jobs, a line each. Lines never wrap, so that ids can be copied."""
    rows: list[tuple[str, ...]] = []
    for job in page.data:
        counts = job.request_counts
        done = f"{_count_done(job)}/{counts.total}" + (f" ({counts.failed} failed)" if counts.failed else "")
        rows.append((job.id, job.status, done, _render_time(job.created_at)[:16], job.name or "-"))
    print_table(("id", "status", "done", "created", "name"), rows, form=form, value=page, wraps=False)


def _advise_resuming(job: AnyJob) -> str:
    """Say how a job goes on that waits for a person; empty for any other."""
    if job.status not in ("paused", "paused_budget"):
        return ""
    asked_all = job.max_questions is not None and job.questions >= job.max_questions
    higher = " --max-questions N" if asked_all else " --budget-usd X"
    return f"callgrade jobs resume {job.id}{higher if job.status == 'paused_budget' else ''}"


def show_job(job: AnyJob, form: Literal["table", "json"] = "table") -> None:
    """Print one job, a row per property; those without a value are left out."""
    counts, total = job.request_counts, job.request_counts.total
    done = f"{_count_done(job)} of {total} done"
    if isinstance(job, Calibration):
        about = {
            "calibration": job.id,
            "items": pluralize(job.items, "labelled item"),
            "answers": f"{done}, {job.repeats} for each item, with {job.rubric}" if total else "",
            "unanswered": f"{job.unanswered}: {'; '.join(job.reasons)}" if job.unanswered else "",
            "fits": f"{job.fits} ({job.method})" if job.status == "completed" else "",
        }
    else:
        about = {"batch": job.id, "items": f"{done}: {counts.completed} with a report, {counts.failed} without"}
    cap = f" of {format_usd(job.budget_usd)}" if job.budget_usd is not None else ""
    most = "" if job.max_questions is None else f" of at most {job.max_questions}"
    asking = f"{Cost.read(job)}{cap}; {job.questions}{most} questions; {job.cache_hits} answers reused"
    never_run = counts.cancelled + counts.expired
    first, *rest = about.items()
    rows = [
        first,
        ("name", job.name),
        ("status", job.status),
        ("reason", job.reason),
        ("resumes at", _render_time(job.resume_at)),
        ("to continue", _advise_resuming(job)),
        *rest,
        ("never run", str(never_run or "")),
        ("left out", pluralize(counts.rejected, "line") if counts.rejected else ""),
        ("judges", asking if job.questions or job.cache_hits or cap or most else ""),
        ("tags", ", ".join(f"{key}={value}" for key, value in job.tags.items())),
        ("created", _render_time(job.created_at)),
        ("ended", _render_time(job.ended_at)) if job.ended_at else ("deadline", _render_time(job.deadline_at)),
        ("webhook", job.webhook and f"{job.webhook.url} ({job.webhook.status or 'not yet'})"),
    ]
    print_table(("", ""), [(name, value) for name, value in rows if value], form=form, value=job)


def render_quote(quote: Quote) -> str:
    """Render the questions and the price of a batch."""
    questions = f"{pluralize(quote.questions, 'question')} for judges, {quote.cache_hits} of them in the cache"
    known = "free" if quote.cost_usd == 0 else f"at most {Cost.read(quote)}"
    sampled = f" (estimated from {quote.sampled} of them)" if quote.sampled < quote.items else ""
    price = "price unknown" if quote.cost_usd is None else known
    return f"{pluralize(quote.items, 'item')}: {questions}, {price}{sampled}"


# Following a job.


def watch_to_the_end(client: JobClient, name: str, *, quiet: bool = False) -> ExitCode:
    """Show the progress of a job until it ends or waits for a larger budget; then print how it ended and what to do next."""
    job = _follow(client, name, quiet=quiet)
    for line in _describe_end(job):
        say(line)
    has_gaps = isinstance(job, Batch) and job.request_counts.failed > 0
    return ExitCode.PASSED if job.status == "completed" and not has_gaps else ExitCode.FAILED


def _follow(client: JobClient, name: str, *, quiet: bool = False) -> AnyJob:
    """Show the progress of a job until it ends or waits for a larger budget, and return it as it then is."""
    job: AnyJob | None = None
    state: tuple[str, str | None] = ("in_progress", None)
    undecided, first_pause = 0, None
    try:
        with ProgressLine("item", quiet=quiet, steps=10) as line:
            for job in client.watch(name, on_disconnect=lambda error: say(f"{error}; trying again")):
                before, state = state, (job.status, job.reason)
                if state != before and (change := _describe_change(job, before[0])):
                    say(change)
                if isinstance(client, BatchClient) and line.drawn and _count_done(job):
                    with suppress(
                        CallgradeError
                    ):  # the count is not worth an end; the watch notices a service that is gone
                        undecided = client.count_undecided(job.id)
                failed = f"{job.request_counts.failed} failed" if job.request_counts.failed else ""
                waits = job.status.partition("_")[0] if job.status not in ("in_progress", "completed") else ""
                judging = describe_judging(undecided, Cost.read(job), asked=job.questions > 0)
                line.update(_count_done(job), failed, *judging, waits, total=job.request_counts.total)
                first_pause = first_pause or (job.resume_at if job.status == "paused_provider" else None)
                if job.resume_at is None or job.resume_at != first_pause:  # else it may be older than a changed setting
                    _require_judge(job)
                if job.status == "paused_budget":
                    break
    except KeyboardInterrupt:
        say(f"{name} continues; `callgrade jobs watch {name}` shows it again, `callgrade jobs cancel {name}` ends it")
        raise
    return job or client.find(name)


def _describe_change(job: AnyJob, before: str) -> str:
    """Say what became of a job that has not ended since it was in the state `before`; empty if that needs no words."""
    if job.status in ENDED_STATUSES:
        return ""
    if job.status.startswith("paused"):
        when = f"; next try at {_render_time(job.resume_at).partition(' ')[2]}" if job.resume_at else ""
        return f"paused: {job.reason or job.status}{when}"
    if job.status == "cancelling":
        return "cancelling: items under way will finish"
    if job.status == "finalizing" and isinstance(job, Calibration):
        return "all items are judged; fitting"
    return "resumed" if before.startswith("paused") else ""


def _require_judge(job: AnyJob) -> None:
    """Raise JudgeDownError if a job waits for a judge that is missing until somebody changes the configuration.

    An unreachable address may be that of a provider that is restarting, so it counts only if no item is done yet.
    """
    pause = read_pause(job.reason) if job.status == "paused_provider" else None
    if pause is None or (pause.cause == "unreachable" and _count_done(job)):
        return
    problem = describe_absence(pause.model, pause.cause, verb="answers no question")
    raise JudgeDownError(f"{problem}; {job.id} waits and continues once that is fixed", pause.cause)


def _describe_end(job: AnyJob) -> Iterator[str]:
    """Say how a job ended, or why it does not go on, and what to do next."""
    if job.status == "paused_budget":
        yield f"to continue it: {_advise_resuming(job)}"
        return
    counts = job.request_counts
    what = pluralize(counts.total, "item") if isinstance(job, Batch) else pluralize(job.items, "labelled item")
    outcomes = [f"{counts.completed} {'scored' if isinstance(job, Batch) else 'judged'}"] if counts.total else []
    never_run = counts.cancelled + counts.expired
    outcomes += [f"{count} {words}" for count, words in ((counts.failed, "failed"), (never_run, "never run")) if count]
    cost = f", {Cost.read(job)}" if job.questions else ""
    yield f"{job.status}; {what}{': ' if outcomes else ''}{', '.join(outcomes)}{cost}"
    if job.reason:
        yield f"reason: {job.reason}"
    if isinstance(job, Batch):
        yield f"to fetch the reports: callgrade jobs results {job.id}"
        if counts.completed < counts.total:
            yield f"to fetch why items have none: callgrade jobs results {job.id} --errors"
        return
    if job.unanswered:
        yield f"{pluralize(job.unanswered, 'question')} without an answer: {'; '.join(job.reasons)}"
    if job.status == "completed":
        yield f"to fetch the report and {pluralize(job.fits, 'fit')}: callgrade jobs results {job.id} --output FOLDER"


# What came of a job.


def fetch(client: BatchClient, batch_id: str, kind: Kind, *, output: Path | None, wait: bool) -> ExitCode:
    """Fetch results or errors, as JSON Lines in the order of the items; `wait`: once the batch has ended."""
    ended = (_follow(client, batch_id) if wait else client.find(batch_id)).ended
    lines = (line + b"\n" for line in client.iter_lines(batch_id, kind, wait=ended))
    if output is None:
        sys.stdout.flush()
        sys.stdout.buffer.writelines(lines)
        sys.stdout.buffer.flush()
    else:
        draft = output.with_name(f"{output.name}.part")
        with writing(output, "--output"):
            with draft.open("wb") as file:
                file.writelines(lines)
            draft.replace(output)
    if not ended:
        say("the batch has not ended, so these are not all; --wait waits for the others")
    return ExitCode.PASSED if ended else ExitCode.FAILED


def fetch_calibration(client: CalibrationClient, name: str, out: Path, *, wait: bool) -> ExitCode:
    """Write a completed calibration as `callgrade calibrate run` would."""
    from pydantic import ValidationError  # noqa: PLC0415 (only calibrations need these)

    from service.calibration.results import parse_calibration_report  # noqa: PLC0415
    from service.cli.calibrating import write_run  # noqa: PLC0415

    if wait and (code := watch_to_the_end(client, name)) != ExitCode.PASSED:
        return code
    try:
        report = parse_calibration_report(client.report(name))
    except ValidationError:
        raise ForeignError from None
    write_run(report, out)
    return ExitCode.PASSED
