"""Follow a job to its end: a bar on a terminal, lines for notable events everywhere, and what to do next."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from service.cli.exits import ABSENT_JUDGE_REASONS, ExitCode
from service.cli.remote.tables import count_done, render_end, render_time
from service.cli.rendering.console import build_error_console, pluralize, say
from service.client.jobs import AnyJob, J, JobClient
from service.core.money import Cost
from service.errors import JudgeDownError
from service.jobs.pauses import read_pause
from service.reporting.escaping import escape_unprintable
from service.store.jobs.batches import Batch
from service.store.jobs.job import ENDED_STATUSES

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


def watch_to_the_end(client: JobClient[J], name: str) -> ExitCode:
    """Show the progress of a job until it ends or waits for a larger budget; then print how it ended and what to do next."""
    job = _follow(client, name)
    if job is None or job.status == "paused_budget":
        return ExitCode.FAILED
    say(render_end(job))
    if job.reason:
        say(f"reason: {job.reason}")
    for line in _list_next_steps(job):
        say(line)
    has_gaps = isinstance(job, Batch) and job.request_counts.failed > 0
    return ExitCode.PASSED if job.status == "completed" and not has_gaps else ExitCode.FAILED


def _follow(client: JobClient[J], name: str) -> J | None:
    """Show the progress of a job until it ends or waits for a larger budget; return its last state."""
    job: J | None = None
    try:
        with JobProgress(lines=True) as view:
            for job in client.watch(name, on_disconnect=lambda error: view.print_line(f"{error}; trying again")):
                view.show(job)
                require_judge(job)
                if job.status == "paused_budget":
                    break
    except KeyboardInterrupt:
        say(f"{name} continues; `callgrade jobs watch {name}` shows it again, `callgrade jobs cancel {name}` ends it")
        raise
    if job is not None and job.status == "paused_budget":
        asked_all = job.max_questions is not None and job.questions >= job.max_questions
        more = "--max-questions N" if asked_all else "--budget-usd X"
        say(f"to continue it: callgrade jobs resume {job.id} {more}")
    return job


def _list_next_steps(job: AnyJob) -> Iterator[str]:
    if isinstance(job, Batch):
        yield f"to fetch the reports: callgrade jobs results {job.id}"
        if job.request_counts.completed < job.request_counts.total:
            yield f"to fetch why items have none: callgrade jobs results {job.id} --errors"
        return
    if job.unanswered:
        yield f"{pluralize(job.unanswered, 'question')} without an answer: {'; '.join(job.reasons)}"
    if job.status == "completed":
        yield f"to fetch the report and {pluralize(job.fits, 'fit')}: callgrade jobs results {job.id} --output FOLDER"


class JobProgress:
    """Shows successive states of one job on standard error."""

    def __init__(self, *, lines: bool = False) -> None:
        """`lines`: without a terminal, print a line at every tenth of the items."""
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
                verb = "scoring" if isinstance(job, Batch) else "judging"
                self._task = self._bar.add_task(verb, total=total, more="")
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
        elif job.status == "finalizing" and not isinstance(job, Batch):
            self.print_line("all items are judged; fitting")
        elif before.startswith("paused"):
            self.print_line("resumed")


def explain_pause(job: AnyJob) -> str:
    """Explain why a job is paused, and when it resumes."""
    when = f"; tried again at {render_time(job.resume_at).partition(' ')[2]}" if job.resume_at else ""
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


def _render_details(job: AnyJob) -> str:
    """Render what follows the count: failures, cost and state."""
    failed = f", {job.request_counts.failed} failed" if job.request_counts.failed else ""
    cost = f", {Cost.read(job)}" if job.questions else ""
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
