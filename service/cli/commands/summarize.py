"""`callgrade summarize`: sum up reports, and check assertions about them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from service.cli.command import command
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.options import ReportsArgument
from service.cli.rendering.console import build_console, say
from service.errors import InputError, Problem, SettingsError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from service.core.report import Report
    from service.reporting.assertions import Conditions
    from service.reporting.summary import Summary
    from service.reporting.summary.composition import Targets
    from service.reporting.summary.gate import Gate
    from service.reporting.summary.labelled import ReportLabel

T = TypeVar("T")

SummaryFormat = Literal["table", "json", "markdown", "junit"]


@command(40)
def summarize(
    files: ReportsArgument,
    assertions: Annotated[
        list[str] | None,
        typer.Option("--assert", "-a", metavar="TEXT", help="Assertion such as 'pass_rate >= 0.95'; repeatable."),
    ] = None,
    gate: Annotated[
        Path | None, typer.Option("--gate", metavar="FILE", help="YAML or JSON file with a list `assertions`.")
    ] = None,
    targets: Annotated[
        Path | None, typer.Option("--targets", metavar="FILE", help="Target composition of the set; YAML or JSON.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="TAG", help="Tag to slice by; repeatable. [default: step, tool, difficulty, model]"),
    ] = None,
    pass_k: Annotated[
        list[int] | None,
        typer.Option(
            "--pass-k", metavar="K", min=1, help="k for pass^k over the tag `task`; repeatable. [default: all]"
        ),
    ] = None,
    rubric: Annotated[
        str | None,
        typer.Option(
            "--rubric", "-r", metavar="ID|FILE", help="Rubric that declares tool families. [default: the reports' own]"
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels", metavar="FILE", help="Labels by trace_id and criterion, as JSON Lines, to correct the rates."
        ),
    ] = None,
    output_format: Annotated[
        Literal["table", "json", "markdown", "junit"], typer.Option("--format", "-f", help="Output format.")
    ] = "table",
) -> int:
    """Sum up reports: rates with intervals, figures per tool, pass^k and the composition of the set. Optionally gate on them.

    Takes what `callgrade score --format ndjson` writes. Exit code 2 if an assertion does not hold or no case measures it (the
    stage that failed is named), 3 if it depends on open questions, 4 if it cannot be read or names an unknown metric.
    """
    choices = SummaryChoices(assertions or (), gate, targets, by, pass_k or (), rubric, labels)
    return run_summarize(files, choices, output_format=output_format)


@dataclass(frozen=True)
class SummaryChoices:
    """The command's options."""

    assertions: Sequence[str] = ()
    gate: Path | None = None
    targets: Path | None = None
    by: Sequence[str] | None = None
    pass_k: Sequence[int] = ()
    rubric: str | None = None
    labels: Path | None = None


def run_summarize(
    files: Sequence[Path], choices: SummaryChoices, *, output_format: SummaryFormat = "table"
) -> ExitCode:
    """Sum up the reports, write the summary, and return a failing exit code if an assertion fails."""
    from service.cli.reports import ReportFiles
    from service.reporting.summaries import summarize_reports
    from service.reporting.summary import SummaryOptions

    assertions = _read_assertions(choices)
    options = SummaryOptions(targets=_read_targets(choices.targets), by=choices.by, pass_k=choices.pass_k)
    if output_format == "junit" and assertions is None:
        raise SettingsError.at("--format", "junit lists assertions, and there are none; add --assert or --gate")
    reports = ReportFiles(files).load()
    options = replace(options, families=_read_families(choices.rubric, reports.reports))
    labels = _read_labels(choices.labels)
    unscored = len(reports.refused)
    summary = _call_with_settings_error(
        lambda: summarize_reports(reports.reports, options, assertions, labels, unscored=unscored)
    )
    _write(summary, output_format)
    if summary.gate is not None:
        _print_gate(summary.gate)
    if reports.refused:
        return ExitCode.DATA
    if summary.gate is None or summary.gate.passed:
        return ExitCode.PASSED
    return ExitCode.UNDECIDED if summary.gate.undecided else ExitCode.FAILED


def _read_assertions(choices: SummaryChoices) -> tuple[str | Conditions, ...] | None:
    from service.reporting.summaries import read_gate

    if not choices.assertions and choices.gate is None:
        return None
    gate = () if choices.gate is None else _read_document(choices.gate, "--gate", read_gate)
    return (*gate, *choices.assertions)


def _read_labels(path: Path | None) -> tuple[ReportLabel, ...]:
    """Read labels from a file, JSON Lines or a list; InputError with the place of one that cannot be read."""
    from service.reading.trace_files import BadRecord, scan_records
    from service.reporting.summaries import read_label
    from service.wiring import build_limits

    if path is None:
        return ()
    found: list[ReportLabel] = []
    for record in scan_records(path, limits=build_limits(read_settings())):
        try:
            if isinstance(record, BadRecord):
                raise record.error
            found.append(read_label(record.value))
        except InputError as error:
            where = f"{record.place}{record.place.pointer}: "
            raise InputError([Problem(where + one.path, one.message) for one in error.problems]) from None
    return tuple(found)


def _read_targets(path: Path | None) -> Targets:
    from service.reporting.summaries import read_targets
    from service.reporting.summary.composition import Targets

    return Targets() if path is None else _read_document(path, "--targets", read_targets)


def _read_document(path: Path, option: str, read: Callable[[JsonValue], T]) -> T:
    from service.cli.inputs import read_text
    from service.packaged_files import read_yaml

    text = read_text(path, option)
    return _call_with_settings_error(lambda: read(read_yaml(text, source="")), str(path))


def _call_with_settings_error(make: Callable[[], T], before: str = "") -> T:
    """Call `make`; its InputError becomes a SettingsError, because the command line is at fault, not the data."""
    try:
        return make()
    except InputError as error:
        raise SettingsError(Problem(before + problem.path, problem.message) for problem in error.problems) from None


def _read_families(rubric: str | None, reports: Sequence[Report]) -> dict[str, Sequence[str]]:
    from service.cli.inputs import find_rubric
    from service.reporting.summaries import build_family_finder, find_families
    from service.wiring import build_engine

    registry = build_engine(read_settings()).registry
    if rubric is not None:
        return dict(find_rubric(registry, rubric).families)
    return dict(find_families(reports, build_family_finder(registry.find)))


def _write(summary: Summary, output_format: SummaryFormat) -> None:
    from service.cli.rendering.documents import show
    from service.cli.rendering.gate_junit import render_junit
    from service.cli.rendering.summary_sections import build_summary_sections
    from service.reporting.markdown import render_markdown
    from service.reporting.summaries import render_json

    if output_format == "json":
        sys.stdout.write(render_json(summary).decode() + "\n")
    elif output_format == "markdown":
        sys.stdout.write(render_markdown(build_summary_sections(summary)))
    elif output_format == "junit" and summary.gate is not None:
        sys.stdout.write(render_junit(summary.gate))
    else:
        show(build_console(), build_summary_sections(summary))


def _print_gate(gate: Gate) -> None:
    """Print the assertions that did not pass on standard error, whatever goes to standard output."""
    for one in gate.results:
        if one.status in ("failed", "undecided", "error", "warned"):
            broke = f"; failed at {one.broke_at}" if one.broke_at else ""
            say(f"{one.status}: {one.assertion}: {one.message}{broke}")
