"""`callgrade score`: reports of many traces in one of several forms, and the exit code they deserve."""

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
from service.cli.exits import NO_JUDGE, ExitCode
from service.cli.options import ExpectedOption, Files, FormatOption, OutputOption, RubricOption
from service.cli.rendering.console import plural, say
from service.cli.rendering.refusals import REFUSALS_TOLD, tell_refusals

if TYPE_CHECKING:
    from service.cli.inputs import Inputs, Refusal
    from service.cli.rendering.results import Tally
    from service.cli.rendering.streams import Sink
    from service.cli.scoring import Result

OutputFormat = Literal["table", "json", "ndjson", "junit", "github"]


@command(20)
def score(
    files: Files,
    rubric: RubricOption = None,
    expected: ExpectedOption = None,
    input_format: FormatOption = "auto",
    output_format: Annotated[
        Literal["table", "json", "ndjson", "junit", "github"],
        typer.Option(
            "--format",
            "-f",
            help="How reports are written; github: annotations and the summary of the step, with reports in --output.",
        ),
    ] = "table",
    fail_under: Annotated[
        float | None, typer.Option(metavar="X", min=0, max=1, help="Exit 2 if the mean score is below X, from 0 to 1.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Count the verdict abstain as a failure: exit 2 instead of 3.")
    ] = False,
    allow_abstain: Annotated[
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
    repeats: Annotated[
        int, typer.Option(metavar="N", min=1, max=100, help="Score each trace N times; verdicts that differ are named.")
    ] = 1,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the steps of every trace.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="Show only what does not pass; all is counted.")] = False,
    output: OutputOption = None,
) -> int:
    """Score traces: one report each.

    A record is a trace in its provider's own form, or a score request: {"trace": ..., "expected": ..., "rubric": ...}. A bare
    trace may have "expected", "rubric" and "tags" beside its own keys. A record that cannot be read or scored is reported
    and skipped, and the exit code is 5. Where no answer to an open question could change a verdict it is given; else it is
    abstain, and the exit code 3.
    """
    from service.cli.inputs import read_inputs

    inputs = read_inputs(files, rubric=rubric, expected=expected, input_format=input_format, judges=judges)
    judgement = VerdictPolicy(fail_under, strict=strict, allow_abstain=allow_abstain)
    view = ScoreView(output_format, output, repeats, verbose=verbose, failed=failed)
    return run_score(inputs, judgement, view)


@dataclass(frozen=True)
class ScoreView:
    """What is written of a run, and where."""

    form: OutputFormat = "table"
    output: Path | None = None
    repeats: int = 1
    verbose: bool = False
    failed: bool = False

    def shows(self, result: Result) -> bool:
        """Whether a result is written."""
        from service.cli.inputs import Refusal

        return not self.failed or isinstance(result, Refusal) or result.report.verdict in ("fail", "abstain")

    @property
    def fills_terminal(self) -> bool:
        """Whether lines appear on the terminal anyway while the run goes on."""
        return self.output is None and self.form != "junit" and sys.stdout.isatty()


@dataclass(frozen=True)
class VerdictPolicy:
    """When a run has failed, and when it is undecided."""

    fail_under: float | None = None
    strict: bool = False
    allow_abstain: bool = False

    def code(self, tally: Tally) -> ExitCode:
        """The exit code. A judge that is not set up and data that cannot be read go before verdicts: these are not all there."""
        if tally.silent is not None:
            return ExitCode.CONFIG
        if tally.refused:
            return ExitCode.DATA
        reached = self.reaches(tally)
        if tally.verdicts["fail"] or (self.strict and tally.verdicts["abstain"]) or reached is False:
            return ExitCode.FAILED
        return ExitCode.UNDECIDED if reached is None or self._is_undecided(tally) else ExitCode.PASSED

    def _is_undecided(self, tally: Tally) -> bool:
        """Whether a trace abstains, or none got a verdict. Abstentions that rest on a fault are never allowed."""
        allowed = tally.verdicts["abstain"] - tally.unforgiven if self.allow_abstain else 0
        abstained = tally.verdicts["abstain"] - allowed
        decided = tally.verdicts["pass"] + tally.verdicts["warn"] + allowed
        return bool(abstained) or not decided

    def reaches(self, tally: Tally) -> bool | None:
        """Whether the mean is at least what was asked for; None where that depends on what is open. No score reaches anything."""
        if self.fail_under is None:
            return True
        least = self.fail_under - 1e-9
        low, high = tally.scores.ends or (-1.0, -1.0)
        return True if low >= least else None if high >= least else False


def run_score(inputs: Inputs, judgement: VerdictPolicy, view: ScoreView) -> ExitCode:
    """Score everything, write it, and say on standard error what could not be scored.

    Ended by ctrl-C it writes and tells what was done before.
    """
    from service.cli.rendering.results import Tally
    from service.cli.scoring import score_records

    _check_output(view.output, inputs)
    tally = Tally()
    refusals: list[Refusal] = []
    asks, interrupted = inputs.asks_judges, False
    with _open_output(view.output) as stream:
        sink = _build_sink(view, stream, tally, judgement, asks=asks)
        if asks and view.fills_terminal:
            say(f"asking {inputs.settings.judge_model}; a line follows for each trace")
        try:
            _add_all(score_records(inputs, repeats=view.repeats), tally, refusals, sink, view, asks=asks)
        except KeyboardInterrupt:
            interrupted = True
            say(f"ended by ctrl-C; {plural(tally.verdicts.total(), 'trace')} had been scored")
        sink.close()
    _tell(inputs, tally, refusals, judgement, view)
    return ExitCode.INTERRUPTED if interrupted else judgement.code(tally)


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
        if isinstance(result, Refusal) and len(refusals) < REFUSALS_TOLD:
            refusals.append(result)


def _check_output(output: Path | None, inputs: Inputs) -> None:
    """A usage error for an output that is an input, or has no folder: better now than when all is scored."""
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


def _build_sink(view: ScoreView, stream: BinaryIO, tally: Tally, judgement: VerdictPolicy, *, asks: bool) -> Sink:
    from service.cli.rendering.github import GitHub
    from service.cli.rendering.junit import JUnit
    from service.cli.rendering.streams import JsonLines, JsonReports
    from service.cli.rendering.table import LOOKAHEAD, ResultTable

    if view.form == "json":
        return JsonReports(stream)
    if view.form == "ndjson":
        return JsonLines(stream)
    if view.form == "junit":
        return JUnit(stream, strict=judgement.strict)
    if view.form == "github":
        return GitHub(None if view.output is None else stream, tally, strict=judgement.strict)
    lookahead = 1 if asks and view.fills_terminal else LOOKAHEAD
    return ResultTable(stream, tally, verbose=view.verbose, lookahead=lookahead)


def _tell(inputs: Inputs, tally: Tally, refusals: list[Refusal], judgement: VerdictPolicy, view: ScoreView) -> None:
    inputs.tell_guesses()
    if view.form != "table" or view.output is not None:
        say("; ".join(tally.lines()))
    _tell_refusals(refusals, tally)
    if tally.silent is not None:
        say(f"error: the judge {inputs.settings.judge_model} answered nothing: {NO_JUDGE[tally.silent]}")
    reached = judgement.reaches(tally)
    if reached is not True:
        say(f"the mean score is {'below' if reached is False else 'not for certain'} {judgement.fail_under}")


def _tell_refusals(refusals: list[Refusal], tally: Tally) -> None:
    tell_refusals(refusals, "error")
    if tally.refused > len(refusals):
        say(f"... and {plural(tally.refused - len(refusals), 'more record')}")
