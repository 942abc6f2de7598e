"""Show the progress of a job to a person who waits: a bar on a terminal, and lines for notable events everywhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from service.cli.exits import ABSENT_JUDGE_REASONS
from service.cli.rendering.console import build_error_console, pluralize, say
from service.errors import JudgeDownError
from service.jobs.pauses import read_pause
from service.reporting.escaping import escape_unprintable
from service.store.jobs.job import ENDED_STATUSES, ID_PREFIXES

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from service.client.calls import AnyJob


class JobProgress:
    """Shows successive states of one job on standard error."""

    def __init__(self, verb: str, *, lines: bool = False) -> None:
        """`verb`: what the job is doing. `lines`: without a terminal, print a line at every tenth of the items."""
        self._verb = verb
        self._lines = lines
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._last_state: tuple[str, str | None] = ("in_progress", None)
        self._tenths = 0

    def __enter__(self) -> JobProgress:
        if sys.stderr.isatty():
            self._bar = _build_bar()
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, job: AnyJob) -> None:
        """Show the job's current state."""
        self._print_state(job)
        done, total = count_done(job), job.request_counts.total
        if self._bar is not None:
            if self._task is None:
                self._task = self._bar.add_task(self._verb, total=total, more="")
            self._bar.update(self._task, completed=done, total=total, more=_render_details(job))
        elif self._lines and done * 10 // max(1, total) > self._tenths:
            self._tenths = done * 10 // max(1, total)
            say(f"{done} of {pluralize(total, 'item')} done{_render_details(job)}")

    def print_line(self, text: str) -> None:
        """Print a line, above the bar if there is one."""
        if self._bar is None:
            say(text)
        else:
            self._bar.console.print(escape_unprintable(text), soft_wrap=True)

    def _print_state(self, job: AnyJob) -> None:
        state = (job.status, job.reason)
        if state == self._last_state or job.status in ENDED_STATUSES:
            return
        before, self._last_state = self._last_state[0], state
        if job.status.startswith("paused"):
            self.print_line(explain_pause(job))
        elif job.status == "cancelling":
            self.print_line("cancelling: items under way will finish")
        elif job.status == "finalizing" and job.id.startswith(ID_PREFIXES["calibration"]):
            self.print_line("all items are judged; fitting")
        elif before.startswith("paused"):
            self.print_line("resumed")


def count_done(job: AnyJob) -> int:
    """Count the items that have an outcome."""
    return job.request_counts.completed + job.request_counts.failed


def has_asked_all(job: AnyJob) -> bool:
    """Whether the job has used up its questions, so that a larger budget would not help."""
    return job.max_questions is not None and job.questions >= job.max_questions


def explain_pause(job: AnyJob) -> str:
    """Explain why a job is paused, and when it resumes."""
    when = f"; tried again at {_render_time(job.resume_at)}" if job.resume_at else ""
    return f"paused: {job.reason or job.status}{when}"


def require_judge(job: AnyJob) -> None:
    """Raise JudgeDownError if a job waits for a judge that is missing until somebody changes the configuration.

    An unreachable address may be that of a provider that is restarting, so it counts only if no item is done yet.
    """
    pause = read_pause(job.reason) if job.status == "paused_provider" else None
    if pause is None or (pause.cause == "unreachable" and count_done(job)):
        return
    problem = f"the judge {pause.model} answers nothing: {ABSENT_JUDGE_REASONS[pause.cause]}"
    raise JudgeDownError(f"{problem}; {job.id} waits and continues once that is fixed", pause.cause)


def _render_time(time: str) -> str:
    return f"{time.partition('T')[2].removesuffix('Z')} UTC"


def _render_details(job: AnyJob) -> str:
    """Render what follows the count: failures, cost and state."""
    failed = f", {job.request_counts.failed} failed" if job.request_counts.failed else ""
    cost = f", ${job.cost_usd:.2f}" if job.cost_usd else ""
    state = f", {job.status.partition('_')[0]}" if job.status not in ("in_progress", "completed") else ""
    return failed + cost + state


def _build_bar() -> Progress:
    from rich import progress  # noqa: PLC0415 (only a terminal needs it)

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("remaining"),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.fields[more]}"),
    )
    return progress.Progress(*columns, console=build_error_console(), transient=True)
