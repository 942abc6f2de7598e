"""`callgrade calibrate check`: whether judges still agree with the labels as they did when they were fitted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.calibrating.options import LabelsOption
from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.rendering.console import say
from service.reporting.escaping import escape_unprintable

if TYPE_CHECKING:
    from service.cli.calibrating.checks import Sampling
    from service.core.report import JudgeMode


@command(6)
def calibrate_check(
    report: Annotated[Path, typer.Argument(metavar="REPORT", help="The report.json of a run, or its folder.")],
    labels: LabelsOption,
    rubric: Annotated[str, typer.Option("--rubric", "-r", metavar="ID", help="Whose judges are asked.")] = "four_step",
    judge: Annotated[
        str | None, typer.Option(metavar="NAME", help="One judge of the report. [default: each that the rubric has]")
    ] = None,
    size: Annotated[
        int, typer.Option(metavar="N", min=2, help="Held-out items that are judged again, for each criterion.")
    ] = 100,
    seed: Annotated[str | None, typer.Option(metavar="TEXT", help="What the sample is drawn with.")] = None,
    again: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A former check as JSON, whose items are judged once more.")
    ] = None,
    judges: Annotated[
        Literal["cached", "live", "fresh"], typer.Option(help="How they are asked; fresh asks again what is cached.")
    ] = "fresh",
    output_format: Annotated[
        Literal["table", "json"], typer.Option("--format", "-f", help="How it is written.")
    ] = "table",
) -> int:
    """Judge a pinned sample of held-out items again; exit 2 where agreement fell out of the interval it had.

    On standard error stands which figure of which judge fell to which side.
    """
    from service.cli.calibrating.checks import Sampling

    sampling = Sampling(size, again=again) if seed is None else Sampling(size, seed, again)
    return check_calibration(
        report, labels, rubric=rubric, judges=judges, sampling=sampling, judge=judge, output_format=output_format
    )


def check_calibration(
    run: Path,
    labels: Path,
    *,
    rubric: str = "four_step",
    judges: JudgeMode = "fresh",
    sampling: Sampling | None = None,
    judge: str | None = None,
    output_format: Literal["table", "json"] = "table",
) -> ExitCode:
    """Judge a pinned sample again and compare kappa and accuracy on it with those of the run.

    2 where one fell out of the interval that it had, and which and where to is told; 5 where items were not answered.
    """
    from service.cli.calibrating.checks import Sampling, check_again, note_installed, show_check

    found, missing = check_again(
        run, labels, rubric=rubric, judges=judges, judge=judge, sampling=sampling or Sampling()
    )
    show_check(found, output_format)
    note_installed(found)
    for reason in missing:
        say(f"not judged: {escape_unprintable(reason)}")
    if found.drifted:
        return ExitCode.FAILED
    return ExitCode.DATA if missing else ExitCode.PASSED
