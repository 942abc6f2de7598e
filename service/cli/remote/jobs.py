"""What batches and calibrations of a running service have in common: looked at, watched, ended."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from typing import Literal

from pydantic_core import to_json

from service.cli.exits import ExitCode
from service.cli.remote.progress import Progression, has_asked_all, require_judge
from service.cli.remote.tables import list_next_steps, render_end, show_many, show_one
from service.cli.rendering.console import say
from service.client.blocking import BatchClient, CalibrationClient, JobClient
from service.client.calls import AnyJob, J
from service.client.watch import watch_job
from service.store.jobs.batches import Batch
from service.store.jobs.job import ENDED

TableOrJson = Literal["table", "json"]

Opening = AbstractContextManager[BatchClient] | AbstractContextManager[CalibrationClient]
"""What `Service.batches` and `Service.calibrations` give."""


def list_jobs(
    jobs: Opening, *, limit: int, after: str | None, status: str | None, output_format: TableOrJson = "table"
) -> ExitCode:
    """Shows the jobs there are, newest first."""
    asked = {"limit": str(limit), "after": after, "status": status}
    with jobs as client:
        found = client.page(**{name: value for name, value in asked.items() if value is not None})
    if output_format == "json":
        _print_json(found)
    else:
        show_many(found.data)
    if found.has_more and output_format == "table":
        say(f"there are more; --after {found.next} shows them")
    return ExitCode.PASSED


def show_job(jobs: Opening, name: str, *, output_format: TableOrJson = "table") -> ExitCode:
    """Shows how one job gets on."""
    with jobs as client:
        return _show(client.find(name), output_format)


def cancel(jobs: Opening, name: str) -> ExitCode:
    """Lets a job end."""
    with jobs as client:
        return _show(client.cancel(name), "table")


def resume(jobs: Opening, name: str, *, budget_usd: float | None, max_questions: int | None) -> ExitCode:
    """Goes on with a paused job."""
    with jobs as client:
        return _show(client.resume(name, budget_usd=budget_usd, max_questions=max_questions), "table")


def delete(jobs: Opening, name: str) -> ExitCode:
    """Deletes a job that has ended, with all that came of it."""
    with jobs as client:
        client.delete(name)
    say(f"{name} is deleted, with its items and results")
    return ExitCode.PASSED


def watch(jobs: Opening, name: str) -> ExitCode:
    """Shows how a job gets on until it has ended; the exit code says how."""
    with jobs as client:
        if isinstance(client, BatchClient):  # a type checker takes them one by one
            return watch_to_the_end(client, name)
        return watch_to_the_end(client, name)


def watch_to_the_end(client: JobClient[J], name: str) -> ExitCode:
    """Shows how a job gets on, and what to do with it then. One that waits for a larger budget is not waited for."""
    job = _follow(client, name)
    if job.status == "paused_budget":
        return ExitCode.FAILED
    say(render_end(job))
    if job.reason:
        say(f"because: {job.reason}")
    for line in list_next_steps(job):
        say(line)
    return ExitCode.PASSED if job.status == "completed" and not _has_gaps(job) else ExitCode.FAILED


def _has_gaps(job: AnyJob) -> bool:
    """Whether a batch has items that were taken and have no report: what is made of its results lacks them."""
    return isinstance(job, Batch) and job.request_counts.failed > 0


def _follow(client: JobClient[J], name: str) -> J:
    """Shows how a job gets on until it has ended, or waits for a larger budget."""
    command = name_command(client)
    try:
        with Progression(_name_verb(client), lines=True) as progression:
            for job in watch_job(
                client, name, on_disconnect=lambda error: progression.tell(f"{error}; it is tried again")
            ):
                progression.show(job)
                require_judge(job)
                if job.status in ENDED or job.status == "paused_budget":
                    break
            else:
                return client.find(name)  # a watch ends with an end, or raises
    except KeyboardInterrupt:
        say(f"it goes on; {command} watch {name} shows it again, {command} cancel {name} ends it")
        raise
    if job.status == "paused_budget":
        more = "--max-questions N" if has_asked_all(job) else "--budget-usd X"
        say(f"{command} resume {job.id} {more} goes on with it")
    return job


def name_command(client: JobClient[J]) -> str:
    """What the commands about its jobs begin with."""
    return "callgrade calibrate" if isinstance(client, CalibrationClient) else "callgrade batch"


def _name_verb(client: JobClient[J]) -> str:
    """What is going on while its jobs are in progress."""
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
