"""Turn files into requests, with what the command line says to all of them, or into the reports of a run."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, cast

import typer
from pydantic import JsonValue, TypeAdapter

from service.cli.options import read_settings
from service.cli.screen import pluralize, print_refusals, say
from service.core.models.kinds import DEFERRED
from service.core.models.validation import validate
from service.core.report import JudgeMode, Report
from service.core.rubric import Rubric
from service.engine import Engine
from service.errors import NO_JUDGE_MODEL, InputError, Problem, SettingsError
from service.own_checks import add_checks, load_plugin
from service.packaged_files import read_yaml
from service.reading.bare_traces import build_body, is_bare
from service.reading.records import join_messages, split_samples
from service.reading.span_files import group_spans
from service.reading.strict_json import Limits, parse
from service.reading.trace_files import BadRecord, RecordPlace, TraceRecord, scan_records
from service.registry import Registry, read_rubric
from service.reporting.summaries import read_report
from service.request import CustomId, Expected, ScoreRequest, read_request
from service.settings import Settings
from service.wiring import build_engine, build_limits

EXPECTED: TypeAdapter[Any] = TypeAdapter(Expected, config=DEFERRED)
CUSTOM_ID: TypeAdapter[str] = TypeAdapter(CustomId)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A record that cannot be read or scored."""

    place: RecordPlace
    error: InputError


@dataclass(frozen=True, slots=True)
class RecordRequest:
    """A record as a request; `bare` if the record is a trace without a request around it."""

    place: RecordPlace
    request: ScoreRequest
    bare: bool
    body: dict[str, JsonValue]
    """The request as the record states it; the command line's options are in `request` alone."""
    name: str | None = None
    """The `custom_id` of a batch line. It is not part of the request, as in batches."""
    repeat: int = 0
    """Which repetition of the same record this is, from 0."""

    def refuse(self, error: InputError) -> Refusal:
        """Build the refusal of a record that turns out not to be scorable."""
        return Refusal(self.place, locate_error(error, self.place, bare=self.bare))


@dataclass(frozen=True)
class Inputs:
    """The input files of one command and the options that apply to all of them.

    `guessed` counts the formats guessed so far; `left_out` counts, by reason, the traces with nothing to score.
    """

    settings: Settings
    engine: Engine
    limits: Limits
    files: tuple[Path, ...]
    rubric: Rubric | None = None
    expected: object = None
    judges: JudgeMode | None = None
    format: str | None = None
    checks: frozenset[str] = frozenset()
    """The user's own checks that are added to every rubric."""
    guessed: Counter[str] = field(default_factory=Counter[str])
    left_out: Counter[str] = field(default_factory=Counter[str])

    def __iter__(self) -> Iterator[RecordRequest | Refusal]:
        """Yield a request or a refusal for every record, in order."""
        for record in read_records(self.files, self.limits, left_out=self.left_out, named=self.format):
            yield (
                Refusal(record.place, locate_error(record.error, record.place))
                if isinstance(record, BadRecord)
                else self._build_request(record)
            )

    @property
    def asks_judges(self) -> bool:
        """Whether judges are asked about records that do not set `judges`."""
        mode = self.judges or self.engine.judges
        return self.engine.judging is not None and mode not in ("off", "cached")

    def _build_request(self, record: TraceRecord) -> RecordRequest | Refusal:
        bare = is_bare(record)
        try:
            body, name = build_body(record, named=self.format, guessed=self.guessed), None
            if "custom_id" in body:  # of a batch line, and no part of the request
                name = validate(CUSTOM_ID, body["custom_id"], below="/custom_id")
                body = {key: value for key, value in body.items() if key != "custom_id"}
            return RecordRequest(record.place, self.build_request(body), bare, body, name)
        except InputError as error:
            return Refusal(record.place, locate_error(error, record.place, bare=bare))

    def build_request(self, body: JsonValue) -> ScoreRequest:
        """Build the request in the `body` of a `RecordRequest`, overridden by the command line's options."""
        options = {"rubric": self.rubric, "expected": self.expected}
        overrides = {name: value for name, value in options.items() if value is not None}
        fields = cast("dict[str, JsonValue]", body)
        if self.judges is not None:
            fields = {"judges": self.judges, **fields}
        request = read_request({name: value for name, value in fields.items() if name not in overrides})
        if self.checks:
            rubric = self.rubric or self.engine.registry.find(request.rubric)
            overrides["rubric"] = add_checks(rubric, self.checks)
        return request.model_copy(update=overrides) if overrides else request


