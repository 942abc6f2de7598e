"""Write reports as one HTML page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from typer import Option

from service.cli import options
from service.cli.exits import ExitCode
from service.cli.inputs import Refusal, ReportFiles, read_bodies, read_report_files
from service.cli.options import read_settings, writing
from service.cli.screen import pluralize, say
from service.cli.sections import build_summary_sections
from service.errors import InputError
from service.reading.places import Layout
from service.reporting.summaries import summarize_reports
from service.web.run_file import render_run_file
from service.web.trace.build import ScoredTrace
from service.web.trace.run import build_run_view, choose_full
from service.web.trace.stored import SentTrace, read_sent
from service.wiring import build_limits


def main(
    files: options.Reports,
    html: Annotated[Path, Option("--html", metavar="FILE", help="File to write the page to.")],
    traces: Annotated[
        list[Path] | None, Option("--traces", metavar="FILE", help="The scored traces; repeatable.")
    ] = None,
    input_format: options.InputFormat = "auto",
    most: Annotated[int, Option(metavar="N", min=0, max=10_000, help="How many traces to show in full.")] = 200,
    title: Annotated[str | None, Option(metavar="TEXT", help="Title of the page. [default: the file name]")] = None,
) -> int:
    """Write reports as one HTML page that needs no server: failures in groups, and each trace with the place where it failed.

    Takes what `callgrade score --format ndjson` or `callgrade jobs results` writes. Reports contain no conversations; --traces
    adds them from the scored files, matched by trace id, else by place in the file.
    """
    found = read_report_files(files)
    whole = choose_full(found.reports, most)
    paired = _find_scored_traces(found, traces, whole, input_format) if traces else {}
    scored = [paired.get(n) or ScoredTrace(one.report, name=one.name) for n, one in enumerate(found.records)]
    view = build_run_view(title or ", ".join([file.name for file in files]), scored, whole)
    page = render_run_file(view, list(build_summary_sections(summarize_reports(found.reports))))
    with writing(html, "--html"):
        html.write_text(page, "utf-8", errors="backslashreplace")
    say(f"{pluralize(len(scored), 'trace')} written to {html}")
    return ExitCode.DATA if found.refused else ExitCode.PASSED


def _find_scored_traces(
    reports: ReportFiles, files: Sequence[Path], whole: frozenset[int], named: str | None
) -> dict[int, ScoredTrace]:
    """Find the traces of the reports at the positions `whole`, by position.

    A report belongs to the one record with its name (its `custom_id` in a batch, else the trace id). If no record has that
    name, it belongs to the record at the same place, provided that there are as many records as reports and the ids do not
    differ. Prints on standard error how many reports match no trace.
    """
    shown = {n: reports.records[n] for n in sorted(whole)}
    names, places = {one.name for one in shown.values()} - {""}, {one.position for one in shown.values()}
    by_name: dict[str, list[int]] = {}
    sent_at: dict[int, SentTrace] = {}
    size = 0
    for n, (own, sent) in enumerate(_read_sent(files, named)):
        size += 1
        for name in own:
            by_name.setdefault(name, []).append(n)
        if sent is not None and (own & names or n in places):
            sent_at[n] = sent
    paired: dict[int, ScoredTrace] = {}
    in_place = size == len(reports.records) + len(reports.refused)
    for n, one in shown.items():
        own = by_name.get(one.name, [])
        if len(own) != 1 and not (in_place and (not own or one.position in own)):
            continue
        sent, trace_id = sent_at.get(own[0] if len(own) == 1 else one.position), one.report.trace_id
        if sent is not None and (own or None in (sent.trace.id, trace_id) or sent.trace.id == trace_id):
            paired[n] = ScoredTrace(one.report, *sent, name=one.name)
    if alone := len(whole) - len(paired):
        matching = pluralize(alone, "report matches", "reports match")
        say(f"{matching} no trace in --traces and will be shown without one")
    return paired


def _read_sent(files: Sequence[Path], named: str | None) -> Iterator[tuple[set[str], SentTrace | None]]:
    """Yield the names of each record in order, and its contents unless they cannot be read: it was not scored either."""
    limits, counts = build_limits(read_settings()), Counter[str]()
    for record in read_bodies(files, limits, Layout(named), guessed=counts, left_out=counts):
        body = {} if isinstance(record, Refusal) else dict(record.body)
        custom_id = body.pop("custom_id", None)
        try:
            sent = read_sent(body)
        except InputError:
            yield set(), None
        else:
            yield {name for name in (custom_id, sent.trace.id) if isinstance(name, str) and name}, sent
