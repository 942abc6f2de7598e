"""Commands that batches and calibrations of a running service share: list, show, watch, cancel, resume, delete."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from typing import Literal

from pydantic_core import to_json

from service.cli.exits import ExitCode
from service.cli.remote.progress import JobProgress, has_asked_all, require_judge
from service.cli.remote.tables import list_next_steps, render_end, show_many, show_one
from service.cli.rendering.console import say
from service.client.blocking import BatchClient, CalibrationClient, JobClient
from service.client.calls import AnyJob, J
from service.client.watch import watch_job
from service.store.jobs.batches import Batch
from service.store.jobs.job import ENDED_STATUSES

TableOrJson = Literal["table", "json"]

JobClientContext = AbstractContextManager[BatchClient] | AbstractContextManager[CalibrationClient]
"""What `Service.batches` and `Service.calibrations` return."""


def list_jobs(
    jobs: JobClientContext, *, limit: int, after: str | None, status: str | None, output_format: TableOrJson = "table"
) -> ExitCode:
    """Print the jobs, newest first."""
    query = {"limit": str(limit), "after": after, "status": status}
    with jobs as client:
        page = client.page(**{name: value for name, value in query.items() if value is not None})
    if output_format == "json":
        _print_json(page)
    else:
        show_many(page.data)
    if page.has_more and output_format == "table":
        say(f"there are more; --after {page.next} shows them")
    return ExitCode.PASSED


def show_job(jobs: JobClientContext, name: str, *, output_format: TableOrJson = "table") -> ExitCode:
    """Print the state of a job."""
    with jobs as client:
        return _show(client.find(name), output_format)


def cancel(jobs: JobClientContext, name: str) -> ExitCode:
    """Cancel a job."""
    with jobs as client:
        return _show(client.cancel(name), "table")


def resume(jobs: JobClientContext, name: str, *, budget_usd: float | None, max_questions: int | None) -> ExitCode:
    """Resume a paused job."""
    with jobs as client:
        return _show(client.resume(name, budget_usd=budget_usd, max_questions=max_questions), "table")


def delete(jobs: JobClientContext, name: str) -> ExitCode:
    """Delete a job that has ended, with its items and results."""
    with jobs as client:
        client.delete(name)
    say(f"{name} is deleted, with its items and results")
    return ExitCode.PASSED


def watch(jobs: JobClientContext, name: str) -> ExitCode:
    """Show the progress of a job until it ends; the exit code says how it ended."""
    with jobs as client:
        if isinstance(client, BatchClient):  # type checkers need the two cases apart
            return watch_to_the_end(client, name)
        return watch_to_the_end(client, name)


def watch_to_the_end(client: JobClient[J], name: str) -> ExitCode:
    """Show the progress of a job until it ends or waits for a larger budget; then print how it ended and what to do next."""
    job = _follow(client, name)
    if job.status == "paused_budget":
        return ExitCode.FAILED
    say(render_end(job))
    if job.reason:
        say(f"reason: {job.reason}")
    for line in list_next_steps(job):
        say(line)
    return ExitCode.PASSED if job.status == "completed" and not _has_gaps(job) else ExitCode.FAILED


def _has_gaps(job: AnyJob) -> bool:
    """Whether accepted items of a batch have no report, so that its results are incomplete."""
    return isinstance(job, Batch) and job.request_counts.failed > 0


def _follow(client: JobClient[J], name: str) -> J:
    """Show the progress of a job until it ends or waits for a larger budget."""
    command = name_command(client)
    try:
        with JobProgress(_name_verb(client), lines=True) as progress_view:
            for job in watch_job(
                client, name, on_disconnect=lambda error: progress_view.print_line(f"{error}; trying again")
            ):
                progress_view.show(job)
                require_judge(job)
                if job.status in ENDED_STATUSES or job.status == "paused_budget":
                    break
            else:
                return client.find(name)  # not reached: watch_job yields until the job has ended, or raises
    except KeyboardInterrupt:
        say(f"{name} continues; `{command} watch {name}` shows it again, `{command} cancel {name}` ends it")
        raise
    if job.status == "paused_budget":
        more = "--max-questions N" if has_asked_all(job) else "--budget-usd X"
        say(f"to continue it: {command} resume {job.id} {more}")
    return job


def name_command(client: JobClient[J]) -> str:
    """Return the command group for the client's jobs."""
    return "callgrade calibrate" if isinstance(client, CalibrationClient) else "callgrade batch"


def _name_verb(client: JobClient[J]) -> str:
    """Return what the client's jobs do while in progress."""
    return "judging" if isinstance(client, CalibrationClient) else "scoring"


def _show(job: AnyJob, output_format: TableOrJson) -> ExitCode:
    if output_format == "json":
        _print_json(job)
    else:
        show_one(job)
    return ExitCode.PASSED


def _print_json(value: object) -> None:
    sys.stdout.buffer.write(to_json(value) + b"\n")
    sys.stdout.buffer.flush()
