"""The report as one HTML page that needs nothing else: no script, no other file."""

from __future__ import annotations

from base64 import b64encode
from html import escape

from service.calibrating.plots import plots
from service.calibrating.results import CalibrationReport, JudgeReport
from service.calibrating.sections import Section, Table, sections

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c1c1c; max-width: 76rem; margin: 2rem auto; padding: 0 1.5rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1.2rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: .8rem 0; font-size: 13px; }
th, td { text-align: left; vertical-align: top; padding: .3rem .7rem; border-bottom: 1px solid #e5e5e5; }
th { background: #f5f5f5; } td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
img { max-width: 100%; height: auto; } .missing { color: #666; font-style: italic; }
"""


def page(report: CalibrationReport) -> str:
    """The whole page. Without matplotlib it has no plots and says so."""
    body = "\n".join(_section(one) for one in sections(report))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Calibration: {escape(report.source)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _section(section: Section) -> str:
    parts = [f"<h{section.level}>{escape(section.title)}</h{section.level}>"]
    parts += [f"<p>{escape(text)}</p>" for text in section.text]
    if section.judge:
        parts.append(_plots(section.judge))
    return "\n".join([*parts, *[_table(table) for table in section.tables]])


def _plots(judge: JudgeReport) -> str:
    try:
        svg = plots(judge)
    except ImportError:
        return '<p class="missing">No plots: matplotlib is not installed (pip install "callgrade[calibration]").</p>'
    # As an image, so that names inside one plot cannot clash with those in another.
    data = b64encode(svg).decode("ascii")
    told = f"Reliability, values by label, and accuracy against coverage of {judge.name}; the tables below hold the numbers"
    return f'<img alt="{escape(told)}" src="data:image/svg+xml;base64,{data}">'


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.head)
    rows = "\n".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in table.rows)
    return f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>'


def _cell(cell: str) -> str:
    number = bool(cell) and (cell == "-" or cell[0].isdigit() or cell[:2] == "-0") and len(cell) < 32
    return f'<td class="number">{escape(cell)}</td>' if number else f"<td>{escape(cell)}</td>"
