"""Reports as a table: a line each, as they come, and for a single one its steps as well."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from rich.console import Console
from rich.text import Text

from service.cli.inputs import Refusal
from service.cli.rendering.console import WIDEST, console, number, share, verdict_text
from service.cli.rendering.refusals import REFUSALS_TOLD
from service.cli.rendering.results import Tally, list_findings
from service.cli.rendering.steps import show_steps
from service.cli.scoring import Result, ScoredRecord
from service.reporting.escaping import escape_unprintable
from service.reporting.findings import render_finding

LOOKAHEAD = 100
"""How many results are seen before the width of the first column is fixed."""

LONGEST_NAME = 28
"""Characters of a name, where the terminal has no room for more."""
NOT_SCORED = "not scored; why stands on standard error"
LEAST_REST = 36
"""Columns that what is no name and no finding takes."""
HEAD = ("verdict", "score", "cover", "broke at", "finding")
WIDTHS = (7, 5, 5, 9)


class ResultTable:
    """One line for each trace. On a terminal a line is cut to its width; elsewhere it is whole.

    `verbose`: the steps of each trace as well. `lookahead`: how many results fix the width of the first column.
    """

    def __init__(self, stream: BinaryIO, tally: Tally, *, verbose: bool = False, lookahead: int = LOOKAHEAD) -> None:
        self._console = _console(stream)
        self._tally = tally
        self._verbose = verbose
        self._lookahead = lookahead
        self._refused = 0
        self._held: list[Result] = []
        self._width = 0

    def add(self, result: Result) -> None:
        """Write one line, as soon as the width of the columns is known."""
        if self._width:
            self._write(result)
            return
        self._held.append(result)
        if len(self._held) == self._lookahead:
            self._begin()

    def close(self) -> None:
        """Write what is still held, the steps of a single trace, and the summary."""
        single = self._held[0] if len(self._held) == 1 else None
        if self._held:
            self._begin()
        if isinstance(single, ScoredRecord) and not self._verbose:
            self._console.print()
            show_steps(self._console, single.report)
        if self._tally.verdicts:
            self._console.print()
        for line in self._tally.lines():
            self._console.print(Text(line), soft_wrap=not self._console.is_terminal)

    def _begin(self) -> None:
        names = [_name(result) for result in self._held]
        longest = (
            max(LONGEST_NAME, (self._console.width - LEAST_REST) // 3) if self._console.is_terminal else LONGEST_NAME
        )
        width = max(5, *map(len, names), 5) if len(names) == 1 or self._lookahead == LOOKAHEAD else longest
        self._width = min(longest, width)
        self._line([Text(text, style="bold") for text in ("trace", *HEAD)])
        for result in self._held:
            self._write(result)
        self._held = []

    def _write(self, result: Result) -> None:
        name = Text(_name(result)[-self._width :] if isinstance(result, Refusal) else _name(result))
        if isinstance(result, Refusal):
            self._refused += 1
            told = NOT_SCORED if self._refused <= REFUSALS_TOLD else _render_problem(result)
            self._line([name, Text("error", style="bold red"), Text("-"), Text("-"), Text("-"), Text(told)])
            return
        report = result.report
        findings = list_findings(report)
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        cells = [number(report.score), share(report.coverage), report.first_failing_stage or "-"]
        finding = escape_unprintable(render_finding(findings[0])) + more if findings else ""
        self._line([name, verdict_text(report.verdict), *map(Text, cells), Text(finding)])
        if self._verbose:
            self._console.print()
            show_steps(self._console, report)
            self._console.print()

    def _line(self, cells: list[Text]) -> None:
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


def _name(result: Result) -> str:
    """What a line is about; a refused record has no name, and its line in the file tells it from others."""
    if isinstance(result, Refusal):
        place = replace(result.place, source=Path(result.place.source).name)
        return escape_unprintable(f"{place}{place.pointer}")
    return escape_unprintable(result.name if result.trial is None else f"{result.name} ({result.trial})")


def _render_problem(result: Refusal) -> str:
    problem = result.error.problems[0]
    return escape_unprintable(f"{problem.path}: {problem.message}" if problem.path else problem.message)


def _console(stream: BinaryIO) -> Console:
    """Standard output as it is; any other stream as plain UTF-8."""
    found = console()
    if getattr(found.file, "buffer", None) is stream:
        return found
    text = io.TextIOWrapper(stream, "utf-8", errors="replace", write_through=True)
    return console(text, width=WIDEST)
