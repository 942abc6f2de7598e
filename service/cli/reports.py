"""Read files of reports, as `callgrade score` and `callgrade jobs results` write them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from service.cli.context import read_settings
from service.cli.exits import describe_error
from service.cli.rendering.console import pluralize, say
from service.core.report import Report
from service.errors import InputError
from service.reading.trace_files import BadRecord, RecordPlace, scan_records
from service.reporting.summaries import read_report
from service.wiring import build_limits

MAX_LISTED_REFUSALS = 20
"""How many unreadable reports are listed one by one."""


@dataclass
class ReportFiles:
    """The reports in a list of files; `refused` holds the records that are not readable reports."""

    files: Sequence[Path]
    reports: list[Report] = field(default_factory=list[Report])
    places: list[RecordPlace] = field(default_factory=list[RecordPlace])
    names: list[str] = field(default_factory=list[str])
    """The name of each report: its `custom_id` in a batch, else its trace id, else empty."""
    positions: list[int] = field(default_factory=list[int])
    """The position of each report among all records, from 0."""
    refused: list[tuple[RecordPlace, InputError]] = field(default_factory=list[tuple[RecordPlace, InputError]])

    def load(self) -> ReportFiles:
        """Read all files and list unreadable records on standard error. InputError if no report can be read."""
        limits = build_limits(read_settings())
        for file in self.files:
            source = sys.stdin.buffer if str(file) == "-" else file
            for record in scan_records(source, limits=limits, name="stdin" if str(file) == "-" else None):
                self._add(record.place, record.error if isinstance(record, BadRecord) else record.value)
        self._print_refusals()
        if not self.reports:
            raise InputError.at("", "no report could be read")
        return self

    def _add(self, place: RecordPlace, record: InputError | dict[str, JsonValue]) -> None:
        if isinstance(record, InputError):
            self.refused.append((place, record))
            return
        position = len(self.reports) + len(self.refused)
        try:
            self.reports.append(_read_report(record))
            self.places.append(place)
            self.names.append(_find_name(record, self.reports[-1]))
            self.positions.append(position)
        except InputError as error:
            self.refused.append((place, error))

    def _print_refusals(self) -> None:
        for place, error in self.refused[:MAX_LISTED_REFUSALS]:
            for line in describe_error(error, where=f"{place}{place.pointer}").split("\n"):
                say(line if line.startswith(" ") else f"error: {line}")
        if len(self.refused) > MAX_LISTED_REFUSALS:
            say(f"... and {pluralize(len(self.refused) - MAX_LISTED_REFUSALS, 'more record')}")


def _find_name(value: dict[str, JsonValue], report: Report) -> str:
    name = value.get("custom_id")
    return name if isinstance(name, str) else report.trace_id or ""


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
