"""`callgrade calibrate show`: show the report of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.command import command
from service.cli.exits import ExitCode

if TYPE_CHECKING:
    from service.calibration.results import CalibrationReport

ReportFormat = Literal["table", "json", "markdown", "html"]


@command(3)
def calibrate_show(
    report: Annotated[Path, typer.Argument(metavar="REPORT", help="The report.json of a run, or its folder.")],
    output_format: Annotated[
        Literal["table", "json", "markdown", "html"], typer.Option("--format", "-f", help="Output format.")
    ] = "table",
) -> int:
    """Show the report of a run again."""
    return show_calibration(report, output_format=output_format)


def show_calibration(path: Path, *, output_format: ReportFormat = "table") -> ExitCode:
    """Print the report of a run: `path` is its report.json or the folder that holds it."""
    from service.cli.calibrating.runs import show_overview
    from service.cli.labelled import read_run

    report = read_run(path)
    if output_format == "table":
        show_overview(report)
    else:
        sys.stdout.write(_render(report, output_format))
    return ExitCode.PASSED


def _render(report: CalibrationReport, output_format: ReportFormat) -> str:
    from service.calibration.report.rendering import render_report_markdown, render_report_page
    from service.calibration.results import render_json

    if output_format == "json":
        return render_json(report).decode()
    return render_report_markdown(report) if output_format == "markdown" else render_report_page(report)
