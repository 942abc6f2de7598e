"""The report as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

from service.calibrating.layout import Cell, Link, Section, Table
from service.calibrating.results import CalibrationReport
from service.calibrating.sections import sections

_MEANINGFUL = re.compile(r"[\\`*_{}\[\]<>#|~&!$]")


def markdown(report: CalibrationReport) -> str:
    """The whole report; what came with the labels can neither break a table nor make a link."""
    return "\n".join(_section(one) for one in sections(report))


def _section(section: Section) -> str:
    anchor = f'<a id="{section.anchor}"></a>' if section.anchor else ""
    parts = [f"{'#' * section.level} {anchor}{escaped(section.title)}", *[escaped(text) for text in section.text]]
    return "\n\n".join([*parts, *[_table(table) for table in section.tables]]) + "\n"


def _table(table: Table) -> str:
    rule = "|".join(["---"] * len(table.head))
    return "\n".join([_row(table.head), f"|{rule}|", *[_row(row) for row in table.rows]])


def _row(cells: Iterable[Cell]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(cell: Cell) -> str:
    return f"[{escaped(cell.text)}](#{cell.to})" if isinstance(cell, Link) else escaped(cell)


def escaped(text: str) -> str:
    r"""The text on one line, without the meaning that Markdown gives to characters.

    >>> escaped("a|b\n<i>")
    'a\\|b \\<i\\>'
    """
    return _MEANINGFUL.sub(lambda found: "\\" + found[0], " ".join(text.split()))
