"""Keys with indented content, as YAML and many command-line tools print: nested objects and lists."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from pydantic import JsonValue

from service.core.results.form import Form, Stretch
from service.core.results.lines import Line, iter_lines

MAX_LINE_CHARS = 400
MAX_DEPTH = 20
MIN_PAIRS = 2
_LINE = re.compile(
    r"(?P<lead>[ ]{0,60})(?P<dash>-[ ]{1,3})?"
    r"(?:'?(?P<key>[A-Za-z_][\w ./()%#$&'-]{0,39}?)'?:(?:[ ]+(?P<value>\S.*)?)?|(?P<text>\S.*))"
)
_NULLS = {"null": None, "~": None}


class _Entry(NamedTuple):
    """A line, or the dash before one: its indentation and its content. A dash has no key and an empty text."""

    column: int
    key: str | None
    text: str
    is_dash: bool = False


def find(text: str) -> Iterator[Stretch]:
    """Find each run of such lines in which a key has other lines under it and at least two keys have values."""
    run: list[Line] = []
    for line in iter_lines(text):
        if line.text.strip() and not _fits(line):
            yield from _build(run)
            run = []
        elif line.text.strip():
            run.append(line)
    yield from _build(run)


def _fits(line: Line) -> bool:
    return len(line.text) <= MAX_LINE_CHARS and _LINE.fullmatch(line.text.rstrip()) is not None


def _build(run: Sequence[Line]) -> Iterator[Stretch]:
    entries = [entry for line in run for entry in _read_line(line.text.rstrip())]
    first = next((n for n, one in enumerate(entries) if one.key is not None), None)
    pairs = sum(one.key is not None and bool(one.text) for one in entries)
    if first is None or pairs < MIN_PAIRS or not _is_nested(entries) or 2 * pairs < len(run):
        return
    value, end = _parse(entries, 0, 0)
    if end == len(entries) and isinstance(value, dict | list):
        yield Stretch(run[0].start, run[-1].end, value)


def _read_line(text: str) -> Iterator[_Entry]:
    match = _LINE.fullmatch(text)
    if match is None:
        return
    column = len(match["lead"])
    if match["dash"]:
        yield _Entry(column, None, "", is_dash=True)
        column += len(match["dash"])
    yield _Entry(column, match["key"], (match["value"] if match["key"] else match["text"]) or "")


def _is_nested(entries: Sequence[_Entry]) -> bool:
    """Whether a key without a value has an entry under it."""
    return any(
        one.key is not None and not one.text and (other.column > one.column or other.is_dash)
        for one, other in pairwise(entries)
    )


def _parse(entries: Sequence[_Entry], at: int, depth: int) -> tuple[JsonValue, int]:
    """Parse the entries from an index on that are indented as far as the first; return their value and the index after them."""
    if depth > MAX_DEPTH:
        return None, at
    first = entries[at]
    if first.is_dash:
        return _parse_list(entries, at, depth)
    if first.key is None:
        return first.text, at + 1
    found: dict[str, JsonValue] = {}
    column = first.column
    while (
        at < len(entries) and (here := entries[at]).column == column and here.key is not None and here.key not in found
    ):
        at += 1
        inside = at < len(entries) and (
            entries[at].column > column or (entries[at].is_dash and entries[at].column == column)
        )
        if here.text or not inside:
            found[here.key] = _read_value(here.text)
        else:
            found[here.key], at = _parse(entries, at, depth + 1)
    return found, at


def _parse_list(entries: Sequence[_Entry], at: int, depth: int) -> tuple[JsonValue, int]:
    items: list[JsonValue] = []
    column = entries[at].column
    while at + 1 < len(entries) and entries[at].is_dash and entries[at].column == column:
        item, at = _parse(entries, at + 1, depth + 1)
        items.append(item)
    return items, at


def _read_value(text: str) -> JsonValue:
    bare = text.strip("`*\"'")
    return [] if text == "[]" else _NULLS.get(bare, bare or None)


FORM = Form("indented", exact=False, rank=70, find=find)
