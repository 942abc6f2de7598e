"""How a job gets on, for a person who waits: a bar on a terminal, and a line for what is worth one anywhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from service.cli.exits import NO_JUDGE
from service.cli.rendering.console import error_console, plural, say
from service.errors import JudgeDownError
from service.jobs.pauses import read_pause
from service.reporting.escaping import escape_unprintable
from service.store.jobs.job import ENDED_STATUSES, ID_PREFIXES

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from service.client.calls import AnyJob


class Progression:
    """Shows one job after the other look at it, on standard error."""

    def __init__(self, verb: str, *, lines: bool = False) -> None:
        """`verb`: what is going on. `lines`: whether every tenth is a line where there is no terminal."""
        self._verb = verb
        self._lines = lines
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._told: tuple[str, str | None] = ("in_progress", None)
        self._tenths = 0

    def __enter__(self) -> Progression:
        if sys.stderr.isatty():
            self._bar = _bar()
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, job: AnyJob) -> None:
        """Shows how far it is."""
        self._tell_state(job)
        done, total = count_done(job), job.request_counts.total
        if self._bar is not None:
            if self._task is None:
                self._task = self._bar.add_task(self._verb, total=total, more="")
            self._bar.update(self._task, completed=done, total=total, more=_more(job))
        elif self._lines and done * 10 // max(1, total) > self._tenths:
            self._tenths = done * 10 // max(1, total)
            say(f"{done} of {plural(total, 'item')} done{_more(job)}")

    def tell(self, text: str) -> None:
        """A line, above the bar where there is one."""
        if self._bar is None:
            say(text)
        else:
            self._bar.console.print(escape_unprintable(text), soft_wrap=True)

    def _tell_state(self, job: AnyJob) -> None:
        state = (job.status, job.reason)
        if state == self._told or job.status in ENDED_STATUSES:
            return
        before, self._told = self._told[0], state
        if job.status.startswith("paused"):
            self.tell(explain_pause(job))
        elif job.status == "cancelling":
            self.tell("it is being cancelled: what is under way is finished")
        elif job.status == "finalizing" and job.id.startswith(ID_PREFIXES["calibration"]):
            self.tell("all is judged, and is being fitted")
        elif before.startswith("paused"):
            self.tell("it goes on")


def count_done(job: AnyJob) -> int:
    """The items that have an outcome."""
    return job.request_counts.completed + job.request_counts.failed


def has_asked_all(job: AnyJob) -> bool:
    """Whether it has asked as many questions as it may: more money would not help it."""
    return job.max_questions is not None and job.questions >= job.max_questions


def explain_pause(job: AnyJob) -> str:
    """Why a job is paused, and when it goes on."""
    when = f"; tried again at {_clock(job.resume_at)}" if job.resume_at else ""
    return f"paused: {job.reason or job.status}{when}"


def require_judge(job: AnyJob) -> None:
    """JudgeDownError where a job waits for a judge that is not there: somebody must set it up otherwise first.

    An address at which nobody answers may be that of a provider that starts again; so it counts where nothing was answered.
    """
    pause = read_pause(job.reason) if job.status == "paused_provider" else None
    if pause is None or (pause.cause == "unreachable" and count_done(job)):
        return
    again = f"{job.id} waits, and goes on when that is right"
    raise JudgeDownError(f"the judge {pause.model} answers nothing: {NO_JUDGE[pause.cause]}; {again}", pause.cause)


def _clock(time: str) -> str:
    return f"{time.partition('T')[2].removesuffix('Z')} UTC"


def _more(job: AnyJob) -> str:
    """What is told beside the count."""
    failed = f", {job.request_counts.failed} failed" if job.request_counts.failed else ""
    cost = f", ${job.cost_usd:.2f}" if job.cost_usd else ""
    state = f", {job.status.partition('_')[0]}" if job.status not in ("in_progress", "completed") else ""
    return failed + cost + state


def _bar() -> Progress:
    from rich import progress  # noqa: PLC0415 (a terminal alone needs it)

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("and still"),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.fields[more]}"),
    )
    return progress.Progress(*columns, console=error_console(), transient=True)
