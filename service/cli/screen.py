"""What people see on standard output and standard error: lines, tables and documents.

Text from traces is never markup, and is escaped for terminals.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import IO, Literal

import rich.table
from rich.console import Console
from rich.text import Text

from service.reporting.document import Section, Table, render_markdown
from service.reporting.escaping import escape_unprintable
from service.reporting.summaries import render_json

MAX_WIDTH = 120
ENDLESS = 10_000
"""The width of a console that wraps nothing."""


def build_console(
    file: IO[str] | None = None, *, width: int | None = None, plain: bool = False, reading: bool = False
) -> Console:
    """Build a console that prints every text literally. `file` defaults to standard output; `plain` disables colours.

    `reading`: at most MAX_WIDTH columns wide.
    """
    stream, is_terminal = file or sys.stdout, False if plain else None
    if width is None and not stream.isatty() and "COLUMNS" not in os.environ:
        width = MAX_WIDTH  # a log need not be as narrow as a terminal
    console = Console(file=stream, width=width, markup=False, emoji=False, highlight=False, force_terminal=is_terminal)
    if reading:
        console.width = min(console.width, MAX_WIDTH)
    return console


def say(text: str) -> None:
    """Print a line on standard error, unwrapped, so that grep finds it."""
    print(escape_unprintable(text), file=sys.stderr)  # noqa: T201


def warn(text: str) -> None:
    """Print a warning on standard error."""
    say(f"warning: {text}")


def print_line(text: str) -> None:
    """Print a line on standard output, unwrapped, at once."""
    print(escape_unprintable(text), flush=True)  # noqa: T201


def pluralize(count: int, noun: str, several: str = "") -> str:
    """Render a count with its noun.

    >>> pluralize(1, "trace"), pluralize(2, "trace"), pluralize(2, "reply", "replies")
    ('1 trace', '2 traces', '2 replies')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {several or noun + 's'}"


def print_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    form: Literal["table", "json"] = "table",
    value: object = None,
    wraps: bool = True,
) -> None:
    """Print a small table for a reader, or as JSON the `value` that it shows.

    Without any column name there is no head. `wraps`: long cells are folded.
    """
    if form == "json":
        print_json(value)
    else:
        table = Table(tuple(head), tuple(map(tuple, rows)))
        show([Section(title, (table,))], build_console(reading=True) if wraps else build_console(width=ENDLESS))


def print_document(sections: Iterable[Section], form: Literal["table", "json", "markdown"], value: object) -> None:
    """Print a document on standard output as tables or Markdown, or as JSON the `value` that it shows."""
    if form == "json":
        print_json(value)
    elif form == "table":
        show(sections, build_console())
    else:
        sys.stdout.write(render_markdown(sections))
        sys.stdout.flush()


def print_json(value: object) -> None:
    """Print a summary, a comparison or another value of ours as JSON."""
    sys.stdout.write(render_json(value).decode() + "\n")
    sys.stdout.flush()


MAX_NAME = 26
"""The most characters of a cell in a first column that is not wrapped."""


def build_grid(
    rows: Iterable[Sequence[str | Text]], head: Sequence[str] = (), *, right: Sequence[bool] = ()
) -> rich.table.Table:
    """Build a table without lines. Text is escaped; a `Text` keeps its style.

    `right`: for each column, whether it is right-aligned; every column then wraps, else only the last one does. A first column
    of short cells never wraps: a name that is broken in two cannot be searched for.
    """
    listed = list(rows)
    named = all(len(row[0]) <= MAX_NAME for row in listed)
    grid = rich.table.Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=any(head))
    size = len(listed[0]) if listed else 0
    for n in range(size):
        wraps = (bool(right) and (n > 0 or not named)) or n == size - 1
        justify = "right" if right and right[n] else "left"
        grid.add_column(head[n] if head else "", justify=justify, no_wrap=not wraps, overflow="fold")
    for row in listed:
        grid.add_row(*[Text(escape_unprintable(cell)) if isinstance(cell, str) else cell for cell in row])
    return grid


def show(sections: Iterable[Section], console: Console | None = None) -> None:
    """Print sections as tables and lines, by default for a reader on standard output."""
    console = console or build_console(reading=True)
    for n, section in enumerate(sections):
        if n:
            console.print()
        if section.title:
            console.print(Text(section.title, style="bold"))
        for one in section.tables:
            rows = [[cell if isinstance(cell, str) else cell.text for cell in row] for row in one.rows]
            if rows:
                console.print(build_grid(rows, one.head, right=one.list_numeric_columns()))
        for line in (*section.text, *section.lines):
            console.print(Text(escape_unprintable(line)), soft_wrap=not console.is_terminal)
