"""What batches and calibrations of a running service have in common: looked at, watched, ended."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from typing import Literal

from pydantic_core import to_json

from service.cli.batch_progress import Progression
from service.cli.batch_table import ended_line, show_many, show_one
from service.cli.console import say
from service.cli.exits import ExitCode
from service.io.client import CalibrationClient, Client, J, Job, Jobs, P, watched
from service.io.store.batch import ENDED

TableOrJson = Literal["table", "json"]

Opening = AbstractContextManager[Client] | AbstractContextManager[CalibrationClient]
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
        return _shown(client.find(name), output_format)


def cancel(jobs: Opening, name: str) -> ExitCode:
    """Lets a job end."""
    with jobs as client:
        return _shown(client.cancel(name), "table")


def resume(jobs: Opening, name: str, *, budget_usd: float | None) -> ExitCode:
    """Goes on with a paused job."""
    with jobs as client:
        return _shown(client.resume(name, budget_usd=budget_usd), "table")


def delete(jobs: Opening, name: str) -> ExitCode:
    """Deletes a job that has ended, with all that came of it."""
    with jobs as client:
        client.delete(name)
    say(f"{name} is deleted, with its items and results")
    return ExitCode.PASSED


def follow(client: Jobs[J, P], name: str, *, verb: str) -> J:
    """Shows how a job gets on until it has ended, or waits for a larger budget. `verb`: what is going on."""
    command = command_of(client)
    try:
        with Progression(verb, lines=True) as progression:
            for job in watched(client, name, lost=lambda error: progression.tell(f"{error}; it is tried again")):
                progression.show(job)
                if job.status in ENDED or job.status == "paused_budget":
                    break
            else:
                return client.find(name)  # a watch ends with an end, or raises
    except KeyboardInterrupt:
        say(f"it goes on; {command} watch {name} shows it again, {command} cancel {name} ends it")
        raise
    if job.status == "paused_budget":
        say(f"{command} resume {job.id} --budget-usd X goes on with it")
    return job


def ended(client: Jobs[J, P], name: str, *, verb: str) -> J | None:
    """Follows a job and says how it ended. None for one that waits for a larger budget: it is not waited for."""
    job = follow(client, name, verb=verb)
    if job.status == "paused_budget":
        return None
    say(ended_line(job))
    if job.reason:
        say(f"because: {job.reason}")
    return job


def command_of(client: Jobs[J, P]) -> str:
    """What the commands about its jobs begin with."""
    return "callgrade calibrate" if isinstance(client, CalibrationClient) else "callgrade batch"


def _shown(job: Job, output_format: TableOrJson) -> ExitCode:
    if output_format == "json":
        _print_json(job)
    else:
        show_one(job)
    return ExitCode.PASSED


def _print_json(value: object) -> None:
    sys.stdout.buffer.write(to_json(value) + b"\n")
    sys.stdout.buffer.flush()
