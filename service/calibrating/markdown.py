"""The report as Markdown."""

from __future__ import annotations

import re

from service.calibrating.results import CalibrationReport
from service.calibrating.sections import Section, Table, sections

_MEANINGFUL = re.compile(r"[\\`*_{}\[\]<>#|~&!$]")


def markdown(report: CalibrationReport) -> str:
    """The whole report; what came with the labels can neither break a table nor make a link."""
    return "\n".join(_section(one) for one in sections(report))


def _section(section: Section) -> str:
    parts = [f"{'#' * section.level} {escaped(section.title)}", *[escaped(text) for text in section.text]]
    return "\n\n".join([*parts, *[_table(table) for table in section.tables]]) + "\n"


def _table(table: Table) -> str:
    rule = "|".join(["---"] * len(table.head))
    return "\n".join([_row(table.head), f"|{rule}|", *[_row(row) for row in table.rows]])


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(escaped(cell) for cell in cells) + " |"


def escaped(text: str) -> str:
    r"""The text on one line, without the meaning that Markdown gives to characters.

    >>> escaped("a|b\n<i>")
    'a\\|b \\<i\\>'
    """
    return _MEANINGFUL.sub(lambda found: "\\" + found[0], " ".join(text.split()))
