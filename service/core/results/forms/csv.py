"""Comma-separated text with a head, and text that tabs or semicolons separate."""

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
_MARKS = (",", "\t", ";")


def find(text: str) -> Iterator[Stretch]:
    """Each table as an array of objects, a row each: lines of as many cells under a head of different names.

    `# name: value` lines above are an object of their own. With fewer than two rows the head must look like one, since
    sentences have commas too.
    """
    if "\n" in text:
        for run in group_filled(iter_lines(text)):
            yield from _read_run(run)


def _read_run(run: Sequence[Line]) -> Iterator[Stretch]:
    notes = [line for line in run if line.text.startswith("#")]
    lines = [line for line in run if not line.text.startswith("#")]
    rows = _read_rows(lines[: MAX_ROWS + 1])
    if rows is None:
        return
    told: dict[str, JsonValue] = {m[1]: m[2] for line in notes if (m := _COMMENT.fullmatch(line.text))}
    if told and notes[-1].start < lines[0].start:
        yield Stretch(notes[0].start, notes[-1].end, told)
    yield Stretch(lines[0].start, lines[-1].end, rows)


def _read_rows(lines: Sequence[Line]) -> list[JsonValue] | None:
    """The rows as objects; None where the lines are no table."""
    if len(lines) < 2:
        return None
    mark = next((mark for mark in _MARKS if mark in lines[0].text), None)
    rows = None if mark is None else _split_rows([line.text for line in lines], mark)
    if rows is None or not _is_head(rows[0], few=len(rows) < 3):
        return None
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def _split_rows(lines: Sequence[str], mark: str) -> list[list[str]] | None:
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=mark, strict=True)]
    except csv.Error:
        return None
    return rows if len(rows) == len(lines) and all(len(row) == len(rows[0]) > 1 for row in rows) else None


def _is_head(names: Sequence[str], *, few: bool) -> bool:
    if len(set(names)) < len(names) or not all(_NAME.fullmatch(name) for name in names):
        return False
    return not few or all(name.replace("_", "a").isalpha() and name.islower() for name in names)


FORM = Form("csv", exact=False, rank=50, find=find, anywhere=True)
