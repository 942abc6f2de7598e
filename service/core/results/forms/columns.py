"""Tables with aligned columns, as command-line tools print them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from service.core.results.form import Form, Stretch
from service.core.results.lines import Line, group_filled, iter_lines

MIN_COLUMNS = 3
MAX_COLUMNS = 60
MAX_LINE_CHARS = 2_000
_HEAD = re.compile(r"[A-Za-z_#%][^\s]*(?: [^\s]+)*")


def find(text: str) -> Iterator[Stretch]:
    """Find each run of lines under a line of headings, with two or more spaces before each column."""
    for run in group_filled(iter_lines(text)):
        starts = _find_starts(run[0].text) if len(run) > 1 else []
        if len(starts) >= MIN_COLUMNS and all(_is_aligned(line, starts) for line in run):
            rows: list[JsonValue] = [*_iter_rows(run, starts)]
            yield Stretch(run[0].start, run[-1].end, rows)


def _find_starts(head: str) -> list[int]:
    if len(head) > MAX_LINE_CHARS or head[:1].isspace():
        return []
    heads = list(_HEAD.finditer(head))
    spaced = all(head[one.start() - 2 : one.start()] == "  " for one in heads[1:])
    numbers = [one for one in heads if one.group().isdigit()]
    return [one.start() for one in heads] if spaced and not numbers and len(heads) <= MAX_COLUMNS else []


def _is_aligned(line: Line, starts: Sequence[int]) -> bool:
    """Whether the cells of a line begin where the columns do."""
    inside = [start for start in starts[1:] if start < len(line.text)]
    return len(line.text) <= MAX_LINE_CHARS and bool(inside) and all(line.text[n - 2 : n] == "  " for n in inside)


def _iter_rows(run: Sequence[Line], starts: Sequence[int]) -> Iterator[dict[str, JsonValue]]:
    ends = [*starts[1:], MAX_LINE_CHARS]
    heads = [run[0].text[a:b].strip() for a, b in zip(starts, ends, strict=True)]
    for line in run[1:]:
        cells: list[JsonValue] = [line.text[a:b].strip() or None for a, b in zip(starts, ends, strict=True)]
        yield dict(zip(heads, cells, strict=True))


FORM = Form("columns", exact=False, rank=55, find=find)
