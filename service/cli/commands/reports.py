"""`callgrade summarize`, `compare` and `report`: what reports come to, as figures, gates and a page."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Option

from service.cli import options
from service.cli.exits import ExitCode
from service.cli.options import read_settings
from service.cli.screen import pluralize, print_document, say
from service.errors import InputError, SettingsError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from service.cli.inputs import ReportFiles
    from service.core.report import Report
    from service.reporting.summary.labelled import ReportLabel
    from service.web.trace.build import ScoredTrace
    from service.web.trace.stored import SentTrace

commands = typer.Typer()


@commands.command("summarize")
def summarize(
    files: options.Reports,
    assertions: Annotated[
        list[str] | None, Option("--assert", "-a", metavar="TEXT", help="Such as 'pass_rate >= 0.95'; repeatable.")
    ] = None,
    by: Annotated[list[str] | None, Option(metavar="TAG", help="Tag to slice by; repeatable.")] = None,
    pass_k: Annotated[list[int] | None, Option(metavar="K", min=1, help="k for pass^k over the tag `task`.")] = None,
    labels: Annotated[Path | None, Option(metavar="FILE", help="Labels of reports, to correct the rates.")] = None,
    require_certified: options.RequireCertified = False,
    output_format: Annotated[Literal["table", "json", "markdown"], options.FORMAT] = "table",
) -> int:
    """Sum up reports: rates with intervals, figures per tool, and pass^k. Optionally gate on them.

    Takes what `callgrade score --format ndjson` writes. Exit code 2 if an assertion does not hold or no case measures it (the
    stage that failed is named), 3 if it depends on open questions, 4 if it cannot be read or names an unknown metric.
    """
    from service.cli.inputs import read_report_files
    from service.cli.sections import build_summary_sections
    from service.reporting.summaries import summarize_reports
    from service.reporting.summary import SummaryOptions

    found = read_report_files(files)
    chosen = SummaryOptions(by=by, pass_k=pass_k or ())
    given = _read_labels(labels) if labels else ()
    try:
        summary = summarize_reports(found.reports, chosen, assertions or None, given, unscored=len(found.refused))
    except InputError as error:  # the command line is at fault, not the data
        raise SettingsError(error.problems) from None
    print_document(build_summary_sections(summary), output_format, summary)
    for one in summary.gate.results if summary.gate else ():
        if one.status != "passed":
            broke = (
                f"; failed at {one.first_failing_stage}" if one.status == "failed" and one.first_failing_stage else ""
            )
            say(f"{one.status}: {one.assertion}: {one.message}{broke}")
    if found.refused:
        return ExitCode.DATA
    if summary.gate is None or summary.gate.passed:
        return _require_certified(found.reports) if require_certified else ExitCode.PASSED
    return ExitCode.UNDECIDED if summary.gate.undecided else ExitCode.FAILED


def _require_certified(reports: Sequence[Report]) -> ExitCode:
    from service.reporting.statements import describe_uncertified, list_uncertified

    counts = Counter([name for report in reports for name in list_uncertified(report)])
    if counts:
        say(describe_uncertified(counts))
    return ExitCode.UNDECIDED if counts else ExitCode.PASSED


def _read_labels(path: Path) -> tuple[ReportLabel, ...]:
    """Read labels from a file, JSON Lines or a list; InputError with the place of one that cannot be read."""
    from service.reading.places import BadRecord
    from service.reading.trace_files import scan_records
    from service.wiring import build_limits

    found: list[ReportLabel] = []
    for record in scan_records(path, limits=build_limits(read_settings())):
        try:
            if isinstance(record, BadRecord):
                raise record.error
            found += _list_labels(record.value)
        except InputError as error:
            raise error.below(f"{record.place}{record.place.pointer}: ") from None
    return tuple(found)


def _list_labels(value: JsonValue) -> list[ReportLabel]:
    """Read one label, or those of an item of a labelled set, whose `id` is then that of the trace; of a prediction, none."""
    from pydantic import TypeAdapter

    from service.calibration.labels import LabelledItem
    from service.core.models.validation import validate
    from service.reporting.summaries import read_label

    if isinstance(value, dict) and "raw" in value:
        return []
    if not (isinstance(value, dict) and isinstance(value.get("labels"), list)):
        return [read_label(value)]
    item = validate(TypeAdapter(LabelledItem), value)
    names = {"trace_id": item.id, "criterion": item.criterion}
    return [read_label({**names, "label": one.label}) for one in item.labels]


@commands.command("compare")
def compare(
    a: Annotated[Path, Argument(metavar="A", help="Reports of one run, the baseline.")],
    b: Annotated[Path, Argument(metavar="B", help="Reports of the same cases in the other run.")],
    output_format: Annotated[
        Literal["table", "json", "markdown", "github"],
        Option("--format", "-f", help="Output format; github writes annotations and the step summary."),
    ] = "table",
    fail_on_regression: Annotated[bool, Option("--fail-on-regression", help="Exit 2 if B regressed.")] = False,
    on: Annotated[
        list[str] | None, Option(metavar="NAME", help="Gate on passed (the default), score, a stage or a criterion.")
    ] = None,
    allow_undecided: options.AllowUndecided = False,
) -> int:
    """Compare two runs of the same cases, paired by trace id: differences with intervals, and the cases that changed.

    With --fail-on-regression the exit code is 2 if code fails what it did not fail in A, or if the 95 % interval of the paired
    difference lies below 0, and 3 if that depends on open questions, on cases missing from B, or on a different rubric.
    """
    from service.cli.ci import list_gate_annotations, write_step_summary
    from service.cli.inputs import read_report_files
    from service.cli.sections import MAX_PROVED, build_comparison_sections, list_gate_lines
    from service.reporting.comparison import compare_reports
    from service.reporting.document import render_markdown
    from service.reporting.regression import judge_reports

    if not fail_on_regression and (on or allow_undecided):
        raise typer.BadParameter("expected with --fail-on-regression", param_hint="--on, --allow-undecided")
    left, right = read_report_files([a]), read_report_files([b])
    gate = None
    if fail_on_regression:
        gate = judge_reports(left.reports, right.reports, on or (), allow_undecided=allow_undecided)
    comparison = compare_reports(left.reports, right.reports)
    sections = list(build_comparison_sections(comparison, gate))
    if output_format == "github":
        sys.stdout.writelines(f"{line}\n" for line in (list_gate_annotations(gate, MAX_PROVED) if gate else ()))
        write_step_summary(render_markdown(sections))
    else:
        print_document(sections, output_format, comparison)
    for line in list_gate_lines(gate) if gate and output_format == "json" else ():
        say(line)
    if left.refused or right.refused:
        return ExitCode.DATA
    codes = {"within noise": ExitCode.PASSED, "regressed": ExitCode.FAILED, "undecided": ExitCode.UNDECIDED}
    return ExitCode.PASSED if gate is None else codes[gate.status]


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
    from service.cli.inputs import read_report_files
    from service.cli.sections import build_summary_sections
    from service.reporting.summaries import summarize_reports
    from service.web.run_file import render_run_file
    from service.web.trace.build import ScoredTrace
    from service.web.trace.run import build_run_view, choose_full

    found = read_report_files(files)
    whole = choose_full(found.reports, most)
    paired = _find_scored_traces(found, traces, whole, input_format) if traces else {}
    scored = [paired.get(n) or ScoredTrace(one.report, name=one.name) for n, one in enumerate(found.records)]
    view = build_run_view(title or ", ".join([file.name for file in files]), scored, whole)
    page = render_run_file(view, list(build_summary_sections(summarize_reports(found.reports))))
    try:
        html.write_text(page, "utf-8", errors="backslashreplace")
    except OSError as error:
        raise typer.BadParameter(f"{html}: {error.strerror}", param_hint="--html") from None
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
    from service.web.trace.build import ScoredTrace

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
        text = "report matches no trace" if alone == 1 else "reports match no trace"
        say(f"{alone} {text} in --traces and will be shown without one")
    return paired


def _read_sent(files: Sequence[Path], named: str | None) -> Iterator[tuple[set[str], SentTrace | None]]:
    """Yield the names of each record in order, and its contents unless they cannot be read: it was not scored either."""
    from service.cli.inputs import Refusal, read_bodies
    from service.reading.places import Layout
    from service.web.trace.stored import read_sent
    from service.wiring import build_limits

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
