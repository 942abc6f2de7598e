"""What results say, as facts: a value under a field of a record.

Read as such: objects and arrays, `{name, value}` pairs, `[name, value]` pairs, columns of one table (`{"PTS": {"0": 38}}`) and
comma-separated text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from math import isfinite
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.evidence.leaves import Scalar
from service.core.evidence.numbers import MAX_DIGITS, places_of
from service.core.evidence.quantities import Quantity, find_quantities
from service.core.evidence.words import flat, stems
from service.core.pointers import escaped

MAX_FACTS = 20_000
MAX_ROWS = 2_000
"""Rows of a text that is a table."""
MAX_NAMES = 12
"""Texts by which one record is known."""
MAX_CELL = 2_000
"""Characters of a text leaf that are read."""
_MAX = {"min": "max", "Min": "Max", "MIN": "MAX"}
"""Beside a name that ends in `max`, one in `min` is the least and no minutes."""
_MIN = tuple(_MAX)
_NAMES = ("name", "key", "label", "title", "property", "field")
_DEPTH = 40


@dataclass(slots=True)
class Record:
    """One thing that is spoken of: what it is called, its days, and the record it belongs to."""

    above: Record | None = None
    called: list[str] = field(default_factory=list[str])
    """Flat texts among its own values."""
    days: list[str] = field(default_factory=list[str])


class Fact(NamedTuple):
    """One value. `own` are the words of its name, `above` those of the names it stands under."""

    pointer: str
    path: tuple[str, ...]
    own: tuple[str, ...]
    above: frozenset[str]
    value: Scalar
    quantities: tuple[Quantity, ...]
    record: Record
    step: int


class _Reader:
    def __init__(self, step: int) -> None:
        self.step = step
        self.facts: list[Fact] = []
        self.counts: list[Fact] = []
        self.least: set[tuple[str, ...]] = set()
        self.texts: dict[str, tuple[Quantity, ...]] = {}  # many texts are there again and again

    def read(self, value: JsonValue, pointer: str, path: tuple[str, ...], record: Record) -> None:
        if len(self.facts) >= MAX_FACTS or pointer.count("/") > _DEPTH:
            return
        if isinstance(value, dict):
            self._object(value, pointer, path, record)
        elif isinstance(value, list):
            self._array(value, pointer, path, record)
        else:
            self._leaf(value, pointer, path, record)

    def _object(self, value: dict[str, JsonValue], pointer: str, path: tuple[str, ...], record: Record) -> None:
        name = _pair_name(value)
        if name is not None:
            self.read(value["value"], f"{pointer}/value", (*path, name), record.above or record)
            return
        if _is_columnar(value):
            self._columns(cast("dict[str, dict[str, JsonValue]]", value), pointer, path, record)
            return
        for key in [key for key in value if key.endswith(_MIN)]:
            if key[:-3] + _MAX[key[-3:]] in value:
                self.least.add((*path, key))
        for key, item in value.items():
            at = f"{pointer}/{escaped(key)}"
            if isinstance(item, dict) and any(c.isdigit() for c in key):  # a name as a key: its own record
                self.read(item, at, path, Record(record, [flat(key)]))
            else:
                self.read(item, at, (*path, key), record)

    def _array(self, value: list[JsonValue], pointer: str, path: tuple[str, ...], record: Record) -> None:
        if value:
            count = Quantity("number", Decimal(len(value)), "", 0, 0, "")
            self.counts.append(self._fact(pointer, path, len(value), (count,), record))
        for n, item in enumerate(value):
            if _is_pair(item):
                name, held = cast("list[JsonValue]", item)
                self.read(held, f"{pointer}/{n}/1", (*path, str(name)), record)
            else:
                inner = Record(record) if isinstance(item, dict | list) else record
                self.read(item, f"{pointer}/{n}", path, inner)

    def _columns(
        self, value: dict[str, dict[str, JsonValue]], pointer: str, path: tuple[str, ...], record: Record
    ) -> None:
        rows: dict[str, Record] = {}
        for name, column in value.items():
            for key, item in column.items():
                row = rows.setdefault(key, Record(record))
                self.read(item, f"{pointer}/{escaped(name)}/{escaped(key)}", (*path, name), row)

    def _fact(
        self, pointer: str, path: tuple[str, ...], value: Scalar, quantities: tuple[Quantity, ...], record: Record
    ) -> Fact:
        own, above = _words(path)
        own = (*own[:-1], "minimum") if path in self.least else own
        return Fact(pointer, path, own, above, value, quantities, record, self.step)

    def _leaf(self, value: Scalar, pointer: str, path: tuple[str, ...], record: Record) -> None:
        rows = list(_rows(value)) if isinstance(value, str) and value.count("\n") > 2 else []
        for name, said in _COMMENT.findall(str(value)) if rows else ():
            self._cell(said, pointer, (*path, name), record)
        for row in rows:
            inner = Record(record)
            for name, cell in row.items():
                self._cell(cell, pointer, (*path, name), inner)
        if not rows:
            self._cell(value, pointer, path, record)

    def _cell(self, value: Scalar, pointer: str, path: tuple[str, ...], record: Record) -> None:
        if len(self.facts) >= MAX_FACTS:
            return
        quantities = self.texts.get(value) if isinstance(value, str) else _read(value)
        if quantities is None:
            quantities = self.texts[str(value)] = _read(value)
        if isinstance(value, str):
            _call(record, value, quantities)
        self.facts.append(self._fact(pointer, path, value, quantities, record))


def facts_of(content: JsonValue, pointer: str, step: int) -> tuple[list[Fact], list[Fact]]:
    """The facts of a result, and the lengths of its arrays, in document order."""
    reader = _Reader(step)
    reader.read(content, pointer, (), Record())
    return reader.facts, reader.counts


@lru_cache(maxsize=8192)
def _words(path: tuple[str, ...]) -> tuple[tuple[str, ...], frozenset[str]]:
    above = frozenset(word for key in path[:-1] for word in stems(key))
    return (stems(path[-1]) if path else ()), above


def _read(value: Scalar) -> tuple[Quantity, ...]:
    if isinstance(value, str):
        if value.isdecimal() and len(value) < MAX_DIGITS:
            return (Quantity("number", Decimal(value), "", 0, len(value), value),)
        return tuple(find_quantities(value[:MAX_CELL]))
    if isinstance(value, bool):
        return (Quantity("boolean", value, "", 0, 0, str(value)),)
    if value is None or not isfinite(value):
        return ()
    text = repr(value)
    number = Decimal(text)
    return (
        Quantity("number", number, "", 0, len(text), text, 0 if isinstance(value, int) else places_of(text, number)),
    )


def _call(record: Record, value: str, quantities: tuple[Quantity, ...]) -> None:
    if len(value) == 4 and value.isdecimal() and value[0] in "12":
        record.days.append(value)
    elif len(quantities) == 1 and quantities[0].kind == "date":
        record.days.append(str(quantities[0].value))
    elif (
        len(record.called) < MAX_NAMES
        and 2 < len(value) <= 60
        and any(c.isalpha() for c in value)
        and value.count(" ") < 6
    ):
        record.called.append(flat(value))


def _pair_name(value: Mapping[str, JsonValue]) -> str | None:
    """The name in `{"name": "Weight", "value": "270 g"}`."""
    if "value" not in value or len(value) > 3:
        return None
    return next((name for key in _NAMES if isinstance(name := value.get(key), str)), None)


def _is_pair(item: JsonValue) -> bool:
    """Whether an array is `[name, value]`."""
    if not isinstance(item, list) or len(item) != 2:
        return False
    return isinstance(item[0], str) and not isinstance(item[1], list | dict)


def _is_columnar(value: Mapping[str, JsonValue]) -> bool:
    columns = list(value.values())
    if len(columns) < 3 or not all(isinstance(column, dict) and len(column) > 1 for column in columns):
        return False
    keys = cast("list[dict[str, JsonValue]]", columns)[0].keys()
    return all(key.isdigit() for key in keys) and all(
        column.keys() == keys for column in cast("list[dict[str, JsonValue]]", columns)
    )


_COMMENT = re.compile(r"(?m)^#[ ]{0,4}([^:\n]{1,40}):[ ]{0,4}([^\n]{1,300})$")


def _rows(text: str) -> Iterator[dict[str, str]]:
    """The rows of comma-separated text with a head; none where its lines differ in length. `# name: value` lines tell of it."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")][: MAX_ROWS + 1]
    head = [cell.strip() for cell in lines[0].split(",")] if lines else []
    if len(head) < 2 or any(line.count(",") != len(head) - 1 for line in lines):
        return
    for line in lines[1:]:
        yield dict(zip(head, (cell.strip() for cell in line.split(",")), strict=True))
