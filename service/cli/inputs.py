"""Turn files into requests, with what the command line says to all of them, or into the reports of a run."""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import typer
from pydantic import JsonValue, TypeAdapter
from pydantic_core import to_json

from service.asking.own_judges import OWN_JUDGES
from service.cli.exits import describe_error
from service.cli.options import read_settings
from service.cli.screen import pluralize, say, warn
from service.core.models.kinds import DEFERRED
from service.core.models.validation import validate
from service.core.report import JudgeMode, Report
from service.core.rubric import Rubric
from service.engine import Engine
from service.errors import NO_JUDGE_MODEL, InputError, Problem, SettingsError
from service.intake.tools import read_tools
from service.own_checks import add_checks, load_plugins
from service.reading.bare_traces import build_body, is_bare
from service.reading.blocks import Block
from service.reading.packaged_files import read_yaml
from service.reading.places import PLAIN, AnyRecord, BadRecord, Layout, RecordPlace, TraceRecord
from service.reading.records import find_traces
from service.reading.request import CustomId, Expected, ScoreRequest, read_request
from service.reading.span_files import group_spans
from service.reading.strict_json import Limits, parse_strictly
from service.reading.trace_files import scan_records
from service.registry import Registry, read_rubric
from service.reporting.summaries import read_report
from service.settings import Settings
from service.wiring import build_engine, build_limits

T = TypeVar("T")

EXPECTED: TypeAdapter[Any] = TypeAdapter(Expected, config=DEFERRED)
CUSTOM_ID: TypeAdapter[str] = TypeAdapter(CustomId)

MAX_LISTED_REFUSALS = 20
"""How many refused records are listed one by one."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A record that cannot be read or scored."""

    place: RecordPlace
    error: InputError
    raw: bytes = b""
    """The record as it came."""


@dataclass(frozen=True, slots=True)
class RecordBody:
    """A record as the body of a request; `bare` if the record is a trace without a request around it."""

    place: RecordPlace
    bare: bool
    body: dict[str, JsonValue]
    source: dict[str, JsonValue]
    """The record as it was read."""

    def refuse(self, error: InputError) -> Refusal:
        """Build the refusal of a record that turns out not to be scorable."""
        return Refusal(self.place, locate_error(error, self.place, bare=self.bare), to_json(self.source))


@dataclass(frozen=True, slots=True)
class RecordRequest(RecordBody):
    """A record as a request. The command line's options are in `request` alone, not in `body`."""

    request: ScoreRequest
    name: str | None
    """The `custom_id` of a batch line. It is not part of the request, as in batches."""


def print_refusals(refusals: Sequence[Refusal], label: str = "error", *, total: int | None = None) -> None:
    """Print the first refused records, each with its line in the file, and how many more there are of `total`."""
    for one in refusals[:MAX_LISTED_REFUSALS]:
        print(f"{label}: {describe_error(one.error, where=str(one.place))}", file=sys.stderr)  # noqa: T201
    more = (len(refusals) if total is None else total) - MAX_LISTED_REFUSALS
    if more > 0:
        say(f"... and {pluralize(more, 'more record')}")


def print_guesses(guessed: Counter[str], left_out: Counter[str]) -> None:
    """Print on standard error which formats were guessed and what was left out."""
    if guessed:
        formats = ", ".join(f"{name} ({pluralize(count, 'trace')})" for name, count in sorted(guessed.items()))
        say(f"guessed format: {formats}")
    for reason, count in sorted(left_out.items()):
        say(f"left out: {pluralize(count, 'trace')} {reason}")


def locate_error(error: InputError, place: RecordPlace, *, bare: bool = False) -> InputError:
    """Make the error's pointers relative to the record in the file: a bare trace has no `/trace`."""
    above = "^/trace(?=/|$)" if bare else "^"
    return type(error)(Problem(place.pointer + re.sub(above, "", one.path), one.message) for one in error.problems)


# Requests.


