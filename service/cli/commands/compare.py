"""`callgrade compare`: compare two runs of the same cases, and fail on regressions if asked to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

from service.cli import options
from service.cli.exits import ExitCode
from service.cli.screen import say, show

commands = typer.Typer()


@commands.command("compare")
def compare(
    a: Annotated[Path, Argument(metavar="A", help="Reports of one run, the baseline.")],
    b: Annotated[Path, Argument(metavar="B", help="Reports of the same cases in the other run.")],
    output_format: Annotated[
        Literal["table", "json", "markdown", "github"],
        Option("--format", "-f", help="Output format; github writes annotations and the step summary."),
    ] = "table",
    fail_on_regression: Annotated[bool, Option("--fail-on-regression", help="Exit 2 if B regressed.")] = False,
    on: Annotated[
        list[str] | None, Option(metavar="NAME", help="Gate on passed (the default), score, a stage or a criterion.")
    ] = None,
    allow_undecided: options.AllowUndecided = False,
) -> int:
    """Compare two runs of the same cases, paired by trace id: differences with intervals, and the cases that changed.

    With --fail-on-regression the exit code is 2 if code fails what passed in A, or if the 95 % interval of the paired
    difference lies below 0, and 3 if that depends on open questions, on cases missing from B, or on a different rubric.
    """
    from service.cli.ci import list_gate_annotations, write_step_summary
    from service.cli.reports import read_report_files
    from service.cli.sections import MAX_PROVED, build_comparison_sections, list_gate_lines
    from service.reporting.markdown import render_markdown
    from service.reporting.summaries import compare_reports, judge_reports, render_json

    if not fail_on_regression and (on or allow_undecided):
        raise typer.BadParameter("expected with --fail-on-regression", param_hint="--on, --allow-undecided")
    left, right = read_report_files([a]), read_report_files([b])
    gate = None
    if fail_on_regression:
        gate = judge_reports(left.reports, right.reports, on or (), allow_undecided=allow_undecided)
    comparison = compare_reports(left.reports, right.reports)
    sections = list(build_comparison_sections(comparison, gate))
    if output_format == "json":
        sys.stdout.write(render_json(comparison).decode() + "\n")
        for line in list_gate_lines(gate) if gate else ():
            say(line)
    elif output_format == "markdown":
        sys.stdout.write(render_markdown(sections))
    elif output_format == "github":
        sys.stdout.writelines(f"{line}\n" for line in (list_gate_annotations(gate, MAX_PROVED) if gate else ()))
        write_step_summary(render_markdown(sections))
    else:
        show(sections)
    if left.refused or right.refused:
        return ExitCode.DATA
    codes = {"held": ExitCode.PASSED, "regressed": ExitCode.FAILED, "undecided": ExitCode.UNDECIDED}
    return ExitCode.PASSED if gate is None else codes[gate.status]
