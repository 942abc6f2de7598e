"""`callgrade calibrate compare`: compare two judges on the same labelled items."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.rendering.console import build_console
from service.errors import InputError

if TYPE_CHECKING:
    from service.calibration.comparison import JudgeSide


@command(7)
def calibrate_compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="The report.json or folder of a run, or predictions.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The same of another judge, on the same items.")],
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The labelled set; required for predictions.")
    ] = None,
    judge_a: Annotated[str | None, typer.Option(metavar="NAME", help="Which judge of A, if it has several.")] = None,
    judge_b: Annotated[str | None, typer.Option(metavar="NAME", help="Which judge of B, if it has several.")] = None,
    draws: Annotated[
        int,
        typer.Option(metavar="N", min=0, max=100_000, help="Bootstrap draws for each interval; 0 for no intervals."),
    ] = 1_000,
    output_format: Annotated[
        Literal["table", "json", "markdown"], typer.Option("--format", "-f", help="Output format.")
    ] = "table",
) -> int:
    """Compare two judges, paired by item: agreement, kappa, Brier score, and the items on which they differ."""
    return compare_judges(a, b, labels=labels, judges=(judge_a, judge_b), draws=draws, output_format=output_format)


def compare_judges(
    a: Path,
    b: Path,
    *,
    labels: Path | None = None,
    judges: tuple[str | None, str | None] = (None, None),
    draws: int = 1_000,
    output_format: Literal["table", "json", "markdown"] = "table",
) -> ExitCode:
    """Compare two judges: of runs (their held-out items, calibrated) or of predictions (all labelled items, raw)."""
    from service.calibration.comparison import compare_sides
    from service.calibration.figures import Resampling
    from service.calibration.results import render_json
    from service.cli.calibrating.comparison import build_comparison_sections
    from service.cli.rendering.documents import show
    from service.reporting.markdown import render_markdown

    comparisons = compare_sides(_read_sides(a, labels), _read_sides(b, labels), judges, resampling=Resampling(draws))
    if output_format == "json":
        sys.stdout.write(render_json(comparisons).decode())
    elif output_format == "markdown":
        sys.stdout.write(render_markdown(build_comparison_sections(comparisons)))
    else:
        show(build_console(), build_comparison_sections(comparisons))
    return ExitCode.PASSED


def _read_sides(source: Path, labels: Path | None) -> tuple[JudgeSide, ...]:
    from service.calibration.comparison import read_prediction_sides, read_report_sides
    from service.cli.labelled import Sources, read_labelled, read_prediction_files, read_run

    if source.is_dir() or source.suffix == ".json":
        return read_report_sides(read_run(source))
    if labels is None:
        raise InputError.at(str(source), "comparing predictions needs labels; name them with --labels")
    return read_prediction_sides(read_labelled(Sources(labels)).labels, read_prediction_files([source]))
