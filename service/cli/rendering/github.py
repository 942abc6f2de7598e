"""Report a run to GitHub: annotations at lines of the input files, and the step summary."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import BinaryIO, Literal

from service.cli.exits import describe_error
from service.cli.inputs import Refusal
from service.cli.rendering.results import Tally
from service.cli.rendering.streams import JsonLines
from service.cli.scoring import Result, ScoredRecord
from service.reporting.document import Section, Table
from service.reporting.escaping import escape_unprintable
from service.reporting.markdown import render_markdown
from service.reporting.numbers import render_number, render_share
from service.reporting.statements import describe_verdict, list_reasons, read_score

Level = Literal["error", "warning", "notice"]

MAX_ANNOTATIONS = 10
"""How many annotations of one level GitHub shows for a step."""
MAX_ROWS = 100
"""How many traces the step summary lists."""


def render_annotation(level: Level, message: str, *, title: str = "", file: str = "", line: int | None = None) -> str:
    """Render a workflow command, escaped so that no text in it can start another command.

    >>> render_annotation("error", "a\\n::b", title="x,y", file="a.jsonl", line=3)
    '::error file=a.jsonl,line=3,title=x%2Cy::a%0A::b'
    """
    values = {"file": file, "line": "" if line is None else str(line), "title": title}
    properties = ",".join(f"{name}={_escape(value, also=':,')}" for name, value in values.items() if value)
    return f"::{level} {properties}::{_escape(message)}" if properties else f"::{level}::{_escape(message)}"


def _escape(text: str, *, also: str = "") -> str:
    """Escape as the runner unescapes: per cent signs, line ends and, in properties, their delimiters."""
    for character in "%\r\n" + also:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def write_step_summary(text: str) -> None:
    """Append Markdown to the step summary, if the runner names a file for it."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")


class GitHub:
    """Writes annotations to standard output as results come, and the reports themselves to `reports`, a line each."""

    def __init__(self, reports: BinaryIO | None, tally: Tally, *, strict: bool = False) -> None:
        self._reports = None if reports is None else JsonLines(reports)
        self._tally = tally
        self._strict = strict
        self._counts: Counter[Level] = Counter()
        self._rows: list[tuple[str, ...]] = []

    def add(self, result: Result) -> None:
        """Write the annotation of a trace that does not pass, up to the number that GitHub shows."""
        if self._reports is not None:
            self._reports.add(result)
        level = _find_level(result, strict=self._strict)
        if level is None:
            return
        if len(self._rows) < MAX_ROWS:
            self._rows.append(_build_row(result))
        if self._counts[level] < MAX_ANNOTATIONS:
            _write(_annotate(result, level))
        self._counts[level] += 1

    def close(self) -> None:
        """Write how many annotations were left out, and the step summary."""
        for level, count in self._counts.items():
            if count > MAX_ANNOTATIONS:
                _write(render_annotation(level, f"and {count - MAX_ANNOTATIONS} more, see the step summary"))
        head = ("trace", "verdict", "score", "coverage", "failed at", "finding")
        more = sum(self._counts.values()) - len(self._rows)
        lines = (*self._tally.list_lines(), *([f"and {more} more that do not pass"] if more else []))
        write_step_summary(render_markdown([Section("callgrade", (Table(head, tuple(self._rows)),), lines)]))


def _write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _find_level(result: Result, *, strict: bool) -> Level | None:
    if isinstance(result, Refusal) or result.report.verdict == "fail":
        return "error"
    if result.report.verdict == "undecided":
        return "error" if strict else "warning"
    return "warning" if result.report.verdict == "warn" else None


def _annotate(result: Result, level: Level) -> str:
    place = result.place
    if isinstance(result, Refusal):
        message = describe_error(result.error)
        return render_annotation(level, message, title="not scored", file=place.source, line=place.line)
    title = describe_verdict(result.report)
    message = "\n".join([escape_unprintable(words) for words, _ in list_reasons(result.report)]) or title
    name = escape_unprintable(f"{result.name}: {title}")
    return render_annotation(level, message, title=name, file=place.source, line=place.line)


def _build_row(result: Result) -> tuple[str, ...]:
    if isinstance(result, Refusal):
        return f"{result.place}", "not scored", "-", "-", "-", describe_error(result.error)
    return _build_scored_row(result)


def _build_scored_row(result: ScoredRecord) -> tuple[str, ...]:
    report = result.report
    first = next((escape_unprintable(words) for words, _ in list_reasons(report)), "")
    score, failed_at = render_number(read_score(report)), report.first_failing_stage or "-"
    return result.name, report.verdict, score, render_share(report.coverage), failed_at, first
