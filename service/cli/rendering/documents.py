"""Print documents on a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich import table
from rich.console import Console
from rich.text import Text

from service.reporting.document import Cell, Section, Table
from service.reporting.escaping import escape_unprintable


def show(console: Console, sections: Iterable[Section]) -> None:
    """Print sections on a console."""
    for n, section in enumerate(sections):
        if n:
            console.print()
        console.print(Text(section.title, style="bold"))
        for one in section.tables:
            if one.rows:
                console.print(_build_grid(one))
        for line in (*section.text, *section.lines):
            console.print(Text(escape_unprintable(line)), soft_wrap=not console.is_terminal)


def _build_grid(table_model: Table) -> table.Table:
    grid = table.Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name, numeric in zip(table_model.head, table_model.list_numeric_columns(), strict=True):
        grid.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in table_model.rows:
        grid.add_row(*map(_render_cell, row))
    return grid


def _render_cell(cell: Cell) -> Text:
    return Text(escape_unprintable(cell if isinstance(cell, str) else cell.text))
