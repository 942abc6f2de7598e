"""Show reports on a terminal, stage by stage or a line each, and write them as JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from service.cli.exits import describe_error
from service.cli.inputs import Refusal
from service.cli.scoring import Result, ScoredRecord
from service.cli.screen import MAX_WIDTH, build_console, build_grid, pluralize
from service.cli.tally import Tally
from service.core.judging.judged_outcomes import JudgedScore
from service.core.outcome import Skipped
from service.core.report import Report, StageScore
from service.core.trace import Step, Trace
from service.engine import report_json
from service.reading.request import read_request_trace
from service.reporting import statements
from service.reporting.escaping import escape_unprintable
from service.reporting.numbers import render_number, render_share

STYLES: dict[str, str] = {
    "pass": "green",
    "warn": "yellow",
    "fail": "bold red",
    "error": "bold red",
    "undecided": "magenta",
    "not_applicable": "dim",
}

MAX_NOTES = 6
"""How many notes of one stage are shown."""

MAX_PLACES = 20
"""How many, if each is shown with its pointer."""

MAX_TEXT_CHARS = 400
"""How many characters of arguments, results and other texts of a trace are shown."""

OPTIONAL_STAGES = ("sequence", "effect")


def _render_verdict(verdict: str) -> Text:
    return Text("n/a" if verdict == "not_applicable" else verdict, style=STYLES[verdict])


def _render_lines(lines: Sequence[str], style: str = "") -> list[Text]:
    return [Text(escape_unprintable(line), style=style) for line in lines]


def show_steps(console: Console, report: Report, *, head: str = "=> ", places: bool = False) -> None:
    """Print a report: after `head` verdict and score, why it failed if it did, its stages, and what is open.

    `places`: show findings with their pointers.
    """
    console.print(Text(escape_unprintable(head)).append(statements.describe_result(report), STYLES[report.verdict]))
    told = statements.list_statements(report)
    rows = [(stage, _list_notes(report, stage, told, places=places)) for stage in report.stages]
    reason = escape_unprintable(statements.list_reasons(report)[0].text) if report.verdict == "fail" else ""
    if not next((notes[0].plain for _, notes in rows if notes), "").startswith(reason):
        console.print(Text(reason))
    cells: list[tuple[str | Text, ...]] = []
    for one, notes in rows:
        if one.verdict != "not_applicable" or one.stage not in OPTIONAL_STAGES:
            score = render_number(one.score if statements.is_measured(report, one) else None)
            cells.append(
                (one.stage, _render_verdict(one.verdict), Text(score, justify="right"), Text("\n").join(notes))
            )
    console.print()
    console.print(build_grid(cells, ("stage", "verdict", "score", "what was found")))
    for line in _list_lines_below(report):
        console.print(line)


def _list_notes(
    report: Report, stage: StageScore, told: Sequence[statements.OutcomeStatement], *, places: bool
) -> list[Text]:
    """List what was found and what has no score; what passed only beside that; if nothing applies, why."""
    own = [one for one in told if one.stage == stage.stage]
    if stage.verdict == "not_applicable":
        reasons = dict.fromkeys(one.outcome.reason for one in own if isinstance(one.outcome, Skipped))
        return _render_lines(["; ".join(reasons)], "dim")
    remarks = statements.list_remarks(one for one in own if one.state != "absent")
    found = list(dict.fromkeys([statements.render_remark(one, report) if places else one.text for one in remarks]))
    most = MAX_PLACES if places else MAX_NOTES
    more = [f"and {len(found) - most} more"] if len(found) > most else []
    gaps, passed = _list_gaps(own)
    return [*_render_lines([*found[:most], *more]), *gaps, *(passed if gaps and stage.verdict != "fail" else [])]


def _list_gaps(own: Sequence[statements.OutcomeStatement]) -> tuple[list[Text], list[Text]]:
    """List in dim lines what has no score and why, and in at most one more line what passed."""
    gaps = statements.list_gaps(
        (one.criterion, one.explain_gap()) for one in own if one.state in ("blocked", "open", "unchecked")
    )
    passed = ", ".join([name for name, state in statements.fold_states(own).items() if state == "passed"])
    return _render_lines(gaps, "dim"), _render_lines([f"{passed}: passed"] if passed else [], "dim")


def _list_lines_below(report: Report) -> Iterator[Text]:
    """Yield what the verdict waits for, what else is open, what could not be read, and notes on the request."""
    yield from _render_lines(statements.describe_open(report), "magenta" if report.verdict == "undecided" else "dim")
    yield from _render_lines([f"could not be read: {one.path}: {one.reason}" for one in report.unread], "yellow")
    if calibration := statements.describe_calibration(report):
        yield Text(calibration, style="dim")
    if report.executed is not None:
        counts = f"{report.executed.verdict} ({pluralize(report.executed.steps, 'call')})"
        yield Text(f"counting only calls that ran: {counts}", style="dim")
    remarks = [statements.Remark(note.message, note.path, note.code) for note in report.notes]
    yield from _render_lines([f"note: {statements.render_remark(one, report)}" for one in remarks], "yellow")


def show_calls(console: Console, report: Report, trace: Trace) -> None:
    """Print each call with its arguments, its result, its verdict, and what its outcomes say."""
    told = statements.list_statements(report)
    remarks = [(one.step, remark) for one in told for remark in one.list_remarks()]
    for step, verdict in zip(trace.steps, report.steps, strict=True):
        gaps, passed = _list_gaps([one for one in told if one.step == step.index])
        own = [remark for at, remark in remarks if step.index in (at, statements.find_step_index(remark.path))]
        found = _render_lines(list(dict.fromkeys(remark.text for remark in own)))
        result = step.result
        kind = "result" if result is None or not result.is_error else "error"
        content = Text("not in the trace", "dim") if result is None else cut(render_content(result.content))
        rows = [(f"step {step.index + 1}", cut(render_call(step))), (Text(f"  {kind}", "dim"), content)]
        said = [_render_verdict(verdict.verdict), *found, *gaps, *passed]
        console.print()
        console.print(build_grid([*rows, (Text("  verdict", "dim"), Text("\n").join(said))]))


def show_judged(console: Console, report: Report) -> None:
    """Print what each judge answered: its label and model, whether a fit applied, and its reason."""
    rows: list[tuple[str | Text, ...]] = []
    for one in statements.list_statements(report):
        if isinstance(one.outcome, JudgedScore):
            judge, fitted = one.outcome.judge, one.outcome.calibration.status
            said = f"{judge.label} by {judge.model}, {fitted}: {judge.reason}"
            about = one.criterion if one.step is None else f"{one.criterion} of step {one.step + 1}"
            verdict = _render_verdict("pass" if one.outcome.passed else "fail")
            rows.append((about, verdict, cut(escape_unprintable(said))))
    if rows:
        console.print()
        console.print(build_grid(rows, ("judged", "verdict", "what the judge said")))


def render_call(step: Step) -> str:
    """Render a call as in Python, its arguments as JSON; as they came if they are no object."""
    arguments = step.call.arguments
    shown = [render_content(step.call.raw)] if arguments is None else []
    shown += [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in (arguments or {}).items()]
    return f"{step.call.name}({', '.join(shown)})"


def render_content(value: JsonValue) -> str:
    """Render a text as it is, and anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def cut(text: str) -> str:
    """Cut a text that is too long to show."""
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[:MAX_TEXT_CHARS]}…"


