"""Fit judges to human labels, and install the fits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from service.cli import options
from service.cli.options import build_command_group

Labels = Annotated[Path, Option(metavar="FILE", help="The labelled set: JSON Lines (also gzipped) or CSV.")]
Run = Annotated[Path, Argument(metavar="RUN", help="The report.json of a run, or its folder.")]
JudgeOfRun = Annotated[str | None, Option("--judge", metavar="NAME", help="One judge of the run. [default: all]")]
JudgedRubric = Annotated[str, Option("--rubric", "-r", metavar="ID", help="Rubric whose judges are asked.")]
Draws = Annotated[int, Option(metavar="N", min=0, max=100_000, help="Draws for each interval; 0 for none.")]

commands = build_command_group("calibrate", "Fit judges to human labels, and show how well they agree.")


@commands.command("import")
def calibrate_import(
    files: Annotated[list[Path], Argument(metavar="FILE...", help="Exports of annotation tools, or tables.")],
    out: Annotated[Path, Option(metavar="FILE", help="File to write the labelled items to, as JSON Lines.")],
    criterion: Annotated[str, Option(metavar="ID", help="Criterion of the labels.")] = "result_groundedness",
    names: Annotated[
        str | None,
        Option(metavar="NAME=ID,...", help="Criteria by the tool's names for scores; other names are left out."),
    ] = None,
    traces: Annotated[
        list[Path] | None, Option(metavar="FILE", help="The traces that were labelled, matched by id.")
    ] = None,
    weak: Annotated[
        Path | None, Option(metavar="FILE", help="File for thumbs and corrections of users, kept apart.")
    ] = None,
    passes: Annotated[str | None, Option("--pass", metavar="VALUES", help="Values that pass, as in good,fine.")] = None,
    fails: Annotated[str | None, Option("--fail", metavar="VALUES", help="Values that fail.")] = None,
    passes_from: Annotated[float | None, Option(metavar="X", help="The lowest number that passes.")] = None,
    columns: options.Columns = None,
) -> int:
    """Read the labels of Langfuse, Phoenix, LangSmith, MLflow, Label Studio, Argilla, promptfoo, or a table.

    Labels of people are written to --out, several annotators of an item together; what a model or code said is left out. A value
    that is neither a pass nor a fail in words that are known is an error, until --pass, --fail or --passes-from says which.
    """
    from service.cli.label_importing import import_label_files

    return import_label_files(
        files,
        out,
        criterion=criterion,
        names=names,
        traces=traces or (),
        weak=weak,
        passes=passes,
        fails=fails,
        passes_from=passes_from,
        columns=columns,
    )


@commands.command("judge")
def calibrate_judge(
    labels: Labels,
    out: Annotated[Path, Option(metavar="FILE", help="File to write the predictions to, as JSON Lines.")],
    rubric: JudgedRubric = "four_step",
    judges: Annotated[
        Literal["cached", "live", "fresh"], Option(help="How to ask judges; fresh ignores cached answers.")
    ] = "live",
    repeats: Annotated[
        int, Option(metavar="K", min=1, max=100, help="Answers per question; several measure its noise.")
    ] = 1,
    plugin: options.Plugin = None,
    quiet: options.Quiet = False,
) -> int:
    """Have judges answer the labelled items, and write the predictions that `calibrate run` fits.

    You can stop it at any time: run it again, and it asks only for what is missing from the cache.
    """
    from service.cli.calibrating import judge_labels

    return judge_labels(labels, out, rubric=rubric, judges=judges, repeats=repeats, plugins=plugin or (), quiet=quiet)


@commands.command("run")
def calibrate_run(
    labels: Labels,
    out: Annotated[Path, Option(metavar="FOLDER", help="Folder to write the report and the fits to.")],
    predictions: Annotated[
        list[Path] | None, Option(metavar="FILE", help="Predictions. [default: those with the labels]")
    ] = None,
    method: Annotated[
        Literal["auto", "identity", "platt", "isotonic"],
        Option(help="The map to fit; auto means Platt below 300 labels, else isotonic."),
    ] = "auto",
    seed: Annotated[str | None, Option(metavar="TEXT", help="Seed for splitting the groups.")] = None,
    guarantee: Annotated[
        float | None,
        Option(metavar="SHARE", min=0.5, max=0.999, help="Guarantee that this share of accepted verdicts agrees."),
    ] = None,
    draws: Draws = 1_000,
) -> int:
    """Fit recorded predictions to human labels. The fits use all labels; the figures come from cross-fitting.

    Each label is scored once, by a fit that has not seen it. Writes report.json, report.md, report.html and fits/*.json. Run
    `callgrade calibrate install` to install the fits; each then calibrates its judge.
    """
    from service.calibration.figures import Resampling
    from service.calibration.options import ReportOptions
    from service.cli.calibrating import run_calibration
    from service.fits.files import get_today

    chosen = ReportOptions(method=method, resampling=Resampling(draws=draws), guarantee=guarantee, made=get_today())
    chosen = chosen if seed is None else replace(chosen, seed=seed)
    return run_calibration(labels, out, chosen, predictions=predictions or ())


@commands.command("install")
def calibrate_install(run: Run) -> int:
    """Install the fits of a run in CALLGRADE_HOME/fits, so that they turn judges' answers into verdicts.

    Refuses the fit of a judge that is not useful: one that the held-out labels do not show to be better than chance. Warns about
    each judge and model whose verdicts stay open because no fit is theirs.
    """
    from service.cli.fitted import install_fits

    return install_fits(run)


@commands.command("improve")
def calibrate_improve(
    labels: Labels,
    criterion: Annotated[str, Option(metavar="ID", help="Criterion whose judge is to agree better with people.")],
    out: Annotated[Path, Option(metavar="FILE", help="Rubric file to write the better judge to.")],
    rubric: JudgedRubric = "four_step",
    candidate: Annotated[
        list[Path] | None, Option(metavar="FILE", help="Rubric file with a changed judge to try; repeatable.")
    ] = None,
    writer: Annotated[str | None, Option(metavar="MODEL", help="Model that proposes changes.")] = None,
    proposals: Annotated[int, Option(metavar="N", min=1, max=20, help="Proposals to ask for.")] = 3,
    test: Annotated[bool, Option("--test/--no-test", help="Test the best on the labels kept back.")] = True,
    output_format: options.TableOrJson = "table",
) -> int:
    """Find where a judge disagrees with people, try changed instructions, and show what the best one gains.

    Changes are tried on three fifths of the groups, and the best is tested on the others, with an interval. Each further test on
    the same labels is counted and said. Nothing is installed.
    """
    from service.cli.improving import ImproveOptions, improve_judge

    chosen = ImproveOptions(
        criterion, rubric, out, candidate or (), writer, proposals=proposals, test=test, output_format=output_format
    )
    return improve_judge(labels, chosen)


@commands.command("certify")
def calibrate_certify(
    run: Run,
    tpr: Annotated[float, Option(metavar="SHARE", min=0.5, max=0.999, help="Passes to recognise, at least.")] = 0.9,
    tnr: Annotated[float, Option(metavar="SHARE", min=0.5, max=0.999, help="Failures to recognise, at least.")] = 0.9,
    judge: JudgeOfRun = None,
    labels: Annotated[Path | None, Option(metavar="FILE", help="Fresh labels, instead of those held out.")] = None,
    predictions: Annotated[
        list[Path] | None,
        Option(metavar="FILE", help="The judges' answers about them. [default: those with the labels]"),
    ] = None,
    output_format: options.TableOrJson = "table",
) -> int:
    """Certify with 95 % confidence that verdicts recognise these shares of passes and of failures; exit with 2 if not.

    Stores the bounds in the fits and the report of the run; install the run again to take them along. Each further look at the
    same labels may err half as often as the one before, so its bounds are lower.
    """
    from service.cli.certifying import certify_run

    return certify_run(
        run, tpr=tpr, tnr=tnr, judge=judge, labels=labels, predictions=predictions or (), output_format=output_format
    )


@commands.command("fits")
def calibrate_fits(output_format: options.TableOrJson = "table") -> int:
    """List the fits in CALLGRADE_HOME/fits, whether each applies, and what later checks found."""
    from service.cli.fitted import list_fits

    return list_fits(output_format)


@commands.command("check")
def calibrate_check(
    run: Run,
    labels: Labels,
    rubric: JudgedRubric = "four_step",
    judge: JudgeOfRun = None,
    size: Annotated[int, Option(metavar="N", min=2, help="Held-out items to judge, per criterion.")] = 200,
    output_format: options.TableOrJson = "table",
    quiet: options.Quiet = False,
) -> int:
    """Judge a pinned sample of held-out items again, and exit with 2 if agreement fell by more than 0.03 and chance.

    Compares the run with the latest five checks of it, which its folder keeps in checks.jsonl: run it every night on one folder.
    """
    from service.cli.fitted import check_calibration

    return check_calibration(
        run, labels, rubric=rubric, size=size, judge=judge, output_format=output_format, quiet=quiet
    )


@commands.command("compare")
def calibrate_compare(
    a: Annotated[Path, Argument(metavar="A", help="The report.json or folder of a run, or predictions.")],
    b: Annotated[Path, Argument(metavar="B", help="The same of another judge, on the same items.")],
    labels: Annotated[Path | None, Option(metavar="FILE", help="The labelled set; required for predictions.")] = None,
    judge_a: Annotated[str | None, Option(metavar="NAME", help="Which judge of A, if it has several.")] = None,
    judge_b: Annotated[str | None, Option(metavar="NAME", help="Which judge of B, if it has several.")] = None,
    draws: Draws = 1_000,
    output_format: Annotated[Literal["table", "json", "markdown"], options.FORMAT] = "table",
) -> int:
    """Compare two judges, paired by item: agreement, kappa, Brier score, and the items on which they differ."""
    from service.cli.calibrating import compare_judges

    return compare_judges(a, b, labels=labels, judges=(judge_a, judge_b), draws=draws, output_format=output_format)
