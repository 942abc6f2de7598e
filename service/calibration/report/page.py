"""The report as one HTML page that needs nothing else: no script, no other file."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from html import escape

from service.calibration.report.document import Cell, Link, ReportSection, ReportTable
from service.calibration.report.plots import draw_plots
from service.calibration.report.sections import render_sections
from service.calibration.results import CalibrationReport, JudgeReport

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c1c1c; max-width: 76rem; margin: 2rem auto; padding: 0 1.5rem; }
h1, h2, h3, h4 { line-height: 1.2; } h2 { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1.2rem; }
h4 { margin: 2rem 0 0; } h4:target { background: #fff3c4; } a { color: #1d4f8c; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: .8rem 0; font-size: 13px; }
th, td { text-align: left; vertical-align: top; padding: .3rem .7rem; border-bottom: 1px solid #e5e5e5; }
th { background: #f5f5f5; } .number { text-align: right; } td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
.many th, .many td { padding: .3rem .45rem; } .many .interval { display: block; color: #666; font-size: 11px; }
.parts td { white-space: pre-wrap; overflow-wrap: anywhere; } .parts td:first-child { white-space: nowrap; color: #666; }
img { min-width: 48rem; max-width: 100%; height: auto; } .missing { color: #666; font-style: italic; }
"""
MANY = 8
"""Columns from which on an interval stands below its figure, so that the table is no wider than the page."""


def render_page(report: CalibrationReport) -> str:
    """The whole page. Without matplotlib it has no plots and says so."""
    body = "\n".join(_render_section(one) for one in render_sections(report))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Calibration: {escape(report.source)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _render_section(section: ReportSection) -> str:
    anchor = f' id="{section.anchor}"' if section.anchor else ""
    parts = [f"<h{section.level}{anchor}>{escape(section.title)}</h{section.level}>"]
    parts += [f"<p>{escape(text)}</p>" for text in section.text]
    if section.judge:
        parts.append(_render_plots(section.judge))
    return "\n".join([*parts, *[_render_table(table) for table in section.tables]])


def _render_plots(judge: JudgeReport) -> str:
    try:
        svg = draw_plots(judge)
    except ImportError:
        return '<p class="missing">No plots: matplotlib is not installed (pip install "callgrade[calibration]").</p>'
    # As an image, so that names inside one plot cannot clash with those in another.
    data = b64encode(svg).decode("ascii")
    told = f"Reliability, values by label, and accuracy against coverage of {judge.name}; the tables below hold the numbers"
    return f'<div class="wide"><img alt="{escape(told)}" src="data:image/svg+xml;base64,{data}"></div>'


def _render_table(table: ReportTable) -> str:
    right = [_is_numeric([row[at] for row in table.rows]) for at in range(len(table.head))]
    head = "".join(_render_column(cell, numeric=numeric) for cell, numeric in zip(table.head, right, strict=True))
    rows = "\n".join(
        f"<tr>{''.join(_render_cell(cell, numeric=numeric) for cell, numeric in zip(row, right, strict=True))}</tr>"
        for row in table.rows
    )
    kind = "parts" if table.parts else "many" if len(table.head) > MANY else ""
    return (
        f'<div class="wide"><table class="{kind}">\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table></div>"
    )


_NUMBER = re.compile(r"-|-?\d[\d.]*(?P<interval> \[[^\]]*\])?(; (-|\d[\d.]*))?")


def _is_numeric(cells: Iterable[Cell]) -> bool:
    return all(isinstance(cell, str) and _NUMBER.fullmatch(cell) for cell in cells)


def _render_column(name: str, *, numeric: bool) -> str:
    return f'<th class="number">{escape(name)}</th>' if numeric else f"<th>{escape(name)}</th>"


def _render_cell(cell: Cell, *, numeric: bool) -> str:
    if isinstance(cell, Link):
        return f'<td><a href="#{cell.to}">{escape(cell.text)}</a></td>'
    if not numeric:
        return f"<td>{escape(cell)}</td>"
    figure, bracket, rest = cell.partition(" [")
    interval, closing, human = rest.partition("]")
    shown = f'{figure}{human}<span class="interval"> [{interval}]</span>' if bracket and closing else cell
    return f'<td class="number">{shown}</td>'
