"""Standard output and standard error as rich consoles. Text from traces is never markup, and is escaped for terminals."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING

from service.reporting.escaping import escape_unprintable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from service.core.scores import Verdict

MAX_WIDTH = 120

STYLES: dict[str, str] = {
    "pass": "green",
    "warn": "yellow",
    "fail": "bold red",
    "undecided": "magenta",
    "not_applicable": "dim",
}


def build_console(file: IO[str] | None = None, *, width: int | None = None, plain: bool = False) -> Console:
    """Build a console that prints every text literally. `file` defaults to standard output; `plain` disables colours."""
    from rich.console import Console  # noqa: PLC0415 (every command imports this module)

    stream, is_terminal = file or sys.stdout, False if plain else None
    if width is None and not stream.isatty() and "COLUMNS" not in os.environ:
        width = MAX_WIDTH  # a log need not be as narrow as a terminal
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False, force_terminal=is_terminal)


def build_reading_console() -> Console:
    """Build a console on standard output for prose and small tables, at most MAX_WIDTH columns wide so that it reads well."""
    return build_console(width=min(build_console().width, MAX_WIDTH))


def build_error_console() -> Console:
    """Build a console on standard error."""
    return build_console(sys.stderr)


def say(text: str) -> None:
    """Print a line on standard error, unwrapped, so that grep finds it."""
    build_error_console().print(escape_unprintable(text), soft_wrap=True)


def warn(text: str) -> None:
    """Print a warning on standard error."""
    say(f"warning: {text}")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a small table for a reader on standard output; a long cell is folded. Without any column name there is no head."""
    from rich.table import Table  # noqa: PLC0415 (every command imports this module)
    from rich.text import Text  # noqa: PLC0415 (likewise)

    head = any(columns)
    table = Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_header=head)
    for row in rows:
        table.add_row(*[Text(escape_unprintable(cell), overflow="fold") for cell in row])
    build_reading_console().print(table)


def render_verdict(verdict: Verdict) -> Text:
    """Render a verdict in its colour; not_applicable as n/a."""
    from rich.text import Text  # noqa: PLC0415 (every command imports this module)

    return Text("n/a" if verdict == "not_applicable" else verdict, style=STYLES[verdict])


def pluralize(count: int, noun: str, several: str = "") -> str:
    """Render a count with its noun.

    >>> pluralize(1, "trace"), pluralize(2, "trace"), pluralize(2, "reply", "replies")
    ('1 trace', '2 traces', '2 replies')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {several or noun + 's'}"
