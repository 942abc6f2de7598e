"""The failure message for a trace that does not pass: the verdict, the table of steps, and the findings with their places."""

from __future__ import annotations

import io
from collections.abc import Iterator

from service.cli.rendering.console import build_console
from service.cli.rendering.results import list_findings
from service.cli.rendering.steps import show_steps
from service.core.report import Report
from service.reporting.escaping import escape_unprintable

WIDTH = 100
"""The width of the table of steps, in columns."""

MAX_FINDINGS = 20


class TraceFailure(AssertionError):  # noqa: N818 (a failed assertion, not an error)
    """A trace that does not pass. `report` is the full report; the message is a summary of it."""

    __module__ = "callgrade"

    def __init__(self, message: str, report: Report) -> None:
        self.report = report
        super().__init__(message)


def render_failure(report: Report, hint: str = "") -> str:
    """Render the message: verdict, steps, findings and, at the end, what to do about open questions."""
    lines = [_render_head(report), "", *_render_steps(report), *_render_findings(report)]
    return "\n".join([*lines, hint] if hint else lines)


def _render_head(report: Report) -> str:
    name = escape_unprintable(report.trace_id or "the trace")
    if report.verdict == "undecided":
        return f"{name} is undecided, which does not pass: {report.rubric.id}@{report.rubric.version} decides nothing"
    if report.verdict == "not_applicable":
        return f"nothing in {name} was looked at, which does not pass: no criterion of {report.rubric.id} applies to it"
    broke = f" at {report.first_failing_stage}" if report.first_failing_stage else ""
    return f"{name} fails{broke}: {report.rubric.id}@{report.rubric.version}"


def _render_steps(report: Report) -> list[str]:
    buffer = io.StringIO()
    show_steps(build_console(buffer, width=WIDTH, plain=True), report)
    return [line.rstrip() for line in buffer.getvalue().splitlines()]


def _render_findings(report: Report) -> Iterator[str]:
    findings = list_findings(report)
    if findings:
        yield "findings:"
    for one in findings[:MAX_FINDINGS]:
        yield escape_unprintable(f"  {one.path}: {one.message} [{one.code}]")
    if len(findings) > MAX_FINDINGS:
        yield f"  and {len(findings) - MAX_FINDINGS} more"
