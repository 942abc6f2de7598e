"""`callgrade summarize`: many reports in one, and whether what is asserted of them holds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import JsonValue

from service.cli.console import console, plural, say
from service.cli.context import read_settings
from service.cli.exits import ExitCode, told
from service.cli.inputs import find_rubric, read_text
from service.cli.junit import xml
from service.cli.sections import markdown, show, summary_sections
from service.core.assertions import Conditions
from service.core.report import Report
from service.core.summary import Summary, Wishes
from service.core.summary.gate import AssertionResult, Gate
from service.core.summary.labelled import ReportLabel
from service.core.summary.makeup import Targets
from service.errors import InputError, Problem, SettingsError
from service.io.bootstrap import engine_of, limits_of
from service.io.files import read_yaml
from service.io.traces import BadRecord, Place, records
from service.summaries import (
    as_json,
    declared_in,
    families_of,
    read_gate,
    read_label,
    read_report,
    read_targets,
    summarized,
)

T = TypeVar("T")

TOLD = 20
"""How many unreadable reports are told one by one."""

SummaryFormat = Literal["table", "json", "markdown", "junit"]


@dataclass(frozen=True)
class Asked:
    """What the command line says of a summary."""

    assertions: Sequence[str] = ()
    gate: Path | None = None
    targets: Path | None = None
    by: Sequence[str] | None = None
    pass_k: Sequence[int] = ()
    rubric: str | None = None
    labels: Path | None = None


@dataclass
class Reports:
    """The reports of some files; `refused` are those that cannot be read."""

    files: Sequence[Path]
    read: list[Report] = field(default_factory=list[Report])
    places: list[Place] = field(default_factory=list[Place])
    refused: list[tuple[Place, InputError]] = field(default_factory=list[tuple[Place, InputError]])

    def load(self) -> Reports:
        """Read everything, and tell what cannot be read. InputError where nothing can."""
        limits = limits_of(read_settings())
        for file in self.files:
            source = sys.stdin.buffer if str(file) == "-" else file
            for record in records(source, limits=limits, name="stdin" if str(file) == "-" else None):
                self._add(record.place, record.error if isinstance(record, BadRecord) else record.value)
        self._tell()
        if not self.read:
            raise InputError.at("", "no report could be read")
        return self

    def _add(self, place: Place, found: InputError | dict[str, JsonValue]) -> None:
        if isinstance(found, InputError):
            self.refused.append((place, found))
            return
        try:
            self.read.append(_report(found))
            self.places.append(place)
        except InputError as error:
            self.refused.append((place, error))

    def _tell(self) -> None:
        for place, error in self.refused[:TOLD]:
            for line in told(error, where=f"{place}{place.pointer}").split("\n"):
                say(line if line.startswith(" ") else f"error: {line}")
        if len(self.refused) > TOLD:
            say(f"... and {plural(len(self.refused) - TOLD, 'more record')}")


def run_summarize(files: Sequence[Path], asked: Asked, *, output_format: SummaryFormat = "table") -> ExitCode:
    """Sum up, write it, and fail where an assertion does."""
    assertions = _assertions(asked)
    wishes = Wishes(targets=_targets(asked.targets), by=asked.by, pass_k=asked.pass_k)
    if output_format == "junit" and assertions is None:
        raise SettingsError.at("--format", "junit tells of assertions, and none is made; give --assert or --gate")
    reports = Reports(files).load()
    wishes = replace(wishes, families=_families(asked.rubric, reports.read))
    labels = _labels(asked.labels)
    summary = _configured(lambda: summarized(reports.read, wishes, assertions, labels))
    _write(summary, output_format)
    if summary.gate is not None:
        _tell_gate(summary.gate)
    if reports.refused:
        return ExitCode.DATA
    if summary.gate is None or summary.gate.passed:
        return ExitCode.PASSED
    return ExitCode.UNDECIDED if summary.gate.undecided else ExitCode.FAILED


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


def _assertions(asked: Asked) -> tuple[str | Conditions, ...] | None:
    if not asked.assertions and asked.gate is None:
        return None
    gate = () if asked.gate is None else _document(asked.gate, "--gate", read_gate)
    return (*gate, *asked.assertions)


def _labels(path: Path | None) -> tuple[ReportLabel, ...]:
    """The labels of a file, JSON Lines or a list; InputError with the place of one that cannot be read."""
    if path is None:
        return ()
    found: list[ReportLabel] = []
    for record in records(path, limits=limits_of(read_settings())):
        try:
            if isinstance(record, BadRecord):
                raise record.error
            found.append(read_label(record.value))
        except InputError as error:
            where = f"{record.place}{record.place.pointer}: "
            raise InputError([Problem(where + one.path, one.message) for one in error.problems]) from None
    return tuple(found)


def _targets(path: Path | None) -> Targets:
    return Targets() if path is None else _document(path, "--targets", read_targets)


def _document(path: Path, option: str, read: Callable[[JsonValue], T]) -> T:
    text = read_text(path, option)
    return _configured(lambda: read(read_yaml(text, source="")), str(path))


def _configured(make: Callable[[], T], before: str = "") -> T:
    """What `make` gives; what is wrong with it lies with the command, not with the data."""
    try:
        return make()
    except InputError as error:
        raise SettingsError(Problem(before + problem.path, problem.message) for problem in error.problems) from None


def _families(rubric: str | None, reports: Sequence[Report]) -> dict[str, Sequence[str]]:
    shelf = engine_of(read_settings()).shelf
    if rubric is not None:
        return dict(find_rubric(shelf, rubric).families)
    return dict(families_of(reports, declared_in(shelf.find)))


def _write(summary: Summary, output_format: SummaryFormat) -> None:
    if output_format == "json":
        sys.stdout.write(as_json(summary).decode() + "\n")
    elif output_format == "markdown":
        sys.stdout.write(markdown(summary_sections(summary)))
    elif output_format == "junit" and summary.gate is not None:
        sys.stdout.write(junit(summary.gate))
    else:
        show(console(), summary_sections(summary))


def _tell_gate(gate: Gate) -> None:
    """What failed, on standard error, whatever standard output holds."""
    for one in gate.results:
        if one.status in ("failed", "undecided", "error", "warned"):
            broke = f"; the step that broke: {one.broke_at}" if one.broke_at else ""
            say(f"{one.status}: {one.assertion}: {one.message}{broke}")


def junit(gate: Gate) -> str:
    """The gate as JUnit XML: a test case for each assertion."""
    bad = {"failures": ("failed",), "errors": ("error", "undecided"), "skipped": ("skipped",)}
    counts = " ".join(f'{name}="{sum(r.status in statuses for r in gate.results)}"' for name, statuses in bad.items())
    head = f'<testsuite name="callgrade gate" tests="{len(gate.results)}" {counts}>'
    cases = "\n".join(line for one in gate.results for line in _junit_case(one))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{head}\n{cases}\n</testsuite>\n</testsuites>\n'


def _junit_case(one: AssertionResult) -> Iterator[str]:
    yield f'  <testcase name="{xml(one.assertion)}" classname="{one.broke_at or "gate"}">'
    told_of = xml(one.message)
    if one.status == "failed":
        cases = xml(", ".join(one.failing))
        yield f'    <failure type="{one.broke_at or "assertion"}" message="{told_of}">{cases}</failure>'
    elif one.status in ("error", "undecided"):
        kind = "not_measured" if one.status == "error" else "undecided"
        yield f'    <error type="{kind}" message="{told_of}"/>'
    elif one.status == "skipped":
        yield f'    <skipped message="{told_of}"/>'
    elif one.status == "warned":
        yield f"    <system-out>warning: {told_of}</system-out>"
    yield "  </testcase>"
