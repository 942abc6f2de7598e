"""`callgrade calibrate check`: check that judges still agree with the labels as they did when they were fitted."""

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
    rubric: Annotated[
        str, typer.Option("--rubric", "-r", metavar="ID", help="Rubric whose judges are asked.")
    ] = "four_step",
    judge: Annotated[
        str | None, typer.Option(metavar="NAME", help="One judge of the report. [default: all that the rubric uses]")
    ] = None,
    size: Annotated[
        int, typer.Option(metavar="N", min=2, help="Number of held-out items to judge again, per criterion.")
    ] = 200,
    seed: Annotated[str | None, typer.Option(metavar="TEXT", help="Seed for drawing the sample.")] = None,
    judges: Annotated[
        Literal["cached", "live", "fresh"], typer.Option(help="How to ask judges; fresh ignores cached answers.")
    ] = "fresh",
    output_format: Annotated[Literal["table", "json"], typer.Option("--format", "-f", help="Output format.")] = "table",
) -> int:
    """Judge a pinned sample of held-out items again, and exit with 2 if agreement fell by more than 0.03 and chance.

    Compares the run with the latest five checks of it, which its folder keeps in checks.jsonl: run it every night on one folder.
    """
    from service.cli.calibrating.checks import Sampling

    sampling = Sampling(size) if seed is None else Sampling(size, seed)
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
    """Judge a pinned sample again, and compare the agreement on the latest nights with that of the run, item by item.

    Return 2 if a judge has drifted, and print which one and how far; 5 if items were not answered.
    """
    from service.cli.calibrating.checks import Sampling, judge_again, record_installed, show_check

    check, missing = judge_again(
        run, labels, rubric=rubric, judges=judges, judge=judge, sampling=sampling or Sampling()
    )
    show_check(check, output_format)
    record_installed(check)
    for reason in missing:
        say(f"not judged: {escape_unprintable(reason)}")
    if check.drifted:
        return ExitCode.FAILED
    return ExitCode.DATA if missing else ExitCode.PASSED
