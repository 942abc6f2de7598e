"""Sum up reports, and gate on them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

from pydantic import TypeAdapter
from typer import Option

from service.calibration.labels import LabelledItem
from service.cli import options
from service.cli.exits import ExitCode
from service.cli.inputs import read_report_files
from service.cli.options import read_settings
from service.cli.screen import print_document, say
from service.cli.sections import build_summary_sections
from service.core.models.validation import validate
from service.errors import InputError, SettingsError
from service.reading.places import BadRecord
from service.reading.trace_files import scan_records
from service.reporting.statements import describe_uncertified, list_uncertified
from service.reporting.summaries import read_label, summarize_reports
from service.reporting.summary import SummaryOptions
from service.reporting.summary.labelled import ReportLabel
from service.wiring import build_limits


def main(
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
            say(f"{one.status}: {one.assertion}: {'; '.join(filter(None, [one.message, one.failed_at]))}")
    if found.refused:
        return ExitCode.DATA
    if summary.gate is not None and not summary.gate.passed:
        return ExitCode.UNDECIDED if summary.gate.undecided else ExitCode.FAILED
    uncertified = Counter([name for one in found.reports for name in list_uncertified(one)])
    if uncertified and require_certified:
        say(describe_uncertified(uncertified))
        return ExitCode.UNDECIDED
    return ExitCode.PASSED


def _read_labels(path: Path) -> tuple[ReportLabel, ...]:
    """Read labels from a file, JSON Lines or a list; InputError with the place of one that cannot be read."""
    found: list[ReportLabel] = []
    for record in scan_records(path, limits=build_limits(read_settings())):
        try:
            if isinstance(record, BadRecord):
                raise record.error
            value = record.value
            if "raw" in value:  # a judge's answer
                continue
            if not isinstance(value.get("labels"), list):
                found.append(read_label(value))
                continue
            # An item of a labelled set: its trace has an id, or its own `id` is that of the trace.
            item = validate(TypeAdapter(LabelledItem), value)
            name, step = (item.trace or {}).get("id") or item.id, item.position if item.is_step else None
            given = {"trace_id": name, "criterion": item.criterion, "step": step, "label": item.passes}
            found.append(read_label(given))
        except InputError as error:
            raise error.below(f"{record.place}{record.place.pointer}: ") from None
    return tuple(found)
