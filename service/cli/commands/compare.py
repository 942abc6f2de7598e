"""`callgrade compare`: the same cases under two models or prompts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.rendering.console import console


@command(50)
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="Reports of one run.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Reports of the same cases in another.")],
    output_format: Annotated[
        Literal["table", "json", "markdown"], typer.Option("--format", "-f", help="How it is written.")
    ] = "table",
) -> int:
    """Compare two runs of the same cases, paired by trace id: differences with intervals, and the cases that changed."""
    from service.cli.rendering.comparison_sections import build_comparison_sections
    from service.cli.rendering.documents import show
    from service.cli.reports import Reports
    from service.reporting.markdown import render_markdown
    from service.reporting.summaries import compare_reports, render_json

    left, right = Reports([a]).load(), Reports([b]).load()
    comparison = compare_reports(left.read, right.read)
    if output_format == "json":
        sys.stdout.write(render_json(comparison).decode() + "\n")
    elif output_format == "markdown":
        sys.stdout.write(render_markdown(build_comparison_sections(comparison)))
    else:
        show(console(), build_comparison_sections(comparison))
    return ExitCode.DATA if left.refused or right.refused else ExitCode.PASSED
