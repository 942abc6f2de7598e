"""Files of reports, as `callgrade score` and `callgrade batch results` write them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from service.cli.context import read_settings
from service.cli.exits import describe_error
from service.cli.rendering.console import plural, say
from service.core.report import Report
from service.errors import InputError
from service.reading.trace_files import BadRecord, RecordPlace, scan_records
from service.reporting.summaries import read_report
from service.wiring import build_limits

TOLD = 20
"""How many unreadable reports are told one by one."""


@dataclass
class Reports:
    """The reports of some files; `refused` are those that cannot be read."""

    files: Sequence[Path]
    read: list[Report] = field(default_factory=list[Report])
    places: list[RecordPlace] = field(default_factory=list[RecordPlace])
    names: list[str] = field(default_factory=list[str])
    """What each is called: as the line of a batch says, else its trace's id; empty where neither says."""
    positions: list[int] = field(default_factory=list[int])
    """Where each stands among all records, from 0."""
    refused: list[tuple[RecordPlace, InputError]] = field(default_factory=list[tuple[RecordPlace, InputError]])

    def load(self) -> Reports:
        """Read everything, and tell what cannot be read. InputError where nothing can."""
        limits = build_limits(read_settings())
        for file in self.files:
            source = sys.stdin.buffer if str(file) == "-" else file
            for record in scan_records(source, limits=limits, name="stdin" if str(file) == "-" else None):
                self._add(record.place, record.error if isinstance(record, BadRecord) else record.value)
        self._tell()
        if not self.read:
            raise InputError.at("", "no report could be read")
        return self

    def _add(self, place: RecordPlace, found: InputError | dict[str, JsonValue]) -> None:
        if isinstance(found, InputError):
            self.refused.append((place, found))
            return
        position = len(self.read) + len(self.refused)
        try:
            self.read.append(_report(found))
            self.places.append(place)
            self.names.append(_name(found, self.read[-1]))
            self.positions.append(position)
        except InputError as error:
            self.refused.append((place, error))

    def _tell(self) -> None:
        for place, error in self.refused[:TOLD]:
            for line in describe_error(error, where=f"{place}{place.pointer}").split("\n"):
                say(line if line.startswith(" ") else f"error: {line}")
        if len(self.refused) > TOLD:
            say(f"... and {plural(len(self.refused) - TOLD, 'more record')}")


def _name(value: dict[str, JsonValue], report: Report) -> str:
    name = value.get("custom_id")
    return name if isinstance(name, str) else report.trace_id or ""


def _report(value: dict[str, JsonValue]) -> Report:
    """A report, also within a line of a batch's results; an {"error": ...} in the place of one is told as what it is."""
    inner = value.get("report")
    if isinstance(inner, dict) and "rubric" not in value:
        value = inner
    error = value.get("error")
    if isinstance(error, dict) and "rubric" not in value:
        raise InputError.at("", f"no report, but a record that was not scored: {error.get('detail')}")
    if "trace" in value or "messages" in value:
        raise InputError.at("", "no report, but a trace; `callgrade score --format ndjson` makes reports of such")
    return read_report(value)