# One line each.

LOOKAHEAD = 100
"""How many results are collected before the width of the first column is fixed."""

MAX_NAME_WIDTH = 28
"""How many characters of a name are shown unless the terminal is wider."""
MIN_REST_WIDTH = 36
"""How many columns the cells between the name and the finding take."""
HEAD = ("trace", "verdict", "score", "cover", "failed at", "finding")
WIDTHS = (9, 5, 5, 9)


def build_result_row(result: Result) -> tuple[str, ...]:
    """Build the cells below HEAD. A refused record has no name, so its place in the file identifies it."""
    if isinstance(result, Refusal):
        place = replace(result.place, source=Path(result.place.source).name)
        reason = describe_error(type(result.error)(result.error.problems[:1]))
        return escape_unprintable(f"{place}{place.pointer}"), "error", "-", "-", "-", reason
    report, reasons = result.report, statements.list_reasons(result.report)
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    finding = escape_unprintable(reasons[0].text) + more if reasons else ""
    name = escape_unprintable(result.name if result.trial is None else f"{result.name} ({result.trial})")
    numbers = render_number(statements.read_score(report)), render_share(report.coverage)
    return name, report.verdict, *numbers, report.first_failing_stage or "-", finding


class ResultTable:
    """Prints one line per trace, cut to the width of a terminal, and whole elsewhere; of a single trace also the stages.

    `verbose`: also print the stages and calls of each. `lookahead`: how many results determine the width of the first column.
    """

    def __init__(self, stream: BinaryIO, tally: Tally, *, verbose: bool = False, lookahead: int = LOOKAHEAD) -> None:
        self._console = build_console()
        if getattr(self._console.file, "buffer", None) is not stream:
            text = io.TextIOWrapper(stream, "utf-8", errors="replace", write_through=True)
            self._console = build_console(text, width=MAX_WIDTH)
        self._tally = tally
        self._verbose = verbose
        self._lookahead = lookahead
        self._pending: list[Result] = []
        self._width = 0

    def add(self, result: Result) -> None:
        """Print a result once the width of the first column is known."""
        if self._width:
            self._write(result)
            return
        self._pending.append(result)
        if len(self._pending) == self._lookahead:
            self._start()

    def close(self) -> None:
        """Print the remaining results, the stages if there is a single trace, and the totals."""
        single = self._pending[0] if len(self._pending) == 1 else None
        if isinstance(single, ScoredRecord):
            self._show(single, f"{build_result_row(single)[0]}: ")
        elif self._pending:
            self._start()
        if self._tally.verdicts:
            self._console.print()
        for line in self._tally.list_lines(told=isinstance(single, ScoredRecord)):
            self._console.print(Text(line), soft_wrap=not self._console.is_terminal)

    def _start(self) -> None:
        widest = max(MAX_NAME_WIDTH, (self._console.width - MIN_REST_WIDTH) // 3 if self._console.is_terminal else 0)
        longest = max(len(build_result_row(result)[0]) for result in self._pending)
        self._width = widest if self._lookahead < LOOKAHEAD else min(widest, max(longest, 5))
        self._print_line([Text(text, style="bold") for text in HEAD])
        for result in self._pending:
            self._write(result)
        self._pending = []

    def _write(self, result: Result) -> None:
        name, verdict, *cells, finding = build_result_row(result)
        if isinstance(result, Refusal):
            name, finding = name[-self._width :], "not scored; see standard error"
        self._print_line([Text(name), _render_verdict(verdict), *map(Text, cells), Text(finding)])
        if self._verbose and isinstance(result, ScoredRecord):
            self._console.print()
            self._show(result, "=> ")
            self._console.print()

    def _show(self, result: ScoredRecord, head: str) -> None:
        show_steps(self._console, result.report, head=head)
        if self._verbose:
            show_calls(self._console, result.report, read_request_trace(result.request.request))
            show_judged(self._console, result.report)

    def _print_line(self, cells: list[Text]) -> None:
        for cell, width in zip(cells, (self._width, *WIDTHS), strict=False):
            cell.truncate(width, overflow="ellipsis", pad=True)
        line = Text("  ").join(cells)
        line.rstrip()
        fits = self._console.is_terminal
        self._console.print(line, no_wrap=True, overflow="ellipsis" if fits else "ignore", soft_wrap=not fits)


# JSON.

MAX_WRITTEN_PROBLEMS = 100
"""How many problems of one refused record are written."""


class JsonReports:
    """Writes reports with the same bytes as over HTTP and from the library, and {"error": ...} for a refused record.

    `lines`: one on each line, flushed before the next is scored. Otherwise a single report as an object, several as a list.
    """

    def __init__(self, stream: BinaryIO, *, lines: bool = False) -> None:
        self._stream = stream
        self._lines = lines
        self._texts: list[bytes] = []

    def add(self, result: Result) -> None:
        """Write a line, or keep the report until all are there."""
        text = render_result(result)
        if self._lines:
            self._stream.write(text + b"\n")
            self._stream.flush()
        else:
            self._texts.append(text)

    def close(self) -> None:
        """Write the object or list."""
        if not self._lines:
            whole = b",\n".join(self._texts)
            self._stream.write((whole if len(self._texts) == 1 else b"[%b]" % whole) + b"\n")


def render_result(result: Result) -> bytes:
    """Render a report as JSON; of a refused record {"error": {"source", "line", "detail", "errors": [{"pointer", "detail"}]}}."""
    if not isinstance(result, Refusal):
        return report_json(result.report)
    place, problems = result.place, result.error.problems
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    error = {
        "source": place.source,
        "line": place.line,
        "detail": f"{describe_error(type(result.error)(problems[:1]))}{more}",
        "errors": [{"pointer": p.path, "detail": p.message} for p in problems[:MAX_WRITTEN_PROBLEMS]],
    }
    return json.dumps({"error": error}, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
