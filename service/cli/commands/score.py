"""`callgrade score`: score traces, write the reports in one of several formats, and set the exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

import typer

from service.cli.command import command
from service.cli.exits import ABSENT_JUDGE_REASONS, ExitCode
from service.cli.options import ExpectedOption, FilesArgument, FormatOption, OutputOption, PluginOption, RubricOption
from service.cli.rendering.console import pluralize, say
from service.cli.rendering.refusals import MAX_LISTED_REFUSALS, print_refusals

if TYPE_CHECKING:
    from service.cli.inputs import Inputs, Refusal
    from service.cli.rendering.results import Tally
    from service.cli.rendering.streams import Sink
    from service.cli.scoring import Result

OutputFormat = Literal["table", "json", "ndjson", "junit", "github"]


@command(20)
def score(
    files: FilesArgument,
    rubric: RubricOption = None,
    expected: ExpectedOption = None,
    input_format: FormatOption = "auto",
    plugin: PluginOption = None,
    output_format: Annotated[
        Literal["table", "json", "ndjson", "junit", "github"],
        typer.Option(
            "--format",
            "-f",
            help="Output format; github writes annotations and the step summary, and the reports to --output.",
        ),
    ] = "table",
    fail_under: Annotated[
        float | None,
        typer.Option(metavar="X", min=0, max=1, help="Exit 2 if the mean score is below X, 3 if it may be."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Treat undecided as a failure: exit 2 instead of 3.")
    ] = False,
    allow_undecided: Annotated[
        bool,
        typer.Option("--allow-undecided", help="Exit 0 despite undecided verdicts, unless a fault is the reason."),
    ] = False,
    judges: Annotated[
        Literal["off", "cached", "live", "fresh"] | None,
        typer.Option(
            help="How to ask judges: off = use only what code decides, cached = use cached answers only, live = ask what is "
            "not cached, fresh = ask everything again. [default: CALLGRADE_JUDGES, else live if CALLGRADE_JUDGE_MODEL is set]"
        ),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, max=100, help="Score each trace N times, and name those whose verdict varies."
        ),
    ] = 1,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the steps of every trace.")] = False,
    failed: Annotated[
        bool, typer.Option("--failed", help="Show only traces that fail or are undecided; the totals still count all.")
    ] = False,
    output: OutputOption = None,
) -> int:
    """Score traces and write one report for each.

    A record is a trace in its provider's own format, or a score request: {"trace": ..., "expected": ..., "rubric": ...}. A bare
    trace may have "expected", "rubric" and "tags" beside its own keys. A record that cannot be read or scored is reported and
    skipped, and the exit code is 5. The verdict is undecided, and the exit code 3, if the answer to an open question could change
    it.
    """
    from service.cli.inputs import read_inputs

    inputs = read_inputs(
        files, rubric=rubric, expected=expected, input_format=input_format, judges=judges, plugins=plugin or ()
    )
    policy = VerdictPolicy(fail_under, strict=strict, allow_undecided=allow_undecided)
    view = ScoreView(output_format, output, repeats, verbose=verbose, failed=failed)
    return run_score(inputs, policy, view)


@dataclass(frozen=True)
class ScoreView:
    """Which results of a run are written, how, and where."""

    form: OutputFormat = "table"
    output: Path | None = None
    repeats: int = 1
    verbose: bool = False
    failed: bool = False

    def shows(self, result: Result) -> bool:
        """Whether to write this result."""
        from service.cli.inputs import Refusal

        return not self.failed or isinstance(result, Refusal) or result.report.verdict in ("fail", "undecided")

    @property
    def fills_terminal(self) -> bool:
        """Whether results appear on the terminal while the run is in progress."""
        return self.output is None and self.form != "junit" and sys.stdout.isatty()


@dataclass(frozen=True)
class VerdictPolicy:
    """When a run counts as failed, and when as undecided."""

    fail_under: float | None = None
    strict: bool = False
    allow_undecided: bool = False

    def choose_code(self, tally: Tally) -> ExitCode:
        """Choose the exit code. An absent judge and unreadable data come before verdicts, some of which they prevent."""
        if tally.absent_judge_cause is not None:
            return ExitCode.CONFIG
        if tally.refused:
            return ExitCode.DATA
        reached = self.reaches(tally)
        if tally.verdicts["fail"] or (self.strict and tally.verdicts["undecided"]) or reached is False:
            return ExitCode.FAILED
        return ExitCode.UNDECIDED if reached is None or self._is_undecided(tally) else ExitCode.PASSED

    def _is_undecided(self, tally: Tally) -> bool:
        """Whether a trace is undecided or none got a verdict. An undecided verdict caused by a fault is never allowed."""
        allowed = tally.verdicts["undecided"] - tally.unforgiven if self.allow_undecided else 0
        undecided = tally.verdicts["undecided"] - allowed
        decided = tally.verdicts["pass"] + tally.verdicts["warn"] + allowed
        return bool(undecided) or not decided

    def reaches(self, tally: Tally) -> bool | None:
        """Whether the mean reaches `fail_under`; None if that depends on open questions. Without any score it does not."""
        if self.fail_under is None:
            return True
        least = self.fail_under - 1e-9
        low, high = tally.scores.ends or (-1.0, -1.0)
        return True if low >= least else None if high >= least else False


def run_score(inputs: Inputs, policy: VerdictPolicy, view: ScoreView) -> ExitCode:
    """Score all records, write the results, and print on standard error what could not be scored.

    After Ctrl-C it still writes and reports what was scored before.
    """
    from service.cli.rendering.results import Tally
    from service.cli.scoring import score_records

    _check_output(view.output, inputs)
    tally = Tally()
    refusals: list[Refusal] = []
    asks, interrupted = inputs.asks_judges, False
    with _open_output(view.output) as stream:
        sink = _build_sink(view, stream, tally, policy, asks=asks)
        if asks and view.fills_terminal:
            say(f"asking {inputs.settings.judge_model}; one line per trace follows")
        try:
            _add_all(score_records(inputs, repeats=view.repeats), tally, refusals, sink, view, asks=asks)
        except KeyboardInterrupt:
            interrupted = True
            say(f"ended by Ctrl-C; {pluralize(tally.verdicts.total(), 'trace')} had been scored")
        sink.close()
    _print_summary(inputs, tally, refusals, policy, view)
    return ExitCode.INTERRUPTED if interrupted else policy.choose_code(tally)


def _add_all(
    results: Iterable[Result],
    tally: Tally,
    refusals: list[Refusal],
    sink: Sink,
    view: ScoreView,
    *,
    asks: bool,
) -> None:
    from service.cli.inputs import Refusal
    from service.cli.rendering.progress import show_count

    for result in show_count(results, silent=view.fills_terminal, at_once=asks):
        tally.add(result)
        if view.shows(result):
            sink.add(result)
        if isinstance(result, Refusal) and len(refusals) < MAX_LISTED_REFUSALS:
            refusals.append(result)


def _check_output(output: Path | None, inputs: Inputs) -> None:
    """Raise a usage error if the output is an input or its folder is missing, before anything is scored."""
    if output is None:
        return
    if any(file.exists() and output.exists() and file.samefile(output) for file in inputs.files):
        raise typer.BadParameter(f"{output} is also an input", param_hint="--output")
    if not output.parent.is_dir():
        raise typer.BadParameter(f"{output}: {os.strerror(errno.ENOENT)}", param_hint="--output")


@contextmanager
def _open_output(output: Path | None) -> Generator[BinaryIO]:
    if output is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        stream = output.open("wb")
    except OSError as error:
        raise typer.BadParameter(f"{output}: {error.strerror}", param_hint="--output") from None
    with stream:
        yield stream


def _build_sink(view: ScoreView, stream: BinaryIO, tally: Tally, policy: VerdictPolicy, *, asks: bool) -> Sink:
    from service.cli.rendering.github import GitHub
    from service.cli.rendering.junit import JUnit
    from service.cli.rendering.streams import JsonLines, JsonReports
    from service.cli.rendering.table import LOOKAHEAD, ResultTable

    if view.form == "json":
        return JsonReports(stream)
    if view.form == "ndjson":
        return JsonLines(stream)
    if view.form == "junit":
        return JUnit(stream, strict=policy.strict)
    if view.form == "github":
        return GitHub(None if view.output is None else stream, tally, strict=policy.strict)
    lookahead = 1 if asks and view.fills_terminal else LOOKAHEAD
    return ResultTable(stream, tally, verbose=view.verbose, lookahead=lookahead)


def _print_summary(
    inputs: Inputs, tally: Tally, refusals: list[Refusal], policy: VerdictPolicy, view: ScoreView
) -> None:
    inputs.print_guesses()
    if view.form != "table" or view.output is not None:
        say("; ".join(tally.list_lines()))
    _print_refusals(refusals, tally)
    if tally.absent_judge_cause is not None:
        reason = ABSENT_JUDGE_REASONS[tally.absent_judge_cause]
        say(f"error: the judge {inputs.settings.judge_model} answered nothing: {reason}")
    reached = policy.reaches(tally)
    if reached is not True:
        say(f"the mean score is {'below' if reached is False else 'not certain to reach'} {policy.fail_under}")


def _print_refusals(refusals: list[Refusal], tally: Tally) -> None:
    print_refusals(refusals, "error")
    if tally.refused > len(refusals):
        say(f"... and {pluralize(tally.refused - len(refusals), 'more record')}")
