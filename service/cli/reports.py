"""Read files of reports, as `callgrade score` and `callgrade jobs results` write them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from service.cli.inputs import Refusal, locate_error
from service.cli.options import read_settings
from service.cli.screen import print_refusals
from service.core.report import Report
from service.errors import InputError
from service.reading.trace_files import BadRecord, scan_records
from service.reporting.summaries import read_report
from service.wiring import build_limits


@dataclass
class ReportFiles:
    """The reports in a list of files; `refused` holds the records that are not readable reports."""

    reports: list[Report] = field(default_factory=list[Report])
    names: list[str] = field(default_factory=list[str])
    """The name of each report: its `custom_id` in a batch, else its trace id, else empty."""
    positions: list[int] = field(default_factory=list[int])
    """The position of each report among all records, from 0."""
    refused: list[Refusal] = field(default_factory=list[Refusal])


def read_report_files(files: Sequence[Path]) -> ReportFiles:
    """Read all files and list unreadable records on standard error. InputError if no report can be read."""
    limits, found = build_limits(read_settings()), ReportFiles()
    for file in files:
        source, name = (sys.stdin.buffer, "stdin") if str(file) == "-" else (file, None)
        for record in scan_records(source, limits=limits, name=name):
            position = len(found.reports) + len(found.refused)
            try:
                if isinstance(record, BadRecord):
                    raise record.error
                report = _read_report(record.value)
            except InputError as error:
                found.refused.append(Refusal(record.place, locate_error(error, record.place)))
                continue
            custom_id = record.value.get("custom_id")
            found.reports.append(report)
            found.names.append(custom_id if isinstance(custom_id, str) else report.trace_id or "")
            found.positions.append(position)
    print_refusals(found.refused)
    if not found.reports:
        raise InputError.at("", "no report could be read")
    return found


def _read_report(value: dict[str, JsonValue]) -> Report:
    """Read a report, bare or inside a line of batch results. InputError says if the record is an error or a trace instead."""
    inner = value.get("report")
    if isinstance(inner, dict) and "rubric" not in value:
        value = inner
    error = value.get("error")
    if isinstance(error, dict) and "rubric" not in value:
        raise InputError.at("", f"not a report but a record that could not be scored: {error.get('detail')}")
    if "trace" in value or "messages" in value:
        raise InputError.at("", "not a report but a trace; `callgrade score --format ndjson` turns traces into reports")
    return read_report(value)