@dataclass(frozen=True)
class Inputs:
    """The input files of one command and the options that apply to all of them.

    `guessed` counts the formats guessed so far; `left_out` counts, by reason, the traces with nothing to score; `refused` lists
    what `work_on` refused.
    """

    settings: Settings
    engine: Engine
    limits: Limits
    files: tuple[Path | Block, ...]
    rubric: Rubric | None = None
    expected: object = None
    judges: JudgeMode | None = None
    tools: JsonValue = None
    """The tools on offer in traces that name none."""
    layout: Layout = PLAIN
    checks: frozenset[str] = frozenset()
    """The user's own checks that are added to every rubric."""
    guessed: Counter[str] = field(default_factory=Counter[str])
    left_out: Counter[str] = field(default_factory=Counter[str])
    refused: list[RecordPlace] = field(default_factory=list[RecordPlace])

    def work_on(self, work: Callable[[ScoreRequest], T]) -> Iterator[tuple[RecordRequest, T]]:
        """Yield what `work` makes of each request; list the records that are refused on standard error, and in `refused`."""
        for record in self:
            try:
                if isinstance(record, Refusal):
                    raise record.error
                made = work(record.request)
            except InputError as error:
                self.refused.append(record.place)
                print_refusals([record if isinstance(record, Refusal) else record.refuse(error)])
            else:
                yield record, made

    def __iter__(self) -> Iterator[RecordRequest | Refusal]:
        """Yield a request or a refusal for every record, in order."""
        for record in read_bodies(self.files, self.limits, self.layout, guessed=self.guessed, left_out=self.left_out):
            if isinstance(record, Refusal):
                yield record
                continue
            body, name = dict(record.body), None
            try:
                if "custom_id" in body:  # of a batch line, and no part of the request
                    name = validate(CUSTOM_ID, body.pop("custom_id"), below="/custom_id")
                yield RecordRequest(record.place, record.bare, body, record.source, self.build_request(body), name)
            except InputError as error:
                yield record.refuse(error)

    def count(self) -> int | None:
        """Count the records; None if they can be read only once: from standard input, a pipe or a URL."""
        if not all(isinstance(one, Path) and (one.is_file() or one.is_dir()) for one in self.files):
            return None
        return sum(1 for _ in _find_records(self.files, self.limits, self.layout, left_out=Counter()))

    @property
    def asks_judges(self) -> bool:
        """Whether judges are asked about records that do not set `judges`."""
        mode = self.judges or self.engine.judges
        return self.engine.judging is not None and mode not in ("off", "cached")

    def build_request(self, body: JsonValue) -> ScoreRequest:
        """Build the request in the `body` of a `RecordRequest`, overridden by the command line's options."""
        options = {"rubric": self.rubric, "expected": self.expected}
        overrides = {name: value for name, value in options.items() if value is not None}
        defaults: dict[str, JsonValue] = {} if self.judges is None else {"judges": self.judges}
        defaults |= {} if self.tools is None else {"tools": self.tools}
        fields = defaults | cast("dict[str, JsonValue]", body)
        request = read_request({name: value for name, value in fields.items() if name not in overrides})
        if self.checks:
            rubric = self.rubric or self.engine.registry.find(request.rubric)
            overrides["rubric"] = add_checks(rubric, self.checks)
        return request.model_copy(update=overrides) if overrides else request


def read_inputs(  # noqa: PLR0913 (the options of several commands)
    files: Sequence[Path],
    *,
    rubric: str | None = None,
    expected: Path | None = None,
    judges: JudgeMode | None = None,
    plugins: Sequence[Path] | None = None,
    tools: Path | None = None,
    layout: Layout = PLAIN,
) -> Inputs:
    """Read the inputs of a command. RubricError, SettingsError or InputError for an option that cannot be used.

    `judges`: how judges are asked about records that do not set `judges` themselves. `plugins`: files with checks of the user's
    own, which are added to every rubric. `tools`: a file of those for traces that name none.
    """
    settings = read_settings()
    checks = load_plugins(plugins)
    if judges not in (None, "off") and not settings.judge_model and not OWN_JUDGES:
        raise SettingsError.at("CALLGRADE_JUDGE_MODEL", NO_JUDGE_MODEL)
    engine = build_engine(settings)
    chosen = None if rubric is None else find_rubric(engine.registry, rubric)
    _warn_idle_judges(engine, chosen)
    if expected is not None and expected.suffix in {".jsonl", ".ndjson"}:
        advice = "give each record its own, as `expected` next to the trace's own keys"
        message = f"{expected}: expected one expectation for all records; {advice}"
        raise typer.BadParameter(message, param_hint="--expected")

    def check_tools(value: JsonValue) -> JsonValue:
        read_tools(value, path="")
        return value

    return Inputs(
        settings=settings,
        engine=engine,
        limits=build_limits(settings),
        files=tuple(files),
        rubric=chosen,
        expected=expected and read_document(expected, "--expected", lambda value: validate(EXPECTED, value)),
        judges=judges,
        tools=None if tools is None else read_document(tools, "--tools", check_tools),
        layout=layout,
        checks=checks,
    )


