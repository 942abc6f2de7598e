"""`callgrade compare`: compare two runs of the same cases, and fail on regressions if asked to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.rendering.console import build_console, say

if TYPE_CHECKING:
    from service.reporting.comparison import Comparison
    from service.reporting.regression import RegressionGate

ComparisonFormat = Literal["table", "json", "markdown", "github"]


@command(50)
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="Reports of one run, the baseline.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Reports of the same cases in the other run.")],
    output_format: Annotated[
        Literal["table", "json", "markdown", "github"],
        typer.Option("--format", "-f", help="Output format; github writes annotations and the step summary."),
    ] = "table",
    fail_on_regression: Annotated[
        bool,
        typer.Option("--fail-on-regression", help="Exit 2 if B regressed, 3 if that is undecided."),
    ] = False,
    on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="What to gate on: passed, score, a stage or a criterion; repeatable. [default: passed]"
        ),
    ] = None,
    allow_undecided: Annotated[
        bool,
        typer.Option("--allow-undecided", help="Leave out undecided cases, unless a fault is the reason."),
    ] = False,
) -> int:
    """Compare two runs of the same cases, paired by trace id: differences with intervals, and the cases that changed.

    With --fail-on-regression the exit code is 2 if code fails what passed in A, or if the 95 % interval of the paired
    difference lies below 0, and 3 if that depends on open questions, on cases missing from B, or on a different rubric.
    """
    from service.cli.reports import ReportFiles
    from service.reporting.summaries import compare_reports, judge_reports

    if not fail_on_regression and (on or allow_undecided):
        raise typer.BadParameter("expected with --fail-on-regression", param_hint="--on, --allow-undecided")
    left, right = ReportFiles([a]).load(), ReportFiles([b]).load()
    gate = (
        judge_reports(left.reports, right.reports, on or (), allow_undecided=allow_undecided)
        if fail_on_regression
        else None
    )
    _write(compare_reports(left.reports, right.reports), gate, output_format)
    if left.refused or right.refused:
        return ExitCode.DATA
    codes = {"held": ExitCode.PASSED, "regressed": ExitCode.FAILED, "undecided": ExitCode.UNDECIDED}
    return ExitCode.PASSED if gate is None else codes[gate.status]


def _write(comparison: Comparison, gate: RegressionGate | None, output_format: ComparisonFormat) -> None:
    from service.cli.rendering.comparison_sections import build_comparison_sections
    from service.cli.rendering.documents import show
    from service.cli.rendering.github import write_step_summary
    from service.cli.rendering.regressions import list_regression_annotations, list_regression_lines
    from service.reporting.document import Section
    from service.reporting.markdown import render_markdown
    from service.reporting.summaries import render_json

    lines = () if gate is None else tuple(list_regression_lines(gate))
    sections = [*([Section("Regressions", lines=lines)] if lines else []), *build_comparison_sections(comparison)]
    if output_format == "json":
        sys.stdout.write(render_json(comparison).decode() + "\n")
    elif output_format == "markdown":
        sys.stdout.write(render_markdown(sections))
    elif output_format == "github":
        sys.stdout.writelines(f"{line}\n" for line in (() if gate is None else list_regression_annotations(gate)))
        write_step_summary(render_markdown(sections))
    else:
        show(build_console(), sections)
    if output_format == "json":
        for line in lines:
            say(line)
