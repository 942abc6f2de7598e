"""How far a long command is, in one line on a terminal that goes away at the end: done, rate, time left, undecided, cost."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta

from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task
from rich.table import Column
from rich.text import Text

from service.cli.screen import build_console, pluralize, say
from service.core.money import NOTHING, Cost
from service.reporting.escaping import escape_unprintable


def describe_progress(
    done: int, total: int | None, noun: str, *details: str, rate: float | None = None, left_s: float | None = None
) -> str:
    """Describe how far something is; details that are empty are left out.

    >>> describe_progress(1200, 4000, "trace", "", "3 undecided", "price unknown", rate=12.54, left_s=223.1)
    '1,200 of 4,000 traces, 12.5/s, 0:03:43 left, 3 undecided, price unknown'
    >>> describe_progress(1, None, "trace"), describe_progress(0, 1, "trace", rate=0.0)
    ('1 trace', '0 of 1 trace')
    """
    count = pluralize(total or done, noun).partition(" ")[2]
    of = "" if total is None else f" of {total:,}"
    speed = "" if not rate else f"{rate:,.1f}/s" if rate >= 1 else f"{rate:.2g}/s"
    left = f"{timedelta(seconds=int(left_s))} left" if left_s else ""
    return ", ".join(filter(None, [f"{done:,}{of} {count}", speed, left, *details]))


def describe_judging(undecided: int, cost: Cost, *, asked: bool) -> tuple[str, str]:
    """Describe what is undecided so far, and what judges have cost so far if one was asked."""
    return f"{undecided:,} undecided" if undecided else "", str(cost) if asked or cost != NOTHING else ""


class _Line(ProgressColumn):
    """All that the line says."""

    def render(self, task: Task) -> Text:
        """Render the current state."""
        done, total = int(task.completed), None if task.total is None else int(task.total)
        times = {"rate": task.speed, "left_s": task.time_remaining}
        return Text(
            escape_unprintable(describe_progress(done, total, task.description, *task.fields["details"], **times))
        )


class ProgressLine:
    """The line, on standard error, below what is printed there. Not drawn if `quiet`, or if standard error is no terminal.

    `steps`: how many lines are printed on the way where standard error is no terminal.
    """

    def __init__(self, noun: str, total: int | None = None, *, quiet: bool = False, steps: int = 0) -> None:
        self.drawn, console = sys.stderr.isatty() and not quiet, build_console(sys.stderr)
        columns = (SpinnerColumn(), _Line(Column(no_wrap=True, overflow="ellipsis")))
        self._bar = Progress(*columns, console=console, transient=True, redirect_stdout=False, disable=not self.drawn)
        self._task = self._bar.add_task(noun, total=total, details=())
        self._noun, self._steps, self._step = noun, 0 if quiet else steps, 0

    def __enter__(self) -> ProgressLine:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def update(self, done: int, *details: str, total: int | None = None) -> None:
        """Show that so much is done; `total` if it is known only now."""
        self._bar.update(self._task, completed=done, total=total, details=details)
        step = done * self._steps // max(1, total or 0)
        if not self.drawn and step > self._step:
            self._step = step
            say(describe_progress(done, total, self._noun, *details))

    @contextmanager
    def hide(self) -> Generator[None]:
        """Take the line away while something is printed on standard output."""
        self._bar.stop()
        try:
            yield
        finally:
            self._bar.start()
