"""What a test says of a trace that does not pass: the verdict, the table of steps, the findings with their places."""

from __future__ import annotations

import io
from collections.abc import Iterator

from service.cli.rendering.console import console
from service.cli.rendering.results import list_findings
from service.cli.rendering.steps import show_steps
from service.core.report import Report
from service.reporting.escaping import escape_unprintable

WIDTH = 100
"""Columns of the table of steps."""

MOST_FINDINGS = 20


class TraceFailure(AssertionError):  # noqa: N818 (what a failed assertion is called)
    """A trace that does not pass. `report` is the whole report, `str` what a reader needs of it."""

    __module__ = "callgrade"

    def __init__(self, message: str, report: Report) -> None:
        self.report = report
        super().__init__(message)


def render_failure(report: Report, hint: str = "") -> str:
    """The message: verdict, steps, findings and, at the end, what can be done about what is open."""
    lines = [_render_head(report), "", *_render_steps(report), *_render_findings(report)]
    return "\n".join([*lines, hint] if hint else lines)


def _render_head(report: Report) -> str:
    name = escape_unprintable(report.trace_id or "the trace")
    if report.verdict == "abstain":
        return f"{name} is undecided, which is no pass: {report.rubric.id}@{report.rubric.version} abstains"
    if report.verdict == "not_applicable":
        return f"nothing in {name} was looked at, which is no pass: no criterion of {report.rubric.id} applies to it"
    broke = f" at {report.first_failing_stage}" if report.first_failing_stage else ""
    return f"{name} fails{broke}: {report.rubric.id}@{report.rubric.version}"


def _render_steps(report: Report) -> list[str]:
    held = io.StringIO()
    show_steps(console(held, width=WIDTH, plain=True), report)
    return [line.rstrip() for line in held.getvalue().splitlines()]


def _render_findings(report: Report) -> Iterator[str]:
    found = list_findings(report)
    if found:
        yield "findings:"
    for one in found[:MOST_FINDINGS]:
        yield escape_unprintable(f"  {one.path}: {one.message} [{one.code}]")
    if len(found) > MOST_FINDINGS:
        yield f"  and {len(found) - MOST_FINDINGS} more"
