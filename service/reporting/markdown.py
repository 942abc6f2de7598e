"""Documents as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from service.reporting.document import Cell, Link, Section, Table
from service.reporting.escaping import escape_markdown


def render_markdown(sections: Iterable[Section]) -> str:
    """Render the document; no text in it can break a table, make a link, or add any other markup."""
    return "\n\n".join([part for section in sections for part in _render_section(section)]) + "\n"


def _render_section(section: Section) -> Iterator[str]:
    anchor = f'<a id="{section.anchor}"></a>' if section.anchor else ""
    yield f"{'#' * section.level} {anchor}{escape_markdown(section.title)}"
    yield from map(escape_markdown, section.text)
    yield from [_render_table(table) for table in section.tables if table.rows]
    if section.lines:
        yield "\n".join([f"- {escape_markdown(line)}" for line in section.lines])


def _render_table(table: Table) -> str:
    rule = ["---:" if numeric else "---" for numeric in table.list_numeric_columns()]
    head, *rows = [map(_render_cell, row) for row in (table.head, *table.rows)]
    return "\n".join([f"| {' | '.join(row)} |" for row in (head, rule, *rows)])


def _render_cell(cell: Cell) -> str:
    return f"[{escape_markdown(cell.text)}](#{cell.to})" if isinstance(cell, Link) else escape_markdown(cell)
