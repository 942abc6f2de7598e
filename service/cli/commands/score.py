"""Score traces and write one report for each."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

import typer
from typer import Option

from service.cli import options
from service.cli.ci import GitHub, JUnit
from service.cli.exits import ExitCode, describe_absence
from service.cli.inputs import Inputs, Refusal, print_guesses, print_refusals, read_inputs
from service.cli.options import writing
from service.cli.progress import ProgressLine, describe_judging
from service.cli.scoring import Result, score_records
from service.cli.screen import pluralize, say
from service.cli.tally import Tally
from service.cli.views import LOOKAHEAD, JsonReports, ResultTable
from service.reading.places import Layout
from service.reporting.statements import describe_uncertified


def main(
    files: options.Files,
    rubric: options.Rubric = None,
    expected: options.Expected = None,
    input_format: options.InputFormat = "auto",
    plugin: options.Plugin = None,
    tools: options.Tools = None,
    output_format: Annotated[
        Literal["table", "json", "ndjson", "junit", "github", "parquet"],
        Option(
            "--format",
            "-f",
            help="Output format; github writes annotations and the step summary, and the reports to --output; "
            "parquet is for --on ray.",
        ),
    ] = "table",
    fail_under: Annotated[
        float | None, Option(metavar="X", min=0, max=1, help="Exit 2 if the mean is below X, 3 if it may be.")
    ] = None,
    allow_undecided: options.AllowUndecided = False,
    require_certified: options.RequireCertified = False,
    judges: Annotated[
        Literal["off", "cached", "live", "fresh"] | None,
        Option(
            help="How to ask judges: off = use only what code decides, cached = use cached answers only, live = ask what is "
            "not cached, fresh = ask everything again. [default: CALLGRADE_JUDGES, else live if CALLGRADE_JUDGE_MODEL is set]"
        ),
    ] = None,
    verbose: Annotated[bool, Option("--verbose", "-v", help="Show the stages and calls of every trace.")] = False,
    failed: Annotated[bool, Option("--failed", help="Show only what fails or is undecided; count all.")] = False,
    quiet: options.Quiet = False,
    output: options.Output = None,
    rejected: options.Rejected = None,
    encoding: options.Encoding = None,
    columns: options.Columns = None,
    on: Annotated[
        Literal["ray"] | None,
        Option(help="Score on a Ray cluster; --output is the folder, local or a URL, for parts in ndjson or parquet."),
    ] = None,
    budget_usd: Annotated[float | None, Option(metavar="X", min=0, help="With --on ray: most to pay judges.")] = None,
) -> int:
    """Score traces and write one report for each.

    A record is a trace in its provider's own format, or a score request: {"trace": ..., "expected": ..., "rubric": ...}. A bare
    trace may have "expected", "rubric" and "tags" next to its own keys. A record that cannot be read or scored is reported and
    skipped, and the exit code is 5. The verdict is undecided, and the exit code 3, if the answer to an open question could change
    it. After Ctrl-C, what was scored before is still written and counted.
    """
    inputs = read_inputs(
        files,
        rubric=rubric,
        expected=expected,
        judges=judges,
        plugins=plugin,
        tools=tools,
        layout=Layout(input_format, encoding, options.read_columns(columns)),
    )
    for option, file in {"--output": output, "--rejected": rejected}.items():
        if file is not None and any(one.exists() and file.exists() and one.samefile(file) for one in files):
            raise typer.BadParameter(f"{file} is also an input", param_hint=option)
    _check_ray(on, output, output_format, idle=budget_usd, unknown=rejected or plugin or verbose or failed)
    tally, interrupted = Tally(guessed=inputs.guessed, left_out=inputs.left_out), False
    try:
        if on is None:
            fills_terminal = output is None and output_format != "junit" and sys.stdout.isatty()
            at_once = fills_terminal and inputs.asks_judges
            line = ProgressLine("trace", quiet=quiet or (fills_terminal and not at_once))
            with _open_file(output, "--output") if output else nullcontext(sys.stdout.buffer) as stream:
                if output_format == "github":
                    sink = GitHub(None if output is None else stream, tally, allow_undecided=allow_undecided)
                else:
                    sink = _build_sink(output_format, stream, tally, verbose=verbose, at_once=at_once)
                _score_here(inputs, tally, sink, rejected, line, failed=failed, at_once=at_once)
        else:
            from service.cli.on_ray import score_on_ray

            form = "parquet" if output_format == "parquet" else "jsonl"
            score_on_ray(inputs, tally, output or Path(), form, budget_usd=budget_usd)
    except KeyboardInterrupt:
        interrupted = True
        say(f"ended by Ctrl-C; {pluralize(tally.verdicts.total(), 'trace')} had been scored")
    print_guesses(tally.guessed, tally.left_out)
    if output_format != "table" or output is not None:
        say("; ".join(tally.list_lines()))
    print_refusals(tally.refusals, total=tally.refused)
    for reason in _list_reasons(tally, inputs.settings.judge_model, fail_under, require_certified=require_certified):
        say(reason)
    if interrupted:
        return ExitCode.INTERRUPTED
    return choose_code(tally, fail_under, allow_undecided=allow_undecided, require_certified=require_certified)


def _list_reasons(tally: Tally, model: str, fail_under: float | None, *, require_certified: bool) -> Iterator[str]:
    """Say why the exit code is another one than that of the verdicts."""
    if tally.absent_judge_cause is not None:
        yield f"error: {describe_absence(model, tally.absent_judge_cause)}"
    reached = _reaches(tally, fail_under)
    if reached is not True:
        yield f"the mean score is {'below' if reached is False else 'not certain to reach'} {fail_under}"
    if require_certified and tally.uncertified:
        yield describe_uncertified(tally.uncertified)


def _check_ray(on: str | None, output: Path | None, output_format: str, *, idle: object, unknown: object) -> None:
    """Raise a usage error for options that do not go with `--on ray`, or only with it."""
    if on is None and (output_format == "parquet" or idle is not None):
        raise typer.BadParameter("expected with --on ray", param_hint="--format parquet, --budget-usd")
    if on is not None and unknown:
        raise typer.BadParameter("not with --on ray", param_hint="--rejected, --plugin, --verbose, --failed")
    if on is not None and (output is None or output_format not in ("table", "ndjson", "parquet")):
        message = "--on ray needs --output FOLDER, and writes ndjson or parquet"
        raise typer.BadParameter(message, param_hint="--output, --format")


def _open_file(file: Path, option: str) -> BinaryIO:
    """Open a file for writing. A usage error if it cannot be written, before anything is scored."""
    with writing(file, option):
        return file.open("wb")


Sink = GitHub | JUnit | JsonReports | ResultTable


def _build_sink(form: str, stream: BinaryIO, tally: Tally, *, verbose: bool, at_once: bool) -> Sink:
    if form == "table":
        return ResultTable(stream, tally, verbose=verbose, lookahead=1 if at_once else LOOKAHEAD)
    return JUnit(stream) if form == "junit" else JsonReports(stream, lines=form == "ndjson")


def _score_here(
    inputs: Inputs, tally: Tally, sink: Sink, rejected: Path | None, line: ProgressLine, *, failed: bool, at_once: bool
) -> None:
    """Score in this process. After Ctrl-C, what was scored is written before it goes on."""
    if at_once:
        say(f"asking {inputs.settings.judge_model}; one line per trace follows")
    try:
        with line:
            if line.drawn:
                line.update(0, total=inputs.count())
            for done, result in enumerate(_keep_refused(score_records(inputs), rejected), start=1):
                tally.add(result)
                if not failed or isinstance(result, Refusal) or result.report.verdict in ("fail", "undecided"):
                    with line.hide() if at_once else nullcontext():
                        sink.add(result)
                line.update(done, *describe_judging(tally.verdicts["undecided"], tally.cost, asked=tally.replies > 0))
    except KeyboardInterrupt:
        sink.close()
        raise
    sink.close()


def _keep_refused(results: Iterable[Result], rejected: Path | None) -> Iterator[Result]:
    """Yield the results, and write each refused record to a file, as it came."""
    with _open_file(rejected, "--rejected") if rejected else nullcontext() as stream:
        for result in results:
            if stream and isinstance(result, Refusal):
                stream.write(result.raw.rstrip(b"\n") + b"\n")
            yield result


def choose_code(
    tally: Tally, fail_under: float | None = None, *, allow_undecided: bool = False, require_certified: bool = False
) -> ExitCode:
    """Choose the exit code. An absent judge and unreadable data come before verdicts, some of which they prevent.

    No verdict at all is undecided too. An undecided verdict caused by a fault is never allowed.
    """
    if tally.absent_judge_cause is not None:
        return ExitCode.CONFIG
    if tally.refused:
        return ExitCode.DATA
    reached, verdicts = _reaches(tally, fail_under), tally.verdicts
    if verdicts["fail"] or reached is False:
        return ExitCode.FAILED
    allowed = verdicts["undecided"] - tally.unforgiven if allow_undecided else 0
    decided = verdicts["pass"] + verdicts["warn"] + allowed
    undecided = verdicts["undecided"] > allowed or not decided or (require_certified and bool(tally.uncertified))
    return ExitCode.UNDECIDED if reached is None or undecided else ExitCode.PASSED


def _reaches(tally: Tally, fail_under: float | None) -> bool | None:
    """Whether the mean reaches `fail_under`; None if that depends on open questions, or if no trace has a score."""
    if fail_under is None:
        return True
    least = fail_under - 1e-9
    low, high = tally.mean_range or (0.0, 1.0)
    return True if low >= least else None if high >= least else False
