"""`callgrade score`: reports of many traces in one of several forms, and the exit code they deserve."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

import typer

from service.cli.console import console, plural, say
from service.cli.exits import NO_JUDGE, ExitCode, told
from service.cli.inputs import Inputs, Refused
from service.cli.junit import JUnit
from service.cli.progress import watched
from service.cli.results import Result, Tally, graded
from service.cli.streams import JsonLines, JsonReports, Sink
from service.cli.table import Table

REFUSALS_TOLD = 20
"""How many refused records are told one by one on standard error."""

OutputFormat = Literal["table", "json", "ndjson", "junit"]


@dataclass(frozen=True)
class Judgement:
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


def run_score(
    inputs: Inputs,
    judgement: Judgement,
    *,
    output_format: OutputFormat = "table",
    output: Path | None = None,
    resumable: bool | None = None,
) -> ExitCode:
    """Score everything, write it, and say on standard error what could not be scored.

    `resumable`: whether the same may be started again after it was stopped; None: where that is worth it.
    """
    _check_output(output, inputs)
    tally = Tally()
    refusals: list[Refused] = []
    with _results(inputs, resumable) as results, _opened(output) as stream:
        sink = _sink(output_format, stream, tally, judgement)
        for result in watched(results, silent=_shows_itself(output_format, output)):
            tally.add(result)
            sink.add(result)
            if isinstance(result, Refused) and len(refusals) < REFUSALS_TOLD:
                refusals.append(result)
        sink.close()
    _tell(inputs, tally, refusals, judgement, quiet=output_format == "table" and output is None)
    return judgement.code(tally)


@contextmanager
def _results(inputs: Inputs, resumable: bool | None) -> Generator[Iterable[Result]]:  # noqa: FBT001 (None: as it is fitting)
    if resumable is False or (inputs.engine.judging is None and not resumable):
        yield graded(inputs)
        return
    from service.cli.resumable import is_resumed, resumed  # noqa: PLC0415 (a second that most runs need not wait)

    if not is_resumed(inputs, resumable):
        yield graded(inputs)
        return
    with resumed(inputs) as results:
        yield results


def _check_output(output: Path | None, inputs: Inputs) -> None:
    """A usage error for an output that is an input, or has no folder: better now than when all is scored."""
    if output is None:
        return
    if any(file.exists() and output.exists() and file.samefile(output) for file in inputs.files):
        raise typer.BadParameter(f"{output} is also an input", param_hint="--output")
    if not output.parent.is_dir():
        raise typer.BadParameter(f"{output}: {os.strerror(errno.ENOENT)}", param_hint="--output")


@contextmanager
def _opened(output: Path | None) -> Generator[BinaryIO]:
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


def _sink(output_format: OutputFormat, stream: BinaryIO, tally: Tally, judgement: Judgement) -> Sink:
    if output_format == "json":
        return JsonReports(stream)
    if output_format == "ndjson":
        return JsonLines(stream)
    if output_format == "junit":
        return JUnit(stream, strict=judgement.strict)
    return Table(stream, tally)


def _shows_itself(output_format: OutputFormat, output: Path | None) -> bool:
    """Whether lines appear on the terminal anyway while the run goes on."""
    return output is None and (output_format != "junit") and sys.stdout.isatty()


def _tell(inputs: Inputs, tally: Tally, refusals: list[Refused], judgement: Judgement, *, quiet: bool) -> None:
    inputs.tell_guesses()
    if not quiet:
        say("; ".join(tally.lines()))
    for refusal in refusals:
        say_refused(refusal)
    if tally.refused > len(refusals):
        say(f"... and {plural(tally.refused - len(refusals), 'more record')}")
    if tally.silent is not None:
        say(f"error: the judge {inputs.settings.judge_model} answered nothing: {NO_JUDGE[tally.silent]}")
    reached = judgement.reaches(tally)
    if reached is not True:
        say(f"the mean score is {'below' if reached is False else 'not for certain'} {judgement.fail_under}")


def say_refused(refusal: Refused, label: str = "error") -> None:
    """The record and what is wrong with it, on standard error."""
    console(sys.stderr).print(f"{label}: {told(refusal.error, where=str(refusal.place))}", soft_wrap=True)
