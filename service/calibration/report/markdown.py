"""The report as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

from service.calibration.report.document import Cell, Link, ReportSection, ReportTable
from service.calibration.report.sections import render_sections
from service.calibration.results import CalibrationReport

_MEANINGFUL = re.compile(r"[\\`*_{}\[\]<>#|~&!$]")


def render_markdown(report: CalibrationReport) -> str:
    """The whole report; what came with the labels can neither break a table nor make a link."""
    return "\n".join(_render_section(one) for one in render_sections(report))


def _render_section(section: ReportSection) -> str:
    anchor = f'<a id="{section.anchor}"></a>' if section.anchor else ""
    parts = [
        f"{'#' * section.level} {anchor}{escape_markdown(section.title)}",
        *[escape_markdown(text) for text in section.text],
    ]
    return "\n\n".join([*parts, *[_render_table(table) for table in section.tables]]) + "\n"


def _render_table(table: ReportTable) -> str:
    rule = "|".join(["---"] * len(table.head))
    return "\n".join([_render_row(table.head), f"|{rule}|", *[_render_row(row) for row in table.rows]])


def _render_row(cells: Iterable[Cell]) -> str:
    return "| " + " | ".join(_render_cell(cell) for cell in cells) + " |"


def _render_cell(cell: Cell) -> str:
    return f"[{escape_markdown(cell.text)}](#{cell.to})" if isinstance(cell, Link) else escape_markdown(cell)


def escape_markdown(text: str) -> str:
    r"""The text on one line, without the meaning that Markdown gives to characters.

    >>> escape_markdown("a|b\n<i>")
    'a\\|b \\<i\\>'
    """
    return _MEANINGFUL.sub(lambda found: "\\" + found[0], " ".join(text.split()))
