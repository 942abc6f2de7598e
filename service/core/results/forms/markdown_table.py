"""Markdown tables: a header, a line of dashes, rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from service.core.results.form import Form, Stretch
from service.core.results.lines import Line, group_filled, iter_lines

MAX_COLUMNS = 100
_RULE = re.compile(r":?-+:?")


def find(text: str) -> Iterator[Stretch]:
    """Find each table and read it as an array of objects, one for each row; one with a second column `Value`, as one object."""
    if "|" not in text:
        return
    for run in group_filled(iter_lines(text)):
        yield from _find_in_run(run)


def _find_in_run(run: Sequence[Line]) -> Iterator[Stretch]:
    n = 1
    while n < len(run):
        head = _split_cells(run[n - 1].text)
        if not _is_rule(run[n].text, head):
            n += 1
            continue
        rows = _read_rows(run, n + 1, len(head)) if _names_columns(head) else []
        if rows:
            yield Stretch(run[n - 1].start, run[n + len(rows)].end, _build_value(head, rows))
        n += len(rows) + 2


def _split_cells(line: str) -> list[str]:
    return [cell.strip().strip("*`") for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def _is_rule(line: str, head: Sequence[str]) -> bool:
    cells = _split_cells(line) if "|" in line else []
    return len(cells) == len(head) and all(_RULE.fullmatch(cell) for cell in cells)


def _names_columns(head: Sequence[str]) -> bool:
    return 1 < len(head) <= MAX_COLUMNS and len(set(head)) == len(head)


def _read_rows(run: Sequence[Line], start: int, width: int) -> list[list[str]]:
    """Read the rows from line `start` on. It takes an index, since copying the rest for each of many tables is quadratic."""
    rows: list[list[str]] = []
    for n in range(start, len(run)):
        cells = _split_cells(run[n].text) if "|" in run[n].text else []
        if len(cells) != width:
            break
        rows.append(cells)
    return rows


def _build_value(head: Sequence[str], rows: Sequence[Sequence[str]]) -> JsonValue:
    if len(head) == 2 and head[1].casefold() == "value":
        return {row[0]: row[1] for row in rows}
    return [dict(zip(head, row, strict=True)) for row in rows]


FORM = Form("markdown_table", exact=False, rank=40, find=find)
