"""The parts that reports are made of, shown on a terminal, in Markdown or in HTML: sections of sentences, tables and links."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Link(NamedTuple):
    """A text that links to a section of the same document."""

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
    """Rows of text below a header. A table without rows is not shown."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def list_numeric_columns(self) -> Sequence[bool]:
        """For each column, whether it holds only numbers, with or without intervals: such columns are right-aligned.

        >>> Table(
        ...     ("by", "kappa", "to halve it"), (("all", "0.71 [0.60, 0.80]", "12 more"), ("b", "-", "-"))
        ... ).list_numeric_columns()
        [False, True, True]
        """
        return [all(map(_is_number, column)) for column in zip(*self.rows, strict=True)]


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, str) and _NUMBER.fullmatch(cell) is not None


class Figure(NamedTuple):
    """A drawing, shown only in HTML."""

    draw: Callable[[], bytes]
    """Returns the drawing as SVG. ImportError where the library that draws it is not installed."""
    alt: str
    missing: str
    """The text in its place where it cannot be drawn."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its content: paragraphs, a drawing, tables, and a list of lines."""

    title: str
    tables: tuple[Table, ...] = ()
    lines: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    level: int = 3
    """The heading level, from 1."""
    figure: Figure | None = None
    anchor: str = ""
    """The anchor that links lead to: lower-case letters, digits and hyphens."""
    folded: bool = False
    """Whether HTML shows only the heading until it is opened."""
