"""`callgrade report`: write the reports of a run as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.options import FormatOption, ReportsArgument
from service.cli.rendering.console import pluralize, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.cli.reports import ReportFiles
    from service.reporting.document import Section
    from service.web.trace.build import ScoredTrace


@command(45)
def report(
    files: ReportsArgument,
    html: Annotated[Path, typer.Option("--html", metavar="FILE", help="File to write the page to.")],
    traces: Annotated[
        list[Path] | None,
        typer.Option(
            "--traces", metavar="FILE", help="File with the scored traces, to show the conversations; repeatable."
        ),
    ] = None,
    input_format: FormatOption = "auto",
    most: Annotated[
        int,
        typer.Option(metavar="N", min=0, max=10_000, help="Maximum number of traces shown in full, failed ones first."),
    ] = 200,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title of the page. [default: the file name]")
    ] = None,
) -> int:
    """Write reports as one HTML page that needs no server: failures in groups, and each trace with the place where it failed.

    Takes what `callgrade score --format ndjson` or `callgrade jobs results` writes. Reports contain no conversations; --traces
    adds them from the scored files, matched by trace id, else by place in the file.
    """
    from service.cli.reports import ReportFiles
    from service.web.run_file import render_run_file
    from service.web.trace.run import build_run_view, choose_full

    reports = ReportFiles(files).load()
    whole = choose_full(reports.reports, most)
    scored = _pair(reports, traces or (), whole, None if input_format == "auto" else input_format)
    view = build_run_view(title or ", ".join([file.name for file in files]), scored, whole)
    _write(html, render_run_file(view, _summarize(reports)))
    say(f"{pluralize(len(scored), 'trace')} written to {html}")
    return ExitCode.DATA if reports.refused else ExitCode.PASSED


def _pair(reports: ReportFiles, files: Sequence[Path], whole: frozenset[int], named: str | None) -> list[ScoredTrace]:
    from service.cli.scored_files import find_scored_traces
    from service.web.trace.build import ScoredTrace

    traces = find_scored_traces(reports, files, whole, named) if files else {}
    return [traces.get(n) or ScoredTrace(one, name=reports.names[n]) for n, one in enumerate(reports.reports)]


def _summarize(reports: ReportFiles) -> list[Section]:
    from service.cli.rendering.summary_sections import build_summary_sections
    from service.reporting.summaries import summarize_reports

    return list(build_summary_sections(summarize_reports(reports.reports)))


def _write(path: Path, page: str) -> None:
    try:
        path.write_text(page, "utf-8", errors="backslashreplace")
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}", param_hint="--html") from None
