"""Commands about calibration. Bodies are imported when a command runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from service.cli.groups.calibrate_service import MethodOption, PredictionsOption, SeedOption, served

calibrate = typer.Typer(
    name="calibrate", help="Fit judges to human labels, and show how far they agree.", rich_markup_mode=None
)


@calibrate.callback(invoke_without_command=True)
def _calibrate(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


LabelsOption = Annotated[Path, typer.Option(metavar="FILE", help="The labelled set: JSON Lines (also gzipped) or CSV.")]


@calibrate.command("run")
def calibrate_run(  # noqa: PLR0913, PLR0917 (one for each option)
    labels: LabelsOption,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where report and fits are written.")],
    predictions: PredictionsOption = None,
    method: MethodOption = "auto",
    seed: SeedOption = None,
    splits: Annotated[
        int, typer.Option(min=0, max=10_000, help="Over how many other splits the calibration error is measured again.")
    ] = 0,
    draws: Annotated[
        int, typer.Option(min=0, max=100_000, help="Draws of the bootstrap behind each interval; 0: no intervals.")
    ] = 1_000,
) -> int:
    """Fit recorded predictions to human labels: one part is fitted, the other is scored once.

    Writes report.json, report.md, report.html and fits/*.json. A fit that lies in CALLGRADE_HOME/fits calibrates that very
    judge from then on.
    """
    from service.calibrating.figures import Resampling  # noqa: PLC0415
    from service.calibrating.options import Options  # noqa: PLC0415
    from service.cli.calibrate import run_calibration  # noqa: PLC0415
    from service.cli.labelled import Sources  # noqa: PLC0415
    from service.io.fits import today  # noqa: PLC0415

    options = Options(method=method, splits=splits, resampling=Resampling(draws=draws), made=today())
    options = options if seed is None else replace(options, seed=seed)
    return run_calibration(Sources(labels, predictions or ()), out, options)


@calibrate.command("judge")
def calibrate_judge(
    labels: LabelsOption,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the predictions are written, as JSON Lines.")],
    rubric: Annotated[str, typer.Option("--rubric", "-r", metavar="ID", help="Whose judges are asked.")] = "four_step",
    judges: Annotated[
        Literal["cached", "live", "fresh"], typer.Option(help="How they are asked; fresh asks again what is cached.")
    ] = "live",
    repeats: Annotated[
        int,
        typer.Option(metavar="K", min=1, max=100, help="Answers to each question: how far a judge is its own noise."),
    ] = 1,
) -> int:
    """Have judges answer the labelled items: the predictions that `calibrate run` fits.

    It may be stopped at any time: started again with the same --out, it asks only for what is not there.
    """
    from service.cli.calibrate_judge import judge_labels  # noqa: PLC0415

    return judge_labels(labels, out, rubric=rubric, judges=judges, repeats=repeats)


@calibrate.command("show")
def calibrate_show(
    report: Annotated[Path, typer.Argument(metavar="REPORT", help="The report.json of a run, or its folder.")],
    output_format: Annotated[
        Literal["table", "json", "markdown", "html"], typer.Option("--format", "-f", help="How it is written.")
    ] = "table",
) -> int:
    """Show the report of a run once more."""
    from service.cli.calibrate import show_calibration  # noqa: PLC0415

    return show_calibration(report, output_format=output_format)


@calibrate.command("check")
def calibrate_check(  # noqa: PLR0913, PLR0917 (one for each option)
    report: Annotated[Path, typer.Argument(metavar="REPORT", help="The report.json of a run, or its folder.")],
    labels: LabelsOption,
    rubric: Annotated[str, typer.Option("--rubric", "-r", metavar="ID", help="Whose judges are asked.")] = "four_step",
    judge: Annotated[
        str | None, typer.Option(metavar="NAME", help="One judge of the report. [default: each that the rubric has]")
    ] = None,
    size: Annotated[int, typer.Option(min=2, help="Held-out items that are judged again, for each criterion.")] = 100,
    seed: Annotated[str | None, typer.Option(help="What the sample is drawn with.")] = None,
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
    from service.cli.calibrate_check import Sampling, check_calibration  # noqa: PLC0415

    sampling = Sampling(size, again=again) if seed is None else Sampling(size, seed, again)
    return check_calibration(
        report, labels, rubric=rubric, judges=judges, sampling=sampling, judge=judge, output_format=output_format
    )


@calibrate.command("compare")
def calibrate_compare(  # noqa: PLR0913, PLR0917 (one for each option)
    a: Annotated[Path, typer.Argument(metavar="A", help="A run's report.json or folder, or predictions.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another, on the same labelled items.")],
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The labelled set; needed for predictions.")
    ] = None,
    judge_a: Annotated[str | None, typer.Option(metavar="NAME", help="Which judge of A, where it has several.")] = None,
    judge_b: Annotated[str | None, typer.Option(metavar="NAME", help="Which judge of B, where it has several.")] = None,
    draws: Annotated[
        int, typer.Option(min=0, max=100_000, help="Draws of the bootstrap behind each interval; 0: no intervals.")
    ] = 1_000,
    output_format: Annotated[
        Literal["table", "json", "markdown"], typer.Option("--format", "-f", help="How it is written.")
    ] = "table",
) -> int:
    """Compare two judges on the items that both have, paired: agreement, kappa, Brier score, and where they differ."""
    from service.cli.calibrate_compare import compare_judges  # noqa: PLC0415

    return compare_judges(a, b, labels=labels, judges=(judge_a, judge_b), draws=draws, output_format=output_format)


@calibrate.command("queue")
def calibrate_queue(
    file: Annotated[Path | None, typer.Option(help="The queue.  [default: CALLGRADE_LABEL_QUEUE]")] = None,
    done: Annotated[list[Path] | None, typer.Option(help="Labelled sets whose items do not wait any more.")] = None,
    criterion: Annotated[str | None, typer.Option(help="Of one criterion alone.")] = None,
    export: Annotated[int | None, typer.Option(min=1, help="Write so many, the most doubtful first.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where they are written, else standard output.")
    ] = None,
) -> int:
    """Show what waits for labels: items whose judged value lies where its fit says that a human should decide.

    Fill `labels` in, as [{"annotator": "ana", "label": "pass"}], and give the file to `callgrade calibrate run --labels`: what
    the judge said stands beside each item.
    """
    from service.cli.calibrate_queue import show_queue  # noqa: PLC0415

    return show_queue(file, done=done or (), criterion=criterion, export=export, out=out)


@calibrate.command("rate")
def calibrate_rate(
    labels: LabelsOption,
    predictions: PredictionsOption = None,
    output_format: Annotated[
        Literal["table", "json"], typer.Option("--format", "-f", help="How it is written.")
    ] = "table",
) -> int:
    """Correct the pass rate of all that was judged by the labels of a part of it (PPI++)."""
    from service.cli.calibrate import show_rates  # noqa: PLC0415
    from service.cli.labelled import Sources  # noqa: PLC0415

    return show_rates(Sources(labels, predictions or ()), output_format=output_format)


calibrate.add_typer(served)
