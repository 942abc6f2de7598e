"""The forms that structure takes in a text: JSON, tables with a header, and `key: value` lines.

A finder returns the stretches of a text that have its form, in order and not overlapping. It takes time linear in the text and
never raises.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.parsing import parse_or_none


class Stretch(NamedTuple):
    """A stretch of a text, from `start` up to `end` (characters, from 0), and the value that it spells."""

    start: int
    end: int
    value: JsonValue


class Form(NamedTuple):
    """A form. `exact`: it is JSON found whole, which can prove; other structure is inferred and can only raise a suspicion."""

    name: str
    exact: bool
    find: Callable[[str], Iterable[Stretch]]
    anywhere: bool = False
    """Whether to search for it in any text of a JSON result, not only in the texts that are its body."""


class _Line(NamedTuple):
    """A line without its line break, and the position where it starts."""

    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def _iter_lines(text: str) -> Iterator[_Line]:
    start = 0
    for line in text.split("\n"):
        yield _Line(start, line.removesuffix("\r"))
        start += len(line) + 1


# JSON.


def _find_json(text: str) -> Iterator[Stretch]:
    """Return the whole text, apart from white space around it. A bare number or string is not structure."""
    value = parse_or_none(text) if text.lstrip().startswith(("{", "[")) else None
    if value is not None:
        yield Stretch(0, len(text), value)


def _find_json_lines(text: str) -> Sequence[Stretch]:
    """Find the objects, if there are two or more and each has a line of its own (NDJSON)."""
    found = list(_find_json_in_text(text)) if "\n" in text else []
    return found if len(found) > 1 and all(_is_line(text, one) for one in found) else ()


MAX_BLANKS = 200
"""Characters after an object in which the end of its line is searched for."""


def _is_line(text: str, one: Stretch) -> bool:
    before = text[text.rfind("\n", 0, one.start) + 1 : one.start]
    after = text[one.end : one.end + MAX_BLANKS].partition("\n")[0]
    return not before.strip() and not after.strip() and "\n" not in text[one.start : one.end]


_START = re.compile(r'\{\s*+"|\[\s*+\{\s*+"')
"""The beginning of an object with a member, or of an array of such: `[1]` in prose is a footnote."""
_BRACKET_OR_STRING = re.compile(r'[{}\[\]]|"(?:[^"\\]++|\\.)*+"|"', re.DOTALL)


def _find_json_in_text(text: str) -> Iterator[Stretch]:
    """Find every complete object, or array of objects. Stop at one that does not end: anything inside it is only a part.

    Each character is visited at most twice, however deep the nesting or however many brackets stay open.
    """
    position = 0
    while (start := _START.search(text, position)) is not None:
        end = _find_end(text, start.start())
        if end is None:
            return
        value = parse_or_none(text[start.start() : end])
        if value is not None:
            yield Stretch(start.start(), end, value)
        position = end


def _find_end(text: str, start: int) -> int | None:
    """Find the position after the bracket that closes the one at `start`; None where it is never closed."""
    depth = 0
    for match in _BRACKET_OR_STRING.finditer(text, start):
        piece = match.group()
        if piece == '"':  # a string that does not end
            return None
        depth += (piece in "{[") - (piece in "}]")
        if depth == 0:
            return match.end()
    return None


# Tables.

MAX_COLUMNS = 100
MAX_ROWS = 2_000
_RULE = re.compile(r":?-+:?")
_NAME = re.compile(r"[\w ./()%#$&*°:'-]{1,60}")


def _group_filled(lines: Iterable[_Line]) -> Iterator[Sequence[_Line]]:
    run: list[_Line] = []
    for line in lines:
        if line.text.strip():
            run.append(line)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _find_markdown(text: str) -> Iterator[Stretch]:
    """Find each table and read it as an array of objects, one for each row; one with a second column `Value`, as one object."""
    for run in _group_filled(_iter_lines(text)) if "|" in text else ():
        n = 1
        while n < len(run):
            head = _split_cells(run[n - 1].text)
            rule = _split_cells(run[n].text) if "|" in run[n].text else []
            if len(rule) != len(head) or not all(map(_RULE.fullmatch, rule)):
                n += 1
                continue
            rows = _read_rows(run, n + 1, len(head)) if 1 < len(set(head)) == len(head) <= MAX_COLUMNS else []
            if rows:
                is_object = len(head) == 2 and head[1].casefold() == "value"
                value: JsonValue = {row[0]: row[1] for row in rows} if is_object else _name_cells(head, rows)
                yield Stretch(run[n - 1].start, run[n + len(rows)].end, value)
            n += len(rows) + 2


def _split_cells(line: str) -> list[str]:
    return [cell.strip().strip("*`") for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def _read_rows(run: Sequence[_Line], start: int, width: int) -> list[list[str]]:
    """Read the rows from line `start` on. It takes an index, since copying the rest for each of many tables is quadratic."""
    rows: list[list[str]] = []
    for n in range(start, len(run)):
        cells = _split_cells(run[n].text) if "|" in run[n].text else []
        if len(cells) != width:
            break
        rows.append(cells)
    return rows


def _name_cells(head: Sequence[str], rows: Iterable[Sequence[str]]) -> JsonValue:
    return [dict(zip(head, row, strict=True)) for row in rows]


def _find_csv(text: str) -> Iterator[Stretch]:
    """Find each table and read it as an array of objects, one for each row: lines of equally many cells under distinct names.

    Cells are separated by commas, tabs or semicolons; lines that begin with # do not count. With fewer than two rows the header
    must look like one, since sentences have commas too.
    """
    for run in _group_filled(_iter_lines(text)) if "\n" in text else ():
        lines = [line for line in run if not line.text.startswith("#")]
        delimiter = next((one for one in ",\t;" if one in lines[0].text), None) if len(lines) > 1 else None
        rows = None if delimiter is None else _split_rows([line.text for line in lines[: MAX_ROWS + 1]], delimiter)
        if rows is not None and _is_head(rows[0], few=len(rows) < 3):
            yield Stretch(lines[0].start, lines[-1].end, _name_cells(rows[0], rows[1:]))


def _split_rows(lines: Sequence[str], delimiter: str) -> list[list[str]] | None:
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter, strict=True)]
    except csv.Error:
        return None
    return rows if len(rows) == len(lines) and all(len(row) == len(rows[0]) > 1 for row in rows) else None


def _is_head(names: Sequence[str], *, few: bool) -> bool:
    if len(set(names)) < len(names) or not all(map(_NAME.fullmatch, names)):
        return False
    return not few or all(name.replace("_", "a").isalpha() and name.islower() for name in names)


# Lines.

MAX_LINE_CHARS = 400
MAX_KEY_WORDS = 5
_LEAD = r"[ \t]{0,12}(?:[-*+\u2022][ \t]{1,3})?(?:\*\*|__|`)?"
_PAIR = re.compile(
    _LEAD + r"'?(?P<key>[A-Za-z_][\w ./()%#$&'-]{0,39}?)'?"
    r"(?:(?:\*\*|__|`)?[ \t]{0,20}(?::(?:\*\*|__)?[ \t]{1,40}|[ \t]=[ \t]|=(?!=))|:(?=[^\s/:]))[ \t]{0,20}(?P<value>\S.*)"
)

_Pair = tuple[_Line, str, str]


def _find_key_values(text: str) -> Iterator[Stretch]:
    """Find each run of two or more `key: value` lines; blank lines between them do not matter.

    A repeated key begins another record. A single such line is a sentence: `Note: the flight is late`.
    """
    run: list[_Pair] = []
    for line in (*_iter_lines(text), None):
        pair = line and _read_pair(line)
        if pair is not None:
            run.append(pair)
        elif line is None or line.text.strip():
            if len(run) > 1:
                yield Stretch(run[0][0].start, run[-1][0].end, _build_records(run))
            run = []


def _read_pair(line: _Line) -> _Pair | None:
    match = _PAIR.fullmatch(line.text.rstrip()) if len(line.text) <= MAX_LINE_CHARS else None
    if match is None:
        return None
    key, value = match["key"].strip(), match["value"].strip().removesuffix(",").strip("`*\"'")
    after_key = line.text[match.end("key") : match.end("key") + 2]
    glued = after_key[:1] == ":" and not after_key[1:].isspace()
    if not value or len(key.split()) > MAX_KEY_WORDS or (" " in key and glued):
        return None
    return line, key, value


def _build_records(run: Sequence[_Pair]) -> JsonValue:
    records: list[dict[str, JsonValue]] = [{}]
    for _, key, value in run:
        if key in records[-1]:
            records.append({})
        records[-1][key] = value
    return records[0] if len(records) == 1 else [*records]


FORMS = (
    Form("json", exact=True, find=_find_json, anywhere=True),
    Form("json_lines", exact=True, find=_find_json_lines),
    Form("json_in_text", exact=True, find=_find_json_in_text),
    Form("markdown_table", exact=False, find=_find_markdown),
    Form("csv", exact=False, find=_find_csv, anywhere=True),
    Form("key_values", exact=False, find=_find_key_values),
)
"""In the order of the search: each form searches only what those before it left."""
