"""The text in which a tool gives its result: JSON mostly, and what command lines, exports and gateways print.

>>> print(show({"site": "York", "open": True, "jobs": [{"id": 7, "at": {"town": "Hull"}}]}, "csv"))
site: York
open: true
<BLANKLINE>
id,at.town
7,Hull
"""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import yaml


def show(result: Any, form: str) -> str:
    """The result in a form: json, pretty, mcp, yaml, csv, columns, pipes or lines."""
    plain = {
        "json": lambda: json.dumps(result),
        "pretty": lambda: json.dumps(result, indent=2, ensure_ascii=False),
        "mcp": lambda: json.dumps({"content": [{"type": "text", "text": json.dumps(result)}], "isError": False}),
        "yaml": lambda: yaml.safe_dump(result, sort_keys=False, allow_unicode=True),
        "lines": lambda: "\n".join(_to_lines(result)),
    }
    return plain[form]() if form in plain else _show_records(result, form)


def _show_records(result: Any, form: str) -> str:
    """What is no list line by line, and the one list as a table."""
    listed = {key: value for key, value in result.items() if isinstance(value, list)}
    (records,) = listed.values()
    head = [f"{key}: {_to_cell(value)}" for key, value in result.items() if key not in listed]
    rows = [_flatten(record) for record in records]
    table = {"csv": _to_csv, "columns": _to_columns, "pipes": _to_pipes}[form](
        [list(rows[0]), *(list(r.values()) for r in rows)]
    )
    return "\n".join([*head, *([""] * bool(head)), table])


def _flatten(record: dict[str, Any], before: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in record.items():
        flat |= _flatten(value, f"{before}{key}.") if isinstance(value, dict) else {before + key: _to_cell(value)}
    return flat


def _to_cell(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else "" if value is None else str(value)


def _to_csv(rows: list[list[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().rstrip("\n")


def _to_columns(rows: list[list[str]]) -> str:
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    rows = [[head.upper() for head in rows[0]], *rows[1:]]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _to_pipes(rows: list[list[str]]) -> str:
    rows = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _to_lines(value: Any, indent: str = "") -> list[str]:
    """`Key: value`, with what is nested further in, and a dash before each record."""
    lines: list[str] = []
    for key, each in value.items():
        name = indent + str(key).replace("_", " ").capitalize()
        if isinstance(each, dict):
            lines += [f"{name}:", *_to_lines(each, indent + "  ")]
        elif isinstance(each, list):
            lines += [f"{name}: {'' if each else 'none'}".rstrip()]
            for record in each:
                first, *rest = _to_lines(record, indent + "    ")
                lines += [f"{indent}  - {first.lstrip()}", *rest]
        else:
            lines.append(f"{name}: {_to_cell(each)}")
    return lines
