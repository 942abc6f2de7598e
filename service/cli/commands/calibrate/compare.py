"""Compare two judges on the same items."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from service.calibration import comparison
from service.calibration.figures import Resampling
from service.cli import options
from service.cli.calibrating import Draws, build_judge_comparison, read_labelled, read_prediction_files, read_run
from service.cli.exits import ExitCode
from service.cli.screen import print_document
from service.errors import InputError


def main(
    a: Annotated[Path, Argument(metavar="A", help="The report.json or folder of a run, or predictions.")],
    b: Annotated[Path, Argument(metavar="B", help="The same of another judge, on the same items.")],
    labels: Annotated[Path | None, Option(metavar="FILE", help="The labelled set; required for predictions.")] = None,
    judge_a: Annotated[str | None, Option(metavar="NAME", help="Which judge of A, if it has several.")] = None,
    judge_b: Annotated[str | None, Option(metavar="NAME", help="Which judge of B, if it has several.")] = None,
    draws: Draws = 1_000,
    output_format: Annotated[Literal["table", "json", "markdown"], options.FORMAT] = "table",
) -> int:
    """Compare two judges, paired by item: agreement, kappa, Brier score, and the items on which they differ."""
    compared = comparison.compare_sides(
        _read_sides(a, labels), _read_sides(b, labels), (judge_a, judge_b), resampling=Resampling(draws)
    )
    sections = [section for one in compared for section in build_judge_comparison(one)]
    print_document(sections, output_format, compared)
    return ExitCode.PASSED


def _read_sides(source: Path, labels: Path | None) -> tuple[comparison.JudgeSide, ...]:
    if source.is_dir() or source.suffix == ".json":
        return comparison.read_report_sides(read_run(source))
    if labels is None:
        raise InputError.at(str(source), "comparing predictions needs labels; name them with --labels")
    return comparison.read_prediction_sides(read_labelled(labels).labels, read_prediction_files([source]))
