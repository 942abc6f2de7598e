"""Comma-separated text with a header, and text separated by tabs or semicolons."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from service.core.results.form import Form, Stretch
from service.core.results.lines import Line, group_filled, iter_lines

MAX_ROWS = 2_000
_NAME = re.compile(r"[\w ./()%#$&*°:'-]{1,60}")
_COMMENT = re.compile(r"#[ ]{0,4}([^:\n]{1,40}):[ ]{0,4}([^\n]{1,300})")
_DELIMITERS = (",", "\t", ";")


def find(text: str) -> Iterator[Stretch]:
    """Find each table and read it as an array of objects, one for each row: lines of equally many cells under distinct names.

    `# name: value` lines above it are an object of their own. With fewer than two rows the header must look like one, since
    sentences have commas too.
    """
    if "\n" in text:
        for run in group_filled(iter_lines(text)):
            yield from _read_run(run)


def _read_run(run: Sequence[Line]) -> Iterator[Stretch]:
    comments = [line for line in run if line.text.startswith("#")]
    lines = [line for line in run if not line.text.startswith("#")]
    rows = _read_rows(lines[: MAX_ROWS + 1])
    if rows is None:
        return
    notes: dict[str, JsonValue] = {m[1]: m[2] for line in comments if (m := _COMMENT.fullmatch(line.text))}
    if notes and comments[-1].start < lines[0].start:
        yield Stretch(comments[0].start, comments[-1].end, notes)
    yield Stretch(lines[0].start, lines[-1].end, rows)


def _read_rows(lines: Sequence[Line]) -> list[JsonValue] | None:
    """Read the rows as objects; None where the lines are not a table."""
    if len(lines) < 2:
        return None
    delimiter = next((delimiter for delimiter in _DELIMITERS if delimiter in lines[0].text), None)
    rows = None if delimiter is None else _split_rows([line.text for line in lines], delimiter)
    if rows is None or not _is_head(rows[0], few=len(rows) < 3):
        return None
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def _split_rows(lines: Sequence[str], delimiter: str) -> list[list[str]] | None:
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter, strict=True)]
    except csv.Error:
        return None
    return rows if len(rows) == len(lines) and all(len(row) == len(rows[0]) > 1 for row in rows) else None


def _is_head(names: Sequence[str], *, few: bool) -> bool:
    if len(set(names)) < len(names) or not all(_NAME.fullmatch(name) for name in names):
        return False
    return not few or all(name.replace("_", "a").isalpha() and name.islower() for name in names)


FORM = Form("csv", exact=False, rank=50, find=find, anywhere=True)
