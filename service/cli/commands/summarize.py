"""`callgrade summarize`: sum up reports, and check assertions about them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer
from typer import Option

from service.cli import options
from service.cli.exits import ExitCode
from service.cli.options import read_settings
from service.cli.screen import say, show
from service.errors import InputError, Problem, SettingsError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from service.core.report import Report
    from service.reporting.summary.labelled import ReportLabel

T = TypeVar("T")

commands = typer.Typer()


@commands.command("summarize")
def summarize(
    files: options.Reports,
    assertions: Annotated[
        list[str] | None, Option("--assert", "-a", metavar="TEXT", help="Such as 'pass_rate >= 0.95'; repeatable.")
    ] = None,
    gate: Annotated[Path | None, Option("--gate", metavar="FILE", help="File with a list `assertions`.")] = None,
    by: Annotated[list[str] | None, Option(metavar="TAG", help="Tag to slice by; repeatable.")] = None,
    pass_k: Annotated[list[int] | None, Option(metavar="K", min=1, help="k for pass^k over the tag `task`.")] = None,
    rubric: Annotated[
        str | None, Option("--rubric", "-r", metavar="ID|FILE", help="Rubric with tool families.")
    ] = None,
    labels: Annotated[Path | None, Option(metavar="FILE", help="Labels of reports, to correct the rates.")] = None,
    output_format: Annotated[Literal["table", "json", "markdown"], options.FORMAT] = "table",
) -> int:
    """Sum up reports: rates with intervals, figures per tool, pass^k and the composition of the set. Optionally gate on them.

    Takes what `callgrade score --format ndjson` writes. Exit code 2 if an assertion does not hold or no case measures it (the
    stage that failed is named), 3 if it depends on open questions, 4 if it cannot be read or names an unknown metric.
    """
    from service.cli.reports import read_report_files
    from service.cli.sections import build_summary_sections
    from service.reporting.markdown import render_markdown
    from service.reporting.summaries import read_gate, render_json, summarize_reports
    from service.reporting.summary import SummaryOptions

    gated = () if gate is None else _read_document(gate, "--gate", read_gate)
    asserted = (*gated, *(assertions or ())) if assertions or gate else None
    found = read_report_files(files)
    families = _read_families(rubric, found.reports)
    chosen = SummaryOptions(by=by, pass_k=pass_k or (), families=families)
    given = _read_labels(labels) if labels else ()
    with _blaming_command():
        summary = summarize_reports(found.reports, chosen, asserted, given, unscored=len(found.refused))
    if output_format == "json":
        sys.stdout.write(render_json(summary).decode() + "\n")
    elif output_format == "markdown":
        sys.stdout.write(render_markdown(build_summary_sections(summary)))
    else:
        show(build_summary_sections(summary))
    for one in summary.gate.results if summary.gate else ():
        if one.status in ("failed", "undecided", "error", "warned"):
            broke = f"; failed at {one.broke_at}" if one.broke_at else ""
            say(f"{one.status}: {one.assertion}: {one.message}{broke}")
    if found.refused:
        return ExitCode.DATA
    if summary.gate is None or summary.gate.passed:
        return ExitCode.PASSED
    return ExitCode.UNDECIDED if summary.gate.undecided else ExitCode.FAILED


def _read_labels(path: Path) -> tuple[ReportLabel, ...]:
    """Read labels from a file, JSON Lines or a list; InputError with the place of one that cannot be read."""
    from service.reading.trace_files import BadRecord, scan_records
    from service.reporting.summaries import read_label
    from service.wiring import build_limits

    found: list[ReportLabel] = []
    for record in scan_records(path, limits=build_limits(read_settings())):
        try:
            if isinstance(record, BadRecord):
                raise record.error
            found.append(read_label(record.value))
        except InputError as error:
            raise error.below(f"{record.place}{record.place.pointer}: ") from None
    return tuple(found)


def _read_document(path: Path, option: str, read: Callable[[JsonValue], T]) -> T:
    from service.cli.inputs import read_text
    from service.packaged_files import read_yaml

    text = read_text(path, option)
    with _blaming_command(str(path)):
        return read(read_yaml(text, source=""))


@contextmanager
def _blaming_command(before: str = "") -> Generator[None]:
    """Make an InputError in the block a SettingsError, because the command line is at fault, not the data."""
    try:
        yield
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