def _warn_idle_judges(engine: Engine, chosen: Rubric | None) -> None:
    """Warn of judges in Python that are for no criterion: a misspelt name would only show in what stays open."""
    rubrics = [*engine.registry, *([chosen] if chosen else [])]
    known = {name for one in rubrics for name in (*one.judge_ids, *[criterion.id for criterion in one.criteria])}
    for own in OWN_JUDGES.values():
        if own.criterion not in known | engine.registry.judges.keys():
            near = get_close_matches(own.criterion, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            warn(f"{own.name} answers {own.criterion}, which is no criterion of a rubric{hint}")


# Documents that options name.


def find_rubric(registry: Registry, choice: str | Path) -> Rubric:
    """Find a rubric by its id or file. InputError, with the place in the file, if it is unknown or invalid."""

    def find(rubric: JsonValue) -> Rubric:
        try:
            return registry.find(choice if isinstance(choice, str) and rubric is choice else read_rubric(rubric))
        except InputError as error:
            paths = [(one.path.removeprefix("/rubric"), one.message) for one in error.problems]
            raise type(error)(Problem(*one) for one in paths) from None

    if isinstance(choice, str) and not names_file(choice):
        return find(choice)
    return read_document(Path(choice), "--rubric", find)


def names_file(choice: str) -> bool:
    """Whether a rubric is named by file: the name ends in .yaml, .yml or .json, or includes a folder."""
    return Path(choice).suffix in {".yaml", ".yml", ".json"} or Path(choice).name != choice


def read_document(file: Path, option: str, read: Callable[[JsonValue], T]) -> T:
    """Read a document, YAML or JSON, from a file that an option names. InputError with the place in the file if it is invalid."""
    text = read_option_text(file, option)
    is_json = file.suffix not in {".yaml", ".yml"} and text.lstrip()[:1] in {"{", "["}
    try:
        limits = build_limits(read_settings())
        return read(parse_strictly(text.encode(), limits) if is_json else read_yaml(text, source=""))
    except InputError as error:
        raise error.in_file(str(file)) from None


def read_option_text(path: Path, option: str) -> str:
    """Read a text file, gzipped or not, that an option names; a usage error if it cannot be read."""
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "neither UTF-8 nor gzip"
        raise typer.BadParameter(f"{path}: {reason}", param_hint=option) from None


# Records.


def read_bodies(
    files: Iterable[Path | Block],
    limits: Limits,
    layout: Layout = PLAIN,
    *,
    guessed: Counter[str],
    left_out: Counter[str],
) -> Iterator[RecordBody | Refusal]:
    """Yield the records of files, `-` being standard input; spans are grouped by trace across all files."""
    notes: set[str] = set()
    for record in _find_records(files, limits, layout, left_out=left_out):
        if isinstance(record, BadRecord):
            yield Refusal(record.place, locate_error(record.error, record.place), record.raw)
            continue
        bare = is_bare(record)
        try:
            body = build_body(record, named=layout.format, guessed=guessed)
        except InputError as error:
            yield Refusal(record.place, locate_error(error, record.place, bare=bare), to_json(record.value))
            continue
        if record.note and record.note not in notes:
            notes.add(record.note)
            say(record.note)
        yield RecordBody(record.place, bare, body, record.value)


def _find_records(
    files: Iterable[Path | Block], limits: Limits, layout: Layout, *, left_out: Counter[str]
) -> Iterator[AnyRecord]:
    scanned = chain.from_iterable(find_traces(_scan(file, limits, layout)) for file in files)
    return group_spans(scanned, limits, left_out=left_out, named=layout.format)


def _scan(file: Path | Block, limits: Limits, layout: Layout = PLAIN) -> Iterator[AnyRecord]:
    if isinstance(file, Block):
        return file.scan(limits, layout)
    source, name = (sys.stdin.buffer, "stdin") if str(file) == "-" else (file, None)
    return scan_records(source, limits=limits, name=name, layout=layout)


def require_records(records: Iterable[AnyRecord]) -> Iterator[TraceRecord]:
    """Yield the records; InputError, with its place, for the first that cannot be read."""
    for record in records:
        if isinstance(record, BadRecord):
            raise record.error.in_file(str(record.place))
        yield record


# Reports.


class ReadReport(NamedTuple):
    """A report in a file."""

    report: Report
    name: str
    """Its `custom_id` in a batch, else its trace id, else empty."""
    position: int
    """Its position among all records, from 0."""


class ReportFiles(NamedTuple):
    """The reports in a list of files; `refused` holds the records that are not readable reports."""

    records: list[ReadReport]
    refused: list[Refusal]

    @property
    def reports(self) -> list[Report]:
        """The reports alone."""
        return [one.report for one in self.records]


def read_report_files(files: Sequence[Path]) -> ReportFiles:
    """Read all files and list unreadable records on standard error. InputError if no report can be read."""
    limits, found = build_limits(read_settings()), ReportFiles([], [])
    for position, record in enumerate(chain.from_iterable(_scan(file, limits) for file in files)):
        try:
            if isinstance(record, BadRecord):
                raise record.error
            report = read_report_record(record.value)
        except InputError as error:
            found.refused.append(Refusal(record.place, locate_error(error, record.place)))
            continue
        custom_id = record.value.get("custom_id")
        name = custom_id if isinstance(custom_id, str) else report.trace_id or ""
        found.records.append(ReadReport(report, name, position))
    print_refusals(found.refused)
    if not found.records:
        raise InputError.at("", "no report could be read")
    return found


def read_report_record(value: dict[str, JsonValue]) -> Report:
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
