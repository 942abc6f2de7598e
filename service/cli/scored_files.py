"""The traces that reports are of: read again from the files that were scored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from service.cli.context import read_settings
from service.cli.inputs import read_records
from service.cli.rendering.console import say
from service.cli.reports import Reports
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
    """None: it cannot be read, or no report is shown that may be of it."""


def find_sent(
    found: Reports, files: Sequence[Path], whole: frozenset[int], named: str | None
) -> dict[int, ScoredTrace]:
    """By the position of a report among those read, what it is of, for those at `whole`.

    A report belongs to the record of its name (that of a line of a batch, else the trace's id) if there is one of that name, and
    else to the record at its place, where as many were scored and its id is no other. How many fit none
    is told on standard error.
    """
    names, places = {found.names[n] for n in whole} - {""}, {found.positions[n] for n in whole}
    records = list(_read_records(files, named, names, places))
    by_name: dict[str, list[int]] = {}
    for n, record in enumerate(records):
        for name in record.names:
            by_name.setdefault(name, []).append(n)
    in_place = len(records) == len(found.read) + len(found.refused)
    paired: dict[int, ScoredTrace] = {}
    for n in sorted(whole):
        place = _choose_record(by_name.get(found.names[n], []), found.positions[n], in_place=in_place)
        sent = None if place is None else records[place].sent
        if sent is not None and (found.names[n] in by_name or not _is_another(sent, found.read[n])):
            paired[n] = ScoredTrace(found.read[n], *sent, name=found.names[n])
    if len(paired) < len(whole):
        alone = len(whole) - len(paired)
        told = (
            "report fits no trace of --traces, and shows"
            if alone == 1
            else "reports fit no trace of --traces, and show"
        )
        say(f"{alone} {told} the report alone")
    return paired


def _is_another(sent: SentTrace, report: Report) -> bool:
    """Whether both have an id, and not the same."""
    return None not in (sent.trace.id, report.trace_id) and sent.trace.id != report.trace_id


def _choose_record(by_name: Sequence[int], place: int, *, in_place: bool) -> int | None:
    if len(by_name) == 1:
        return by_name[0]
    return place if in_place and (not by_name or place in by_name) else None


def _read_records(files: Sequence[Path], named: str | None, names: set[str], places: set[int]) -> Iterator[_Record]:
    """All records in order; those that are asked for by name or place with what they hold."""
    records = read_records(files, build_limits(read_settings()), left_out=Counter(), named=named)
    for n, record in enumerate(records):
        found = _Record(frozenset(), None) if isinstance(record, BadRecord) else _read_record(record, named)
        yield found if found.names & names or n in places else found._replace(sent=None)


def _read_record(record: TraceRecord, named: str | None) -> _Record:
    try:
        body = build_body(record, named=named, guessed=Counter())
        name = body.pop("custom_id", None)
        sent = read_sent(body)
    except InputError:  # it could not be scored either
        return _Record(frozenset(), None)
    return _Record(frozenset([one for one in (name, sent.trace.id) if isinstance(one, str) and one]), sent)