def read_inputs(
    files: Sequence[Path],
    *,
    rubric: str | None = None,
    expected: Path | None = None,
    input_format: str | None = None,
    judges: JudgeMode | None = None,
    plugins: Sequence[Path] = (),
) -> Inputs:
    """Read the inputs of a command. RubricError, SettingsError or InputError for an option that cannot be used.

    `judges`: how judges are asked about records that do not set `judges` themselves. `plugins`: files with checks of the user's
    own, which are added to every rubric.
    """
    settings = read_settings()
    checks = frozenset(name for plugin in plugins for name in load_plugin(plugin))
    if judges not in (None, "off") and not settings.judge_model:
        raise SettingsError.at("CALLGRADE_JUDGE_MODEL", NO_JUDGE_MODEL)
    engine = build_engine(settings)
    limits = build_limits(settings)
    return Inputs(
        settings=settings,
        engine=engine,
        limits=limits,
        files=tuple(files),
        rubric=None if rubric is None else find_rubric(engine.registry, rubric),
        expected=None if expected is None else _read_expected(expected, limits),
        judges=judges,
        format=input_format,
        checks=checks,
    )


def find_rubric(registry: Registry, choice: str) -> Rubric:
    """Find a rubric by its id or file name. InputError, with the place in the file, if it is unknown or invalid."""
    if not names_file(choice):
        try:
            return registry.find(choice)
        except InputError as error:
            raise type(error)(Problem("", problem.message) for problem in error.problems) from None
    try:
        return registry.find(read_rubric(read_yaml(read_text(Path(choice), "--rubric"), source="")))
    except InputError as error:
        raise error.in_file(choice) from None


def names_file(choice: str) -> bool:
    """Whether a rubric is named by file: the name ends in .yaml, .yml or .json, or includes a folder."""
    return Path(choice).suffix in {".yaml", ".yml", ".json"} or Path(choice).name != choice


def read_text(path: Path, option: str) -> str:
    """Read a text file that an option names; a usage error if it cannot be read."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise typer.BadParameter(f"{path}: {reason}", param_hint=option) from None


def _read_expected(path: Path, limits: Limits) -> object:
    text = read_text(path, "--expected")
    is_yaml = path.suffix in {".yaml", ".yml"}
    try:
        return validate(EXPECTED, read_yaml(text, source="") if is_yaml else parse(text.encode(), limits))
    except InputError as error:
        raise InputError(error.problems).in_file(str(path)) from None


def read_records(
    files: Iterable[Path], limits: Limits, *, left_out: Counter[str], named: str | None = None
) -> Iterator[TraceRecord | BadRecord]:
    """Yield the records of files, `-` being standard input; spans are grouped by trace across all files.

    `named`: the format of records that name none; None to guess it.
    """
    sources = [(sys.stdin.buffer, "stdin") if str(file) == "-" else (file, None) for file in files]
    scanned = (scan_records(source, limits=limits, name=name) for source, name in sources)
    records = chain.from_iterable(split_samples(join_messages(one)) for one in scanned)
    return group_spans(records, limits, left_out=left_out, named=named)


def print_guesses(guessed: Counter[str], left_out: Counter[str]) -> None:
    """Print on standard error which formats were guessed and what was left out."""
    if guessed:
        formats = ", ".join(f"{name} ({pluralize(count, 'trace')})" for name, count in sorted(guessed.items()))
        say(f"guessed format: {formats}")
    for reason, count in sorted(left_out.items()):
        say(f"left out: {pluralize(count, 'trace')} {reason}")


def locate_error(error: InputError, place: RecordPlace, *, bare: bool = False) -> InputError:
    """Make the error's pointers relative to the record in the file: a bare trace has no `/trace`."""
    paths = [re.sub("^/trace(?=/|$)", "", one.path) if bare else one.path for one in error.problems]
    return type(error)(
        Problem(place.pointer + path, one.message) for path, one in zip(paths, error.problems, strict=True)
    )


# Reports.


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
