"""Read the scored files again, to show each report with its trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from service.cli.context import read_settings
from service.cli.inputs import read_records
from service.cli.rendering.console import say
from service.cli.reports import ReportFiles
from service.core.report import Report
from service.errors import InputError
from service.reading.bare_traces import build_body
from service.reading.trace_files import BadRecord, TraceRecord
from service.web.trace.build import ScoredTrace
from service.web.trace.reading import SentTrace, read_sent
from service.wiring import build_limits


class _Record(NamedTuple):
    """One record of the files."""

    names: frozenset[str]
    sent: SentTrace | None
    """The record's contents; None if it cannot be read or no shown report may belong to it."""


def find_scored_traces(
    reports: ReportFiles, files: Sequence[Path], whole: frozenset[int], named: str | None
) -> dict[int, ScoredTrace]:
    """Find the traces of the reports at the positions `whole`, by position.

    A report belongs to the one record with its name (its `custom_id` in a batch, else the trace id). If no record has that
    name, it belongs to the record at the same place, provided that there are as many records as reports and the ids do not
    differ. Prints on standard error how many reports match no trace.
    """
    names, places = {reports.names[n] for n in whole} - {""}, {reports.positions[n] for n in whole}
    records = list(_read_records(files, named, names, places))
    by_name: dict[str, list[int]] = {}
    for n, record in enumerate(records):
        for name in record.names:
            by_name.setdefault(name, []).append(n)
    in_place = len(records) == len(reports.reports) + len(reports.refused)
    paired: dict[int, ScoredTrace] = {}
    for n in sorted(whole):
        place = _choose_record(by_name.get(reports.names[n], []), reports.positions[n], in_place=in_place)
        sent = None if place is None else records[place].sent
        if sent is not None and (reports.names[n] in by_name or not _is_another(sent, reports.reports[n])):
            paired[n] = ScoredTrace(reports.reports[n], *sent, name=reports.names[n])
    if len(paired) < len(whole):
        alone = len(whole) - len(paired)
        text = "report matches no trace" if alone == 1 else "reports match no trace"
        say(f"{alone} {text} in --traces and will be shown without one")
    return paired


def _is_another(sent: SentTrace, report: Report) -> bool:
    """Whether both have an id and the two differ."""
    return None not in (sent.trace.id, report.trace_id) and sent.trace.id != report.trace_id


def _choose_record(by_name: Sequence[int], place: int, *, in_place: bool) -> int | None:
    if len(by_name) == 1:
        return by_name[0]
    return place if in_place and (not by_name or place in by_name) else None


def _read_records(files: Sequence[Path], named: str | None, names: set[str], places: set[int]) -> Iterator[_Record]:
    """Yield all records in order, with contents only for those with a name in `names` or a place in `places`."""
    records = read_records(files, build_limits(read_settings()), left_out=Counter(), named=named)
    for n, record in enumerate(records):
        contents = _Record(frozenset(), None) if isinstance(record, BadRecord) else _read_record(record, named)
        yield contents if contents.names & names or n in places else contents._replace(sent=None)


def _read_record(record: TraceRecord, named: str | None) -> _Record:
    try:
        body = build_body(record, named=named, guessed=Counter())
        name = body.pop("custom_id", None)
        sent = read_sent(body)
    except InputError:  # it was not scored either
        return _Record(frozenset(), None)
    return _Record(frozenset([one for one in (name, sent.trace.id) if isinstance(one, str) and one]), sent)
