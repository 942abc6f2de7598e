"""`callgrade compare`: the same cases under two models or prompts, and a gate on what became worse."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.rendering.console import console, say

if TYPE_CHECKING:
    from service.reporting.comparison import Comparison
    from service.reporting.regression import RegressionGate

ComparisonFormat = Literal["table", "json", "markdown", "github"]


@command(50)
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="Reports of one run.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Reports of the same cases in another.")],
    output_format: Annotated[
        Literal["table", "json", "markdown", "github"],
        typer.Option("--format", "-f", help="How it is written; github: annotations and the summary of the step."),
    ] = "table",
    fail_on_regression: Annotated[
        bool,
        typer.Option("--fail-on-regression", help="Exit 2 where B is worse than noise explains, 3 where that is open."),
    ] = False,
    on: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="What is gated: passed, score, a stage, a criterion. [default: passed]"),
    ] = None,
    allow_abstain: Annotated[
        bool,
        typer.Option("--allow-abstain", help="Leave out cases that abstain, but for those that rest on a fault."),
    ] = False,
) -> int:
    """Compare two runs of the same cases, paired by trace id: differences with intervals, and the cases that changed.

    With --fail-on-regression the exit code is 2 where the 95 % interval of the paired difference lies below 0, and 3 where that
    depends on what is open, on cases that B lacks, or on another rubric.
    """
    from service.cli.reports import Reports
    from service.reporting.summaries import compare_reports, judge_reports

    if not fail_on_regression and (on or allow_abstain):
        raise typer.BadParameter("expected with --fail-on-regression", param_hint="--on, --allow-abstain")
    left, right = Reports([a]).load(), Reports([b]).load()
    gate = judge_reports(left.read, right.read, on or (), allow_abstain=allow_abstain) if fail_on_regression else None
    _write(compare_reports(left.read, right.read), gate, output_format)
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

    told = () if gate is None else tuple(list_regression_lines(gate))
    sections = [*([Section("Regressions", lines=told)] if told else []), *build_comparison_sections(comparison)]
    if output_format == "json":
        sys.stdout.write(render_json(comparison).decode() + "\n")
    elif output_format == "markdown":
        sys.stdout.write(render_markdown(sections))
    elif output_format == "github":
        sys.stdout.writelines(f"{line}\n" for line in (() if gate is None else list_regression_annotations(gate)))
        write_step_summary(render_markdown(sections))
    else:
        show(console(), sections)
    if output_format == "json":
        for line in told:
            say(line)
