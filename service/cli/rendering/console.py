"""The two streams, as rich consoles. Text of a trace is never markup, and reaches no terminal unescaped."""

from __future__ import annotations

import os
import sys
from typing import IO, TYPE_CHECKING

from service.reporting.escaping import escape_unprintable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from service.core.scores import Verdict

WIDEST = 120

STYLES: dict[str, str] = {
    "pass": "green",
    "warn": "yellow",
    "fail": "bold red",
    "abstain": "magenta",
    "not_applicable": "dim",
}


def console(file: IO[str] | None = None, *, width: int | None = None, plain: bool = False) -> Console:
    """A console that takes every text literally. `file` defaults to standard output; `plain`: without colours, always."""
    from rich.console import Console  # noqa: PLC0415 (every command imports this module)

    stream, is_terminal = file or sys.stdout, False if plain else None
    if width is None and not stream.isatty() and "COLUMNS" not in os.environ:
        width = WIDEST  # a log is no terminal of 80 columns
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False, force_terminal=is_terminal)


def reading_console() -> Console:
    """Standard output for prose and small tables: no wider than reads well."""
    found = console()
    return console(width=min(found.width, WIDEST))


def error_console() -> Console:
    """Standard error."""
    return console(sys.stderr)


def say(text: str) -> None:
    """A line on standard error, whole: lines are for reading and for grep."""
    error_console().print(escape_unprintable(text), soft_wrap=True)


def warn(text: str) -> None:
    """A line on standard error that says something is odd."""
    say(f"warning: {text}")


def verdict_text(verdict: Verdict) -> Text:
    """The verdict in its colour; not_applicable in short."""
    from rich.text import Text  # noqa: PLC0415 (likewise)

    return Text("n/a" if verdict == "not_applicable" else verdict, style=STYLES[verdict])


def number(value: float | None) -> str:
    """A score as people read it, with no false 1.00: rounding never reaches a whole that was not measured.

    >>> number(0.999), number(1.0), number(0.001), number(None)
    ('0.99', '1.00', '0.01', '-')
    """
    if value is None:
        return "-"
    shown = round(value, 2)
    if shown in (0.0, 1.0) and shown != value:
        shown = 0.01 if shown == 0.0 else 0.99
    return f"{shown:.2f}"


def share(value: float | None) -> str:
    """A coverage in per cent.

    >>> share(1.0), share(0.996), share(None)
    ('100%', '99%', '-')
    """
    return "-" if value is None else f"{int(value * 100 + 1e-9)}%"


def plural(count: int, noun: str, several: str = "") -> str:
    """A count with its noun.

    >>> plural(1, "trace"), plural(2, "trace"), plural(2, "reply", "replies")
    ('1 trace', '2 traces', '2 replies')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {several or noun + 's'}"
