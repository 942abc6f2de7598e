"""Compare two runs of the same cases."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

from service.cli import options
from service.cli.ci import list_gate_annotations, write_step_summary
from service.cli.exits import ExitCode
from service.cli.inputs import read_report_files
from service.cli.screen import print_document, say
from service.cli.sections import build_comparison_sections, list_gate_lines
from service.reporting.comparison import compare_reports
from service.reporting.document import render_markdown
from service.reporting.regression import judge_reports


def main(
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

    With --fail-on-regression the exit code is 2 if code fails what it did not fail in A, or if the 95 % interval of the paired
    difference lies below 0, and 3 if that depends on open questions, on cases missing from B, or on a different rubric.
    """
    if not fail_on_regression and (on or allow_undecided):
        raise typer.BadParameter("needs --fail-on-regression", param_hint="--on" if on else "--allow-undecided")
    left, right = read_report_files([a]), read_report_files([b])
    gate = None
    if fail_on_regression:
        gate = judge_reports(left.reports, right.reports, on or (), allow_undecided=allow_undecided)
    comparison = compare_reports(left.reports, right.reports)
    sections = list(build_comparison_sections(comparison, gate))
    if output_format == "github":
        sys.stdout.writelines(f"{line}\n" for line in (list_gate_annotations(gate) if gate else ()))
        write_step_summary(render_markdown(sections))
    else:
        print_document(sections, output_format, comparison)
    for line in list_gate_lines(gate) if gate and output_format == "json" else ():
        say(line)
    if left.refused or right.refused:
        return ExitCode.DATA
    codes = {"within noise": ExitCode.PASSED, "regressed": ExitCode.FAILED, "undecided": ExitCode.UNDECIDED}
    return ExitCode.PASSED if gate is None else codes[gate.status]
