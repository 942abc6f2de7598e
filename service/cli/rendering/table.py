"""Show reports as a table: a line each, as they come; a single report also with its steps."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from rich.console import Console
from rich.text import Text

from service.cli.inputs import Refusal
from service.cli.rendering.console import MAX_WIDTH, build_console, render_verdict
from service.cli.rendering.refusals import MAX_LISTED_REFUSALS
from service.cli.rendering.results import Tally
from service.cli.rendering.steps import show_steps
from service.cli.scoring import Result, ScoredRecord
from service.reporting.escaping import escape_unprintable
from service.reporting.numbers import render_number, render_share
from service.reporting.statements import list_reasons, read_score

LOOKAHEAD = 100
"""How many results are collected before the width of the first column is fixed."""

MAX_NAME_WIDTH = 28
"""How many characters of a name are shown unless the terminal is wider."""
NOT_SCORED = "not scored; see standard error"
MIN_REST_WIDTH = 36
"""How many columns the cells between the name and the finding take."""
HEAD = ("verdict", "score", "cover", "failed at", "finding")
WIDTHS = (9, 5, 5, 9)


class ResultTable:
    """Prints one line per trace, cut to the width of a terminal, and whole elsewhere.

    `verbose`: also print the steps of each trace. `lookahead`: how many results determine the width of the first column.
    """

    def __init__(self, stream: BinaryIO, tally: Tally, *, verbose: bool = False, lookahead: int = LOOKAHEAD) -> None:
        self._console = _build_console(stream)
        self._tally = tally
        self._verbose = verbose
        self._lookahead = lookahead
        self._refused = 0
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
        """Print the remaining results, the steps if there is a single trace, and the totals."""
        single = self._pending[0] if len(self._pending) == 1 else None
        if isinstance(single, ScoredRecord):
            show_steps(self._console, single.report, head=f"{_describe_record(single)}: ")
        elif self._pending:
            self._start()
        if self._tally.verdicts:
            self._console.print()
        for line in self._tally.list_lines(told=isinstance(single, ScoredRecord)):
            self._console.print(Text(line), soft_wrap=not self._console.is_terminal)

    def _start(self) -> None:
        names = [_describe_record(result) for result in self._pending]
        longest = (
            max(MAX_NAME_WIDTH, (self._console.width - MIN_REST_WIDTH) // 3)
            if self._console.is_terminal
            else MAX_NAME_WIDTH
        )
        width = max(5, *map(len, names), 5) if len(names) == 1 or self._lookahead == LOOKAHEAD else longest
        self._width = min(longest, width)
        self._print_line([Text(text, style="bold") for text in ("trace", *HEAD)])
        for result in self._pending:
            self._write(result)
        self._pending = []

    def _write(self, result: Result) -> None:
        name = Text(
            _describe_record(result)[-self._width :] if isinstance(result, Refusal) else _describe_record(result)
        )
        if isinstance(result, Refusal):
            self._refused += 1
            reason = NOT_SCORED if self._refused <= MAX_LISTED_REFUSALS else _render_problem(result)
            self._print_line([name, Text("error", style="bold red"), Text("-"), Text("-"), Text("-"), Text(reason)])
            return
        report = result.report
        reasons = list_reasons(report)
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        score = render_number(read_score(report))
        cells = [score, render_share(report.coverage), report.first_failing_stage or "-"]
        finding = escape_unprintable(reasons[0].words) + more if reasons else ""
        self._print_line([name, render_verdict(report.verdict), *map(Text, cells), Text(finding)])
        if self._verbose:
            self._console.print()
            show_steps(self._console, report)
            self._console.print()

    def _print_line(self, cells: list[Text]) -> None:
        line = Text()
        for cell, width in zip(cells, (self._width, *WIDTHS), strict=False):
            cell.truncate(width, overflow="ellipsis")
            cell.pad_right(width - cell.cell_len)
            line = line.append(cell).append("  ")
        line.append(cells[-1])
        line.rstrip()
        if self._console.is_terminal:
            self._console.print(line, no_wrap=True, overflow="ellipsis")
        else:
            self._console.print(line, soft_wrap=True)


def _describe_record(result: Result) -> str:
    """Return the name of a trace; a refused record has none, so its place in the file identifies it."""
    if isinstance(result, Refusal):
        place = replace(result.place, source=Path(result.place.source).name)
        return escape_unprintable(f"{place}{place.pointer}")
    return escape_unprintable(result.name if result.trial is None else f"{result.name} ({result.trial})")


def _render_problem(result: Refusal) -> str:
    problem = result.error.problems[0]
    return escape_unprintable(f"{problem.path}: {problem.message}" if problem.path else problem.message)


def _build_console(stream: BinaryIO) -> Console:
    """Build a console on standard output, or on any other stream as plain UTF-8."""
    stdout = build_console()
    if getattr(stdout.file, "buffer", None) is stream:
        return stdout
    text = io.TextIOWrapper(stream, "utf-8", errors="replace", write_through=True)
    return build_console(text, width=MAX_WIDTH)
