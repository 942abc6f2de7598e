"""The commands and their options. Bodies are imported when a command runs, so that help is quick."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from service import __version__
from service.cli.groups.batch import batch
from service.cli.groups.cache import cache
from service.cli.groups.calibrate import calibrate
from service.cli.groups.keys import keys
from service.cli.groups.rubrics import rubrics
from service.cli.options import ExpectedOption, Files, FormatOption, OutputOption, Reports, RubricOption

app = typer.Typer(
    name="callgrade",
    help="Scores what language models do with tools: decide, select, build arguments, integrate the result.",
    epilog="Exit codes: 0 passed; 1 a fault of callgrade; 2 a verdict is fail; 3 undecided, a verdict is abstain; "
    "4 configuration or usage; 5 input data.",
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for group in (rubrics, cache, keys, batch, calibrate):
    app.add_typer(group)


def _version(value: bool) -> None:  # noqa: FBT001 (typer calls it so)
    if value:
        typer.echo(f"callgrade {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001, FBT002 (its callback uses it)
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def demo(
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Write the cases as JSON Lines for `callgrade score`.")
    ] = None,
    judge: Annotated[  # noqa: FBT002 (typer passes it by name)
        bool,
        typer.Option("--judge", help="Ask a judge what code leaves open: the one that is set up, else a stand-in."),
    ] = False,
) -> int:
    """Score the bundled cases and show, step by step, what broke. Needs no key and no network."""
    from service.cli.demo import run_demo, save_demo  # noqa: PLC0415

    return run_demo(judge=judge) if save is None else save_demo(save)


@app.command()
def score(  # noqa: PLR0913, PLR0917 (one for each option)
    files: Files,
    rubric: RubricOption = None,
    expected: ExpectedOption = None,
    input_format: FormatOption = "auto",
    output_format: Annotated[
        Literal["table", "json", "ndjson", "junit"], typer.Option("--format", "-f", help="How reports are written.")
    ] = "table",
    fail_under: Annotated[
        float | None, typer.Option(metavar="X", min=0, max=1, help="Exit 2 if the mean score is below X, from 0 to 1.")
    ] = None,
    strict: Annotated[  # noqa: FBT002 (typer passes it by name)
        bool, typer.Option("--strict", help="Count the verdict abstain as a failure: exit 2 instead of 3.")
    ] = False,
    allow_abstain: Annotated[  # noqa: FBT002 (likewise)
        bool,
        typer.Option("--allow-abstain", help="Exit 0 in spite of abstentions, but for those that rest on a fault."),
    ] = False,
    judges: Annotated[
        Literal["off", "cached", "live", "fresh"] | None,
        typer.Option(
            help="How judges are asked; off: take what code alone decides. "
            "[default: CALLGRADE_JUDGES, else live where CALLGRADE_JUDGE_MODEL is set]"
        ),
    ] = None,
    output: OutputOption = None,
    resumable: Annotated[
        bool | None,
        typer.Option(
            "--resumable/--no-resumable",
            help="Keep what is scored, so that the same command goes on where it was stopped. "
            "[default: for judged files of 1,000 records or more]",
        ),
    ] = None,
) -> int:
    """Score traces: one report each.

    A record is a trace in its provider's own form, or a score request: {"trace": ..., "expected": ..., "rubric": ...}. A bare
    trace may have "expected", "rubric" and "tags" beside its own keys. A record that cannot be read or scored is reported
    and skipped, and the exit code is 5. Where no answer to an open question could change a verdict it is given; else it is
    abstain, and the exit code 3.
    """
    from service.cli.inputs import read_inputs  # noqa: PLC0415
    from service.cli.score import Judgement, run_score  # noqa: PLC0415

    inputs = read_inputs(files, rubric=rubric, expected=expected, input_format=input_format, judges=judges)
    judgement = Judgement(fail_under, strict=strict, allow_abstain=allow_abstain)
    return run_score(inputs, judgement, output_format=output_format, output=output, resumable=resumable)


@app.command()
def plan(
    files: Files,
    rubric: RubricOption = None,
    expected: ExpectedOption = None,
    input_format: FormatOption = "auto",
    output_format: Annotated[
        Literal["table", "json"], typer.Option("--format", "-f", help="How the plan is written.")
    ] = "table",
) -> int:
    """Show what a judge would be asked of traces, without asking."""
    from service.cli.inputs import read_inputs  # noqa: PLC0415
    from service.cli.plan import run_plan  # noqa: PLC0415

    inputs = read_inputs(files, rubric=rubric, expected=expected, input_format=input_format)
    return run_plan(inputs, output_format=output_format)


@app.command()
def summarize(  # noqa: PLR0913, PLR0917 (one for each option)
    files: Reports,
    assertions: Annotated[
        list[str] | None,
        typer.Option("--assert", "-a", metavar="TEXT", help="What must hold, such as 'pass_rate >= 0.95'; repeatable."),
    ] = None,
    gate: Annotated[
        Path | None, typer.Option("--gate", metavar="FILE", help="YAML or JSON with a list `assertions`.")
    ] = None,
    targets: Annotated[
        Path | None, typer.Option("--targets", metavar="FILE", help="What the set should be made of; YAML or JSON.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="TAG", help="Tag to slice by; repeatable. [default: step, tool, difficulty, model]"),
    ] = None,
    pass_k: Annotated[
        list[int] | None,
        typer.Option(
            "--pass-k", metavar="K", min=1, help="k of pass^k over the tag `task`; repeatable. [default: all]"
        ),
    ] = None,
    rubric: Annotated[
        str | None,
        typer.Option(
            "--rubric", "-r", metavar="ID|FILE", help="Rubric that declares families of tools. [default: the reports']"
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels", metavar="FILE", help="JSON Lines of labels by trace_id and criterion; they correct rates."
        ),
    ] = None,
    output_format: Annotated[
        Literal["table", "json", "markdown", "junit"], typer.Option("--format", "-f", help="How it is written.")
    ] = "table",
) -> int:
    """Sum up reports: rates with intervals, each tool, pass^k, the set's make-up; and gate on them.

    Reports are what `callgrade score --format ndjson` writes. Exit code 2 where an assertion does not hold or no case
    measured it, with the step that broke; 3 where that depends on what is open; 4 for an assertion that cannot be read or an
    unknown metric.
    """
    from service.cli.summarize import Asked, run_summarize  # noqa: PLC0415

    asked = Asked(assertions or (), gate, targets, by, pass_k or (), rubric, labels)
    return run_summarize(files, asked, output_format=output_format)


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="Reports of one run.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Reports of the same cases in another.")],
    output_format: Annotated[
        Literal["table", "json", "markdown"], typer.Option("--format", "-f", help="How it is written.")
    ] = "table",
) -> int:
    """Compare two runs of the same cases, paired by trace id: differences with intervals, and the cases that changed."""
    from service.cli.compare import run_compare  # noqa: PLC0415

    return run_compare(a, b, output_format=output_format)


@app.command()
def serve(
    host: Annotated[
        str | None, typer.Option(help="Address to listen on. [default: CALLGRADE_HOST or 127.0.0.1]")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="Port; 0 takes any free one. [default: CALLGRADE_PORT or 8000]"),
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error", "critical"] | None,
        typer.Option(help="Least severe log record written. [default: CALLGRADE_LOG_LEVEL or info]"),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes that serve.")] = 1,
) -> int:
    """Serve the HTTP API. Settings come from CALLGRADE_* variables; logs are JSON lines on standard error."""
    from service.cli.serve import run_serve  # noqa: PLC0415

    return run_serve(host=host, port=port, log_level=log_level, workers=workers)


@app.command()
def worker(
    log_level: Annotated[
        Literal["debug", "info", "warning", "error", "critical"] | None,
        typer.Option(help="Least severe log record written. [default: CALLGRADE_LOG_LEVEL or info]"),
    ] = None,
    *,
    beside: Annotated[bool, typer.Option("--beside", hidden=True, help="End with standard input.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only tell whether a worker of this machine is alive: 0 if so, 2 if not.")
    ] = False,
) -> int:
    """Work on batches, until told to stop. On PostgreSQL any number of workers share the work; SQLite takes one."""
    if check:
        from service.cli.alive import check_worker  # noqa: PLC0415

        return check_worker()
    from service.cli.worker import run_worker  # noqa: PLC0415

    return run_worker(log_level=log_level, beside=beside)
