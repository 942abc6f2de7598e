"""`callgrade report`: reports of a run as one page to look at and hand on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.options import FormatOption
from service.cli.options import Reports as Files
from service.cli.rendering.console import plural, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.cli.reports import Reports
    from service.reporting.document import Section
    from service.web.trace.build import ScoredTrace


@command(45)
def report(
    files: Files,
    html: Annotated[Path, typer.Option("--html", metavar="FILE", help="Where to write the page.")],
    traces: Annotated[
        list[Path] | None,
        typer.Option(
            "--traces", metavar="FILE", help="The traces that were scored, to show the conversations; repeatable."
        ),
    ] = None,
    input_format: FormatOption = "auto",
    most: Annotated[
        int, typer.Option(metavar="N", min=0, max=10_000, help="Traces shown whole, those that failed first.")
    ] = 200,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the page is called. [default: the file]")
    ] = None,
) -> int:
    """Write reports as one HTML page that needs no server: failures grouped, and each trace with the step that broke.

    Reports are what `callgrade score --format ndjson` or `callgrade batch results` writes. They hold no conversation; the file
    that was scored adds it, by the id of a trace, else by its place in the file.
    """
    from service.cli.reports import Reports
    from service.web.run_file import render_run_file
    from service.web.trace.run import build_run_view, choose_full

    found = Reports(files).load()
    whole = choose_full(found.read, most)
    scored = _pair(found, traces or (), whole, None if input_format == "auto" else input_format)
    view = build_run_view(title or ", ".join([file.name for file in files]), scored, whole)
    _write(html, render_run_file(view, _summarize(found)))
    say(f"{plural(len(scored), 'trace')} written to {html}")
    return ExitCode.DATA if found.refused else ExitCode.PASSED


def _pair(found: Reports, files: Sequence[Path], whole: frozenset[int], named: str | None) -> list[ScoredTrace]:
    from service.cli.scored_files import find_sent
    from service.web.trace.build import ScoredTrace

    sent = find_sent(found, files, whole, named) if files else {}
    return [sent.get(n) or ScoredTrace(one, name=found.names[n]) for n, one in enumerate(found.read)]


def _summarize(found: Reports) -> list[Section]:
    from service.cli.rendering.summary_sections import build_summary_sections
    from service.reporting.summaries import summarize_reports

    return list(build_summary_sections(summarize_reports(found.read)))


def _write(path: Path, page: str) -> None:
    try:
        path.write_text(page, "utf-8", errors="backslashreplace")
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}", param_hint="--html") from None
