"""The failure message for a trace that does not pass: the verdict, the table of stages, and the findings with their places."""

from __future__ import annotations

import io

from service.cli.screen import build_console
from service.cli.views import show_steps
from service.core.report import Report
from service.reporting.escaping import escape_unprintable

WIDTH = 100
"""The width of the table of stages, in columns."""


class TraceFailure(AssertionError):  # noqa: N818 (a failed assertion, not an error)
    """A trace that does not pass. `report` is the full report; the message is a summary of it."""

    __module__ = "callgrade"

    def __init__(self, message: str, report: Report) -> None:
        self.report = report
        super().__init__(message)


def render_failure(report: Report, hint: str = "") -> str:
    """Render the message: verdict, stages with findings and their places and, at the end, what to do about open questions."""
    name, rubric = escape_unprintable(report.trace_id or "the trace"), f"{report.rubric.id}@{report.rubric.version}"
    buffer = io.StringIO()
    console = build_console(buffer, width=WIDTH, plain=True)
    show_steps(console, report, head=f"{name} does not pass {rubric}: ", places=True)
    lines = [line.rstrip() for line in buffer.getvalue().splitlines()]
    return "\n".join([*lines, hint] if hint else lines)
