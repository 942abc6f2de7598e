"""Report to continuous integration: JUnit XML of reports, and GitHub's annotations with the step summary."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal

from service.cli.exits import describe_error
from service.cli.inputs import Refusal
from service.cli.scoring import Result
from service.cli.sections import MAX_PROVED, explain_change, explain_proved, name_number
from service.cli.tally import Tally
from service.cli.views import HEAD, JsonReports, build_result_row
from service.core.report import Report
from service.reporting import statements
from service.reporting.document import Section, Table, load_template, render_markdown
from service.reporting.escaping import escape_unprintable
from service.reporting.regression import RegressionGate, may_be_undecided

# JUnit.

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape_forbidden(text: str) -> str:
    """Escape the characters that XML forbids with backslashes."""
    return _FORBIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


class JUnit:
    """Writes a test case per trace. Only a trace with the verdict fail has failures, one per criterion that did not pass.

    An undecided verdict is skipped; a refused record is an error.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._cases: list[tuple[dict[str, object], list[_Part], str]] = []
        self._counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
        self._seconds = 0.0

    def add(self, result: Result) -> None:
        """Add one test case."""
        place, said, seconds, parts = result.place, "", 0.0, list[_Part]()
        kind: Literal["", "failures", "errors", "skipped"] = ""
        if isinstance(result, Refusal):
            kind, name, text = "errors", f"{place}{place.pointer}", describe_error(result.error)
            parts.append(("error", {"type": type(result.error).__name__, "message": text.splitlines()[0]}, text))
        else:
            report, seconds = result.report, result.seconds
            name = result.name + ("" if result.trial is None else f" (trial {result.trial})")
            said = f"{place}: {statements.describe_result(report)}"
            if report.verdict == "fail":
                kind, parts = "failures", list(_list_failures(report))
            elif report.verdict in ("undecided", "not_applicable"):
                message = "; ".join([statements.describe_verdict(report), *statements.list_waits(report)])
                kind, parts = "skipped", [("skipped", {"message": message}, "")]
        where = {"name": name, "classname": place.source, "file": place.source, "line": place.line}
        self._cases.append(({**where, "time": f"{seconds:.3f}"}, parts, said))
        self._seconds += seconds
        self._counts["tests"] += 1
        if kind:
            self._counts[kind] += 1

    def close(self) -> None:
        """Write the document."""
        suite = {"name": "callgrade", **self._counts, "time": f"{self._seconds:.3f}"}
        text = load_template("junit.xml").render(suite=suite, cases=self._cases)
        self._stream.write(escape_forbidden(text).encode() + b"\n")


_Part = tuple[str, dict[str, str], str]
"""An element of a test case: its tag, attributes and text."""


def _list_failures(report: Report) -> Iterator[_Part]:
    """Yield a failure for each criterion that did not pass, the one that failed first before the others."""
    told = statements.list_statements(report)
    for words in statements.explain_low_score(report, told):
        yield "failure", {"type": "score", "message": words}, ""
    failed: dict[str, list[str]] = {}
    for one in told:
        if one.state in ("failed", "blocked") and one.criterion in report.failing:
            lines = failed.setdefault(one.criterion, [])
            lines += [statements.render_remark(remark, report) for remark in one.list_remarks()]
            if one.state == "blocked":
                lines.append(one.explain_gap() if one.step is None else f"step {one.step + 1}: {one.explain_gap()}")
    for criterion, lines in failed.items():
        yield "failure", {"type": criterion, "message": lines[0]}, "\n".join(lines)


# GitHub.

Level = Literal["error", "warning", "notice"]

LEVELS: dict[str, Level] = {"error": "error", "fail": "error", "warn": "warning", "undecided": "warning"}
"""The level of a trace by its verdict, `error` being that of a refused record. Others get no annotation."""
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

    def __init__(self, reports: BinaryIO | None, tally: Tally, *, allow_undecided: bool = False) -> None:
        self._reports = None if reports is None else JsonReports(reports, lines=True)
        self._allow_undecided = allow_undecided
        self._tally = tally
        self._counts: Counter[Level] = Counter()
        self._rows: list[tuple[str, ...]] = []

    def add(self, result: Result) -> None:
        """Write the annotation of a trace that does not pass, up to the number that GitHub shows."""
        if self._reports is not None:
            self._reports.add(result)
        level = LEVELS.get("error" if isinstance(result, Refusal) else result.report.verdict)
        if level is None:
            return
        if self._allow_undecided and not isinstance(result, Refusal) and may_be_undecided(result.report):
            level = "notice"
        if len(self._rows) < MAX_ROWS:
            self._rows.append(build_result_row(result))
        if self._counts[level] < MAX_ANNOTATIONS:
            print(_annotate(result, level), flush=True)  # noqa: T201
        self._counts[level] += 1

    def close(self) -> None:
        """Write how many annotations were left out, and the step summary."""
        for level, count in self._counts.items():
            if count > MAX_ANNOTATIONS:
                print(render_annotation(level, f"and {count - MAX_ANNOTATIONS} more, see the step summary"))  # noqa: T201
        more = sum(self._counts.values()) - len(self._rows)
        lines = (*self._tally.list_lines(), *([f"and {more} more that do not pass"] if more else []))
        write_step_summary(render_markdown([Section("callgrade", (Table(HEAD, tuple(self._rows)),), lines)]))


def _annotate(result: Result, level: Level) -> str:
    place = result.place
    if isinstance(result, Refusal):
        title, message = "not scored", describe_error(result.error)
    else:
        verdict = statements.describe_verdict(result.report)
        title = escape_unprintable(f"{result.name}: {verdict}")
        message = "\n".join([escape_unprintable(one.text) for one in statements.list_reasons(result.report)]) or verdict
    return render_annotation(level, message, title=title, file=place.source, line=place.line)


def list_gate_annotations(gate: RegressionGate) -> Iterator[str]:
    """Render the regression gate of a pull request as workflow commands."""
    if gate.reason:
        yield render_annotation("error", gate.reason, title="callgrade: undecided")
    for one in gate.numbers:
        level: Level = "notice" if one.status == "within noise" else "error"
        yield render_annotation(level, explain_change(one), title=f"callgrade: {name_number(one.name)} {one.status}")
    for proved in gate.proved[:MAX_PROVED]:
        yield render_annotation("error", explain_proved(proved), title=f"callgrade: {proved.status}")
