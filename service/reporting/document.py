"""What reports are made of, whether a terminal, Markdown or HTML shows them: sections of sentences, tables and links."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Link(NamedTuple):
    """A text that leads to a section of the same document."""

    text: str
    to: str
    """The anchor of that section."""


Cell = str | Link

_FIGURE = r"[-+]?\d[\d.]*%?"
_NUMBER = re.compile(
    rf"-|(open \d+: )?{_FIGURE}( to {_FIGURE}| more)?( \[[^\]]*\]| \([^)]*\))?([;,] (-|{_FIGURE}|open .*))?"
)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text beneath a head. A table without rows is not shown."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    parts: bool = False
    """Whether the rows are the parts of one thing, with texts as they were written."""

    def find_numeric(self) -> Sequence[bool]:
        """By column whether it holds numbers alone, with intervals or without: such a column stands to the right.

        >>> Table(
        ...     ("by", "kappa", "to halve it"), (("all", "0.71 [0.60, 0.80]", "12 more"), ("b", "-", "-"))
        ... ).find_numeric()
        [False, True, True]
        """
        return [all(map(_is_number, column)) for column in zip(*self.rows, strict=True)]


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, str) and _NUMBER.fullmatch(cell) is not None


class Figure(NamedTuple):
    """A drawing, which HTML alone shows."""

    draw: Callable[[], bytes]
    """Gives it as SVG. ImportError where what draws it is not installed."""
    alt: str
    missing: str
    """What is said in its place where it cannot be drawn."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with what stands below it: paragraphs, a drawing, tables, and lines that say one thing each."""

    title: str
    tables: tuple[Table, ...] = ()
    lines: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    level: int = 3
    """How deep the heading stands, from 1."""
    figure: Figure | None = None
    anchor: str = ""
    """What links lead to it by: small letters, digits and hyphens."""
    folded: bool = False
    """Whether HTML shows the heading alone until it is opened."""
