"""Reports as documents: sections of sentences, tables and links, which become Markdown or one HTML page."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from service.reporting.escaping import escape_markdown

if TYPE_CHECKING:
    from jinja2 import Template


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
        columns = zip(*self.rows, strict=True)
        return [all(isinstance(cell, str) and _NUMBER.fullmatch(cell) for cell in column) for column in columns]


class Curve(NamedTuple):
    """A line through points (x, y), both in [0, 1], and the colour that it is drawn in."""

    name: str
    points: tuple[tuple[float, float], ...]
    color: str


class Plot(NamedTuple):
    """Curves over two axes from 0 to 1, shown only in HTML."""

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its content: paragraphs, plots, tables, and a list of lines."""

    title: str
    tables: tuple[Table, ...] = ()
    lines: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    level: int = 3
    """The heading level, from 1."""
    plots: tuple[Plot, ...] = ()
    anchor: str = ""
    """The anchor that links lead to: lower-case letters, digits and hyphens."""
    folded: bool = False
    """Whether HTML shows only the heading until it is opened."""


def render_markdown(sections: Iterable[Section]) -> str:
    """Render the document; no text in it can break a table, make a link, or add any other markup."""
    return "\n\n".join([part for section in sections for part in _render_section(section)]) + "\n"


def _render_section(section: Section) -> Iterator[str]:
    anchor = f'<a id="{section.anchor}"></a>' if section.anchor else ""
    yield f"{'#' * section.level} {anchor}{escape_markdown(section.title)}"
    yield from map(escape_markdown, section.text)
    for table in section.tables:
        rule = ["---:" if numeric else "---" for numeric in table.list_numeric_columns()]
        head, *rows = [map(_render_cell, row) for row in (table.head, *table.rows)]
        if rows:
            yield "\n".join([f"| {' | '.join(row)} |" for row in (head, rule, *rows)])
    if section.lines:
        yield "\n".join([f"- {escape_markdown(line)}" for line in section.lines])


def _render_cell(cell: Cell) -> str:
    return f"[{escape_markdown(cell.text)}](#{cell.to})" if isinstance(cell, Link) else escape_markdown(cell)


# HTML.


@cache
def load_template(name: str) -> Template:
    """Load a template of this package."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 (load it only for the first page)

    loader = PackageLoader("service.reporting", "")
    options = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    return options.overlay(trim_blocks=True, lstrip_blocks=True).get_template(name)


def render_sections(sections: Iterable[Section]) -> str:
    """Render sections as HTML, for a page that has more."""
    return load_template("sections.html").render(sections=list(sections))


def render_page(title: str, sections: Iterable[Section]) -> str:
    """Render a whole page that needs no other file."""
    return build_page(title, render_sections(sections), style=load_template("page.css").render())


def build_page(title: str, body: str, *, style: str, script: str = "") -> str:
    """Build a page with inline style and script, and a policy that allows these two, inline images, and nothing else.

    `body` is HTML. `script` runs after the body has loaded.
    """

    def allow(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode('ascii')}'"

    scripts = allow(script) if script else "'none'"
    policy = f"default-src 'none'; style-src {allow(style)}; script-src {scripts}; img-src data:"
    return load_template("page.html").render(title=title, body=body, style=style, script=script, policy=policy)
