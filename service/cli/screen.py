"""What people see on standard output and standard error: lines, tables, documents and refused records.

Text from traces is never markup, and is escaped for terminals. Every command imports this module, so rich is imported when it
is used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Literal

from service.cli.exits import describe_error
from service.reporting.document import Section, Table
from service.reporting.escaping import escape_unprintable

if TYPE_CHECKING:
    from rich import table
    from rich.console import Console
    from rich.text import Text

    from service.cli.inputs import Refusal

MAX_WIDTH = 120

MAX_LISTED_REFUSALS = 20
"""How many refused records are listed one by one."""


def build_console(
    file: IO[str] | None = None, *, width: int | None = None, plain: bool = False, reading: bool = False
) -> Console:
    """Build a console that prints every text literally. `file` defaults to standard output; `plain` disables colours.

    `reading`: at most MAX_WIDTH columns wide.
    """
    from rich.console import Console  # noqa: PLC0415

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


def print_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    form: Literal["table", "json"] = "table",
    value: object = None,
) -> None:
    """Print a small table for a reader, its long cells folded; or as JSON `value`, by default the rows as objects.

    Without any column name there is no head.
    """
    listed = list(map(tuple, rows))
    objects = [dict(zip(head, row, strict=True)) for row in listed] if value is None else value
    print_document([Section(title, (Table(tuple(head), tuple(listed)),))], form, objects, reading=True)


def print_document(
    sections: Iterable[Section],
    form: Literal["table", "json", "markdown"],
    value: object,
    *,
    reading: bool = False,
) -> None:
    """Print a document on standard output as tables or Markdown, or as JSON the `value` that it shows.

    `reading`: at most MAX_WIDTH columns wide, so that prose and small tables read well.
    """
    if form == "table":
        show(sections, build_console(reading=reading))
        return
    from service.reporting.document import render_markdown  # noqa: PLC0415
    from service.reporting.summaries import render_json  # noqa: PLC0415

    text = render_markdown(sections) if form == "markdown" else render_json(value).decode() + "\n"
    sys.stdout.write(text)
    sys.stdout.flush()


def build_grid(
    rows: Iterable[Sequence[str | Text]], head: Sequence[str] = (), *, right: Sequence[bool] = ()
) -> table.Table:
    """Build a table without lines. Text is escaped; a `Text` keeps its style.

    `right`: for each column, whether it is right-aligned; every column then wraps, else only the last one does.
    """
    from rich import table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    listed = list(rows)
    grid = table.Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=any(head))
    size = len(listed[0]) if listed else 0
    for n in range(size):
        wraps = bool(right) or n == size - 1
        justify = "right" if right and right[n] else "left"
        grid.add_column(head[n] if head else "", justify=justify, no_wrap=not wraps, overflow="fold")
    for row in listed:
        grid.add_row(*[Text(escape_unprintable(cell)) if isinstance(cell, str) else cell for cell in row])
    return grid


def show(sections: Iterable[Section], console: Console) -> None:
    """Print sections as tables and lines."""
    from rich.text import Text  # noqa: PLC0415

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


def pluralize(count: int, noun: str, several: str = "") -> str:
    """Render a count with its noun.

    >>> pluralize(1, "trace"), pluralize(2, "trace"), pluralize(2, "reply", "replies")
    ('1 trace', '2 traces', '2 replies')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {several or noun + 's'}"


def print_refusal(refusal: Refusal, label: str = "error") -> None:
    """Print on standard error a record, identified by its line in the file, and what is wrong with it."""
    where, reason = escape_unprintable(str(refusal.place)), describe_error(refusal.error)
    print(f"{label}: {where}: {reason}", file=sys.stderr)  # noqa: T201


def print_refusals(refusals: Sequence[Refusal], label: str = "error", *, total: int | None = None) -> None:
    """Print the first refused records, and how many more there are of `total`."""
    for one in refusals[:MAX_LISTED_REFUSALS]:
        print_refusal(one, label)
    more = (len(refusals) if total is None else total) - MAX_LISTED_REFUSALS
    if more > 0:
        say(f"... and {pluralize(more, 'more record')}")
