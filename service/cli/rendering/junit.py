"""Render reports as JUnit XML: a test case per trace, a failure per failing criterion, an error for a bad record."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape
from tempfile import SpooledTemporaryFile
from typing import BinaryIO

from service.cli.exits import describe_error
from service.cli.inputs import Refusal
from service.cli.scoring import Result, ScoredRecord
from service.core.report import Report
from service.errors import (
    BadLinesError,
    InputError,
    MalformedError,
    RubricError,
    SettingsError,
    TooLargeError,
    UnknownRubricError,
)
from service.reading.trace_files import RecordPlace
from service.reporting.statements import (
    OutcomeStatement,
    describe_result,
    describe_verdict,
    explain_low_score,
    list_statements,
    list_waits,
)

MAX_MEMORY_BYTES = 2**20
"""Bytes of test cases kept in memory before they go to a temporary file. They wait because the counts come first in XML."""

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape_xml(text: str) -> str:
    r"""Escape text for XML 1.0, in an attribute or between tags. Characters that XML forbids become backslash escapes.

    >>> escape_xml('<a b="1">\x1b')
    '&lt;a b=&quot;1&quot;&gt;\\x1b'
    """
    return escape(_FORBIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text))


class JUnit:
    """Writes one test suite. Only a trace with the verdict fail has failures; an undecided verdict is skipped unless strict."""

    def __init__(self, stream: BinaryIO, *, strict: bool = False) -> None:
        self._stream = stream
        self._strict = strict
        self._cases: BinaryIO = SpooledTemporaryFile(max_size=MAX_MEMORY_BYTES)  # type: ignore[assignment]  # noqa: SIM115
        self._counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
        self._seconds = 0.0

    def add(self, result: Result) -> None:
        """Write one test case."""
        self._seconds += 0.0 if isinstance(result, Refusal) else result.seconds
        kind, lines = _render_refusal(result) if isinstance(result, Refusal) else self._render_record(result)
        self._counts["tests"] += 1
        if kind:
            self._counts[kind] += 1
        self._cases.write("".join(f"  {line}\n" for line in lines).encode())

    def close(self) -> None:
        """Write the document."""
        counts = " ".join(f'{name}="{count}"' for name, count in self._counts.items())
        counts += f' time="{self._seconds:.3f}"'
        head = f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n <testsuite name="callgrade" {counts}>\n'
        self._stream.write(head.encode())
        self._cases.seek(0)
        while part := self._cases.read(MAX_MEMORY_BYTES):
            self._stream.write(part)
        self._stream.write(b" </testsuite>\n</testsuites>\n")
        self._cases.close()

    def _render_record(self, result: ScoredRecord) -> tuple[str, list[str]]:
        report = result.report
        kind, elements = self._render_verdict(report)
        body = [*elements, f"  <system-out>{escape_xml(_render_summary(result))}</system-out>"]
        name = result.name if result.trial is None else f"{result.name} (trial {result.trial})"
        return kind, [_render_start_tag(name, result.place, result.seconds), *body, "</testcase>"]

    def _render_verdict(self, report: Report) -> tuple[str, list[str]]:
        if report.verdict == "fail":
            return "failures", list(_list_failures(report))
        if report.verdict not in ("undecided", "not_applicable"):
            return "", []
        message = "; ".join([describe_verdict(report), *list_waits(report)])
        if report.verdict == "undecided" and self._strict:
            return "failures", [_render_failure("undecided", message, "")]
        return "skipped", [f'  <skipped message="{escape_xml(message)}"/>']


def _render_start_tag(name: str, place: RecordPlace, seconds: float = 0.0) -> str:
    line = "" if place.line is None else f' line="{place.line}"'
    source = escape_xml(place.source)
    return f'<testcase name="{escape_xml(name)}" classname="{source}" file="{source}"{line} time="{seconds:.3f}">'


ERROR_TYPES: Mapping[type[InputError], str] = {
    InputError: "InputError",
    MalformedError: "MalformedError",
    TooLargeError: "TooLargeError",
    RubricError: "RubricError",
    UnknownRubricError: "UnknownRubricError",
    SettingsError: "SettingsError",
    BadLinesError: "BadLinesError",
}
"""The names of errors in the file, independent of class names, because readers rely on them."""


def _name_type(error: InputError) -> str:
    return next(ERROR_TYPES[one] for one in type(error).__mro__ if one in ERROR_TYPES)


def _render_refusal(result: Refusal) -> tuple[str, list[str]]:
    name = f"{result.place}{result.place.pointer}"
    text = describe_error(result.error)
    first = text.splitlines()[0]
    error = f'  <error type="{_name_type(result.error)}" message="{escape_xml(first)}">{escape_xml(text)}</error>'
    return "errors", [_render_start_tag(name, result.place), error, "</testcase>"]


def _list_failures(report: Report) -> Iterator[str]:
    """Yield a failure for each criterion that did not pass, the one that failed first before the others."""
    statements = list_statements(report)
    yield from [_render_failure("score", words, "") for words in explain_low_score(report, statements)]
    failed: dict[str, list[str]] = {}
    for one in statements:
        if one.state in ("failed", "blocked") and one.criterion in report.failing:
            failed.setdefault(one.criterion, []).extend(_explain_failure(one))
    for criterion, lines in failed.items():
        yield _render_failure(criterion, lines[0], "\n".join(lines))


def _render_failure(kind: str, message: str, text: str) -> str:
    return f'  <failure type="{escape_xml(kind)}" message="{escape_xml(message)}">{escape_xml(text)}</failure>'


def _explain_failure(one: OutcomeStatement) -> Iterator[str]:
    yield from (f"{words} ({path})" if path else words for words, path in one.list_remarks())
    if one.state == "blocked":
        yield one.explain_gap() if one.step is None else f"step {one.step + 1}: {one.explain_gap()}"


def _render_summary(result: ScoredRecord) -> str:
    return f"{result.place}: {describe_result(result.report)}"
