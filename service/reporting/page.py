"""Documents as one HTML page that needs no other file."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from html import escape

from service.reporting.document import Cell, Figure, Link, Section, Table

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c1c1c; max-width: 76rem; margin: 2rem auto; padding: 0 1.5rem; }
h1, h2, h3, h4 { line-height: 1.2; } h2 { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1.2rem; }
h4 { margin: 2rem 0 0; } h4:target { background: #fff3c4; } a { color: #1d4f8c; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: .8rem 0; font-size: 13px; }
th, td { text-align: left; vertical-align: top; padding: .3rem .7rem; border-bottom: 1px solid #e5e5e5; }
th { background: #f5f5f5; } .number { text-align: right; } td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
.many th, .many td { padding: .3rem .45rem; } .many .interval { display: block; color: #666; font-size: 11px; }
summary { cursor: pointer; margin: .8rem 0; } summary h3, summary h4 { display: inline; margin: 0; font-size: 1.05em; }
img { min-width: 48rem; max-width: 100%; height: auto; } .missing { color: #666; font-style: italic; }
"""
MAX_PLAIN_COLUMNS = 8
"""From this many columns on, an interval stands below its figure, so that the table is no wider than the page."""


def render_page(title: str, sections: Iterable[Section]) -> str:
    """Render the whole page. Where a drawing cannot be made, the page says so."""
    return build_document(title, render_sections(sections), style=_STYLE)


def render_sections(sections: Iterable[Section]) -> str:
    """Render only the sections, for a page that has more."""
    return "\n".join([_render_section(one) for one in sections])


def build_document(title: str, body: str, *, style: str, script: str = "") -> str:
    """Build a page with inline style and script, and a policy that allows these two, inline images, and nothing else.

    `body` is HTML. `script` runs after the body has loaded.
    """
    policy = [
        "default-src 'none'",
        f"style-src {_digest(style)}",
        "script-src " + (_digest(script) if script else "'none'"),
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="content-security-policy" content="{"; ".join(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n{body}\n{f'<script>{script}</script>' if script else ''}</body>\n</html>\n"
    )


def _digest(text: str) -> str:
    """Return the CSP source that allows exactly this text."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode('ascii')}'"


def _render_section(section: Section) -> str:
    anchor = f' id="{section.anchor}"' if section.anchor else ""
    head = f"<h{section.level}{anchor}>{escape(section.title)}</h{section.level}>"
    body = "\n".join(_list_parts(section))
    return f"<details><summary>{head}</summary>\n{body}\n</details>" if section.folded else f"{head}\n{body}"


def _list_parts(section: Section) -> list[str]:
    parts = [f"<p>{escape(text)}</p>" for text in section.text]
    parts += [_render_figure(section.figure)] if section.figure else []
    parts += [_render_table(table) for table in section.tables if table.rows]
    if section.lines:
        parts.append(f"<ul>{''.join([f'<li>{escape(line)}</li>' for line in section.lines])}</ul>")
    return parts


def _render_figure(figure: Figure) -> str:
    try:
        svg = figure.draw()
    except ImportError:
        return f'<p class="missing">{escape(figure.missing, quote=False)}</p>'
    # Embedded as an image, so that ids in one drawing cannot clash with those in another.
    data = b64encode(svg).decode("ascii")
    return f'<div class="wide"><img alt="{escape(figure.alt)}" src="data:image/svg+xml;base64,{data}"></div>'


def _render_table(table: Table) -> str:
    right = table.list_numeric_columns()
    head = "".join(_render_column(cell, numeric=numeric) for cell, numeric in zip(table.head, right, strict=True))
    rows = "\n".join(
        f"<tr>{''.join(_render_cell(cell, numeric=numeric) for cell, numeric in zip(row, right, strict=True))}</tr>"
        for row in table.rows
    )
    kind = "many" if len(table.head) > MAX_PLAIN_COLUMNS else ""
    return (
        f'<div class="wide" tabindex="0"><table class="{kind}">\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table></div>"
    )


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
