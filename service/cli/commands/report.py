"""`callgrade report`: write the reports of a run as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from typer import Option

from service.cli import options
from service.cli.exits import ExitCode
from service.cli.options import read_settings
from service.cli.screen import pluralize, say

if TYPE_CHECKING:
    from service.cli.reports import ReportFiles
    from service.web.trace.build import ScoredTrace
    from service.web.trace.reading import SentTrace

commands = typer.Typer()


@commands.command("report")
def report(
    files: options.Reports,
    html: Annotated[Path, Option("--html", metavar="FILE", help="File to write the page to.")],
    traces: Annotated[
        list[Path] | None, Option("--traces", metavar="FILE", help="File with the scored traces; repeatable.")
    ] = None,
    input_format: options.InputFormat = "auto",
    most: Annotated[int, Option(metavar="N", min=0, max=10_000, help="How many traces to show in full.")] = 200,
    title: Annotated[str | None, Option(metavar="TEXT", help="Title of the page. [default: the file name]")] = None,
) -> int:
    """Write reports as one HTML page that needs no server: failures in groups, and each trace with the place where it failed.

    Takes what `callgrade score --format ndjson` or `callgrade jobs results` writes. Reports contain no conversations; --traces
    adds them from the scored files, matched by trace id, else by place in the file.
    """
    from service.cli.reports import read_report_files
    from service.cli.sections import build_summary_sections
    from service.reporting.summaries import summarize_reports
    from service.web.run_file import render_run_file
    from service.web.trace.build import ScoredTrace
    from service.web.trace.run import build_run_view, choose_full

    found = read_report_files(files)
    whole = choose_full(found.reports, most)
    paired = _find_scored_traces(found, traces, whole, input_format) if traces else {}
    scored = [paired.get(n) or ScoredTrace(one, name=found.names[n]) for n, one in enumerate(found.reports)]
    view = build_run_view(title or ", ".join([file.name for file in files]), scored, whole)
    page = render_run_file(view, list(build_summary_sections(summarize_reports(found.reports))))
    try:
        html.write_text(page, "utf-8", errors="backslashreplace")
    except OSError as error:
        raise typer.BadParameter(f"{html}: {error.strerror}", param_hint="--html") from None
    say(f"{pluralize(len(scored), 'trace')} written to {html}")
    return ExitCode.DATA if found.refused else ExitCode.PASSED


class _Record(NamedTuple):
    """One record of the scored files: its names, and its contents unless they cannot be read or belong to no shown report."""

    names: frozenset[str]
    sent: SentTrace | None


def _find_scored_traces(
    reports: ReportFiles, files: Sequence[Path], whole: frozenset[int], named: str | None
) -> dict[int, ScoredTrace]:
    """Find the traces of the reports at the positions `whole`, by position.

    A report belongs to the one record with its name (its `custom_id` in a batch, else the trace id). If no record has that
    name, it belongs to the record at the same place, provided that there are as many records as reports and the ids do not
    differ. Prints on standard error how many reports match no trace.
    """
    from service.web.trace.build import ScoredTrace

    names, places = {reports.names[n] for n in whole} - {""}, {reports.positions[n] for n in whole}
    records = list(_read_records(files, named, names, places))
    by_name: dict[str, list[int]] = {}
    for n, record in enumerate(records):
        for name in record.names:
            by_name.setdefault(name, []).append(n)
    in_place = len(records) == len(reports.reports) + len(reports.refused)
    paired: dict[int, ScoredTrace] = {}
    for n in sorted(whole):
        name, place, own = reports.names[n], reports.positions[n], by_name.get(reports.names[n], [])
        if len(own) == 1:
            place = own[0]
        elif not in_place or (own and place not in own):
            continue
        sent, trace_id = records[place].sent, reports.reports[n].trace_id
        if sent is not None and (own or None in (sent.trace.id, trace_id) or sent.trace.id == trace_id):
            paired[n] = ScoredTrace(reports.reports[n], *sent, name=name)
    if alone := len(whole) - len(paired):
        text = "report matches no trace" if alone == 1 else "reports match no trace"
        say(f"{alone} {text} in --traces and will be shown without one")
    return paired


def _read_records(files: Sequence[Path], named: str | None, names: set[str], places: set[int]) -> Iterator[_Record]:
    """Yield all records in order, with contents only for those with a name in `names` or a place in `places`."""
    from collections import Counter

    from service.cli.inputs import read_records
    from service.errors import InputError
    from service.reading.bare_traces import build_body
    from service.reading.trace_files import BadRecord
    from service.web.trace.reading import read_sent
    from service.wiring import build_limits

    records = read_records(files, build_limits(read_settings()), left_out=Counter(), named=named)
    for n, record in enumerate(records):
        try:
            if isinstance(record, BadRecord):
                raise record.error
            body = build_body(record, named=named, guessed=Counter())
            custom_id = body.pop("custom_id", None)
            sent = read_sent(body)
        except InputError:  # it was not scored either
            yield _Record(frozenset(), None)
            continue
        own = frozenset([one for one in (custom_id, sent.trace.id) if isinstance(one, str) and one])
        yield _Record(own, sent if own & names or n in places else None)
