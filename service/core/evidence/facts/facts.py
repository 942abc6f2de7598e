"""Read results into facts: a value under a field of a record.

Understands objects and arrays, `{name, value}` pairs, `[name, value]` pairs, tables stored by column
(`{"PTS": {"0": 38}}`), and structure embedded in text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from math import isfinite
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.evidence.facts.field_units import NO_UNIT, FieldUnit, read_field_unit
from service.core.evidence.reading.dates import build_iso_date
from service.core.evidence.reading.numbers import MAX_DIGITS, count_places
from service.core.evidence.reading.quantities import Quantity
from service.core.evidence.reading.stated import find_stated
from service.core.evidence.reading.words import flatten_text, split_words, stem_name
from service.core.json.leaves import Scalar
from service.core.json.pointers import escape_token
from service.core.results.structure import build_passage_pointer, iter_bodies, read_leaf, read_text

MAX_FACTS = 20_000
MAX_NAMES = 12
"""Limit on the texts kept as names of one record."""
MAX_CELL = 2_000
"""Characters read of a text leaf."""
_MAX_OF_MIN = {"min": "max", "Min": "Max", "MIN": "MAX"}
"""Where a name ending in `max` has a twin ending in `min`, that `min` means minimum, not minutes."""
_MIN_SUFFIXES = tuple(_MAX_OF_MIN)
_TIME_WORDS = split_words("timestamp time date created updated start end at epoch")
MIN_EPOCH_S, MAX_EPOCH_S = 600_000_000, 4_000_000_000
"""Numbers in this range, under a name that suggests a time, are Unix timestamps."""
_NAME_KEYS = ("name", "key", "label", "title", "property", "field")
_MAX_DEPTH = 40
_COMPACT_DATE = re.compile(r"((?:19|20)\d\d)(\d\d)(\d\d)")


@dataclass(slots=True)
class FactRecord:
    """One thing that a result describes: its names, its days, and the record that encloses it."""

    above: FactRecord | None = None
    called: list[str] = field(default_factory=list[str])
    """Names: the short texts among its own values, flattened."""
    days: list[str] = field(default_factory=list[str])
    collection: Collection | None = None
    """The array that it is an item of."""
    facts: list[Fact] = field(default_factory=list["Fact"])
    """Its own values, without those of nested records."""


@dataclass(slots=True)
class Collection:
    """An array. `own`: stems of its name's words; `path`: the names that lead to it; `items`: its records, one for each item."""

    pointer: str
    path: tuple[str, ...]
    size: int
    step: int
    record: FactRecord
    items: list[FactRecord] = field(default_factory=list[FactRecord])
    own: tuple[str, ...] = ()


class Fact(NamedTuple):
    """One value. `own`: stems of its field name's words; `above`: those of the enclosing names; `counted`: its field's unit."""

    pointer: str
    path: tuple[str, ...]
    own: tuple[str, ...]
    above: frozenset[str]
    value: Scalar
    quantities: tuple[Quantity, ...]
    record: FactRecord
    step: int
    counted: FieldUnit = NO_UNIT


class _FactReader:
    def __init__(self, step: int, bodies: frozenset[str], described: Mapping[str, str], *, inferred: bool) -> None:
        self.step = step
        self.described = described
        self.units: dict[tuple[str, ...], FieldUnit] = {}
        self.collections: list[Collection] = []
        self.bodies = bodies
        self.inferred = inferred
        self.facts: list[Fact] = []
        self.counts: list[Fact] = []
        self.minimum_paths: set[tuple[str, ...]] = set()
        self.quantities_by_text: dict[str, tuple[Quantity, ...]] = {}  # many texts repeat

    def read(self, value: JsonValue, pointer: str, path: tuple[str, ...], record: FactRecord) -> None:
        if len(self.facts) >= MAX_FACTS or pointer.count("/") > _MAX_DEPTH:
            return
        if isinstance(value, dict):
            self._read_object(value, pointer, path, record)
        elif isinstance(value, list):
            self._read_array(value, pointer, path, record)
        else:
            self._read_leaf(value, pointer, path, record)

    def _read_object(
        self, value: dict[str, JsonValue], pointer: str, path: tuple[str, ...], record: FactRecord
    ) -> None:
        name = _find_pair_name(value)
        if name is not None:
            self.read(value["value"], f"{pointer}/value", (*path, name), record.above or record)
            return
        if _is_columnar(value):
            self._read_columns(cast("dict[str, dict[str, JsonValue]]", value), pointer, path, record)
            return
        for key in [key for key in value if key.endswith(_MIN_SUFFIXES)]:
            if key[:-3] + _MAX_OF_MIN[key[-3:]] in value:
                self.minimum_paths.add((*path, key))
        for key, item in value.items():
            at = f"{pointer}/{escape_token(key)}"
            if isinstance(item, dict) and any(c.isdigit() for c in key):  # the key is a name: a record of its own
                self.read(item, at, path, FactRecord(record, [flatten_text(key)]))
                continue
            counts = isinstance(item, int | float | str) and not isinstance(item, bool)
            if counts and (*path, key) not in self.minimum_paths:
                self.units[*path, key] = read_field_unit(key, value, self.described.get(key, ""))
            self.read(item, at, (*path, key), record)

    def _read_array(self, value: list[JsonValue], pointer: str, path: tuple[str, ...], record: FactRecord) -> None:
        own = stem_name(path[-1]) if path else ()
        collection = Collection(pointer, path, len(value), self.step, record, own=own)
        self.collections.append(collection)
        if value:
            count = Quantity("number", Decimal(len(value)), "", 0, 0, "")
            self.counts.append(self._build_fact(pointer, path, len(value), (count,), record))
        for n, item in enumerate(value):
            if _is_pair(item):
                name, pair_value = cast("list[JsonValue]", item)
                self.read(pair_value, f"{pointer}/{n}/1", (*path, str(name)), record)
            else:
                inner = FactRecord(record, collection=collection)
                collection.items.append(inner)
                self.read(item, f"{pointer}/{n}", path, inner)

    def _read_columns(
        self, value: dict[str, dict[str, JsonValue]], pointer: str, path: tuple[str, ...], record: FactRecord
    ) -> None:
        rows: dict[str, FactRecord] = {}
        for name, column in value.items():
            for key, item in column.items():
                row = rows.setdefault(key, FactRecord(record))
                self.units.setdefault((*path, name), read_field_unit(name, {}, self.described.get(name, "")))
                self.read(item, f"{pointer}/{escape_token(name)}/{escape_token(key)}", (*path, name), row)

    def _build_fact(
        self, pointer: str, path: tuple[str, ...], value: Scalar, quantities: tuple[Quantity, ...], record: FactRecord
    ) -> Fact:
        own, above = _split_words(path)
        own = (*own[:-1], "minimum") if path in self.minimum_paths else own
        counted = self.units.get(path, NO_UNIT)
        return Fact(pointer, path, own, above, value, quantities, record, self.step, counted)

    def _read_leaf(self, value: Scalar, pointer: str, path: tuple[str, ...], record: FactRecord) -> None:
        if not isinstance(value, str):
            self._read_cell(value, pointer, path, record)
            return
        reading = read_text(value) if pointer in self.bodies else read_leaf(value)
        for passage in reading.passages:
            if passage.exact or self.inferred:
                self.read(passage.value, build_passage_pointer(pointer, passage), path, FactRecord(record))
        rest = reading.rest if self.inferred else reading.beside_exact
        if rest.strip() or not reading.passages:
            self._read_cell(rest, pointer, path, record)

    def _read_cell(self, value: Scalar, pointer: str, path: tuple[str, ...], record: FactRecord) -> None:
        if len(self.facts) >= MAX_FACTS:
            return
        quantities = self.quantities_by_text.get(value) if isinstance(value, str) else _read_quantities(value)
        if quantities is None:
            quantities = self.quantities_by_text[str(value)] = _read_quantities(value)
        if isinstance(value, str):
            _name_record(record, value, quantities)
        if isinstance(value, int) and path and _is_moment(path[-1]):
            quantities = (*quantities, *_read_epoch(value))
        fact = self._build_fact(pointer, path, value, quantities, record)
        self.facts.append(fact)
        record.facts.append(fact)


class FactsRead(NamedTuple):
    """The facts of a result, the lengths of its arrays as facts, and the arrays, each in document order."""

    facts: list[Fact]
    counts: list[Fact]
    collections: list[Collection]


def read_facts(
    content: JsonValue, pointer: str, step: int, described: Mapping[str, str] | None = None, *, inferred: bool = False
) -> FactsRead:
    """Read the facts of a result. `described`: the descriptions of fields in the tool's schema, by name.

    `inferred`: include facts read from `key: value` lines, tables or XML instead of JSON. Such facts prove nothing.
    """
    bodies = frozenset([body.pointer for body in iter_bodies(content, pointer)])
    reader = _FactReader(step, bodies, described or {}, inferred=inferred)
    reader.read(content, pointer, (), FactRecord())
    return FactsRead(reader.facts, reader.counts, reader.collections)


@lru_cache(maxsize=8192)
def _split_words(path: tuple[str, ...]) -> tuple[tuple[str, ...], frozenset[str]]:
    above = frozenset(word for key in path[:-1] for word in stem_name(key))
    return (stem_name(path[-1]) if path else ()), above


def _read_quantities(value: Scalar) -> tuple[Quantity, ...]:
    if isinstance(value, str):
        if value.isdecimal() and len(value) < MAX_DIGITS:
            return (*_read_compact_date(value), Quantity("number", Decimal(value), "", 0, len(value), value))
        return tuple(find_stated(value[:MAX_CELL]))
    if isinstance(value, bool):
        return (Quantity("boolean", value, "", 0, 0, str(value)),)
    if value is None or not isfinite(value):
        return ()
    text = repr(value)
    number = Decimal(text)
    return (
        *_read_compact_date(text),
        Quantity("number", number, "", 0, len(text), text, 0 if isinstance(value, int) else count_places(text, number)),
    )


def _read_compact_date(text: str) -> list[Quantity]:
    """Return the day that eight digits give, such as 20270304."""
    match = _COMPACT_DATE.fullmatch(text)
    day = build_iso_date(int(match[1]), int(match[2]), int(match[3])) if match else None
    return [Quantity("date", day, "", 0, len(text), text)] if day is not None else []


def _is_moment(name: str) -> bool:
    """Whether the name of a field suggests a moment: `created_at`, `raised`."""
    return not _TIME_WORDS.isdisjoint(stem_name(name)) or name.endswith("ed")


def _read_epoch(value: int) -> list[Quantity]:
    """Return the day, give or take a time zone, and the UTC time of a timestamp in seconds or milliseconds."""
    seconds = value // 1000 if value > MAX_EPOCH_S else value
    if not MIN_EPOCH_S < seconds < MAX_EPOCH_S:
        return []
    at = datetime.fromtimestamp(seconds, UTC)
    others = tuple((at + timedelta(hours=hours)).date().isoformat() for hours in (-12, 12))
    day = Quantity("date", at.date().isoformat(), "", 0, 0, "", 0, others)
    return [day, Quantity("time", at.time().isoformat(), "Z", 0, 0, "")]


def _name_record(record: FactRecord, value: str, quantities: tuple[Quantity, ...]) -> None:
    if len(value) == 4 and value.isdecimal() and value[0] in "12":
        record.days.append(value)
    elif quantities and quantities[0].kind == "date" and {q.kind for q in quantities[1:]} <= {"time"}:
        record.days.append(str(quantities[0].value))
    elif (
        len(record.called) < MAX_NAMES
        and 2 < len(value) <= 60
        and any(c.isalpha() for c in value)
        and value.count(" ") < 6
    ):
        record.called.append(flatten_text(value))


def _find_pair_name(value: Mapping[str, JsonValue]) -> str | None:
    """Return the name in a pair such as `{"name": "Weight", "value": "270 g"}`; None if it is no such pair."""
    if "value" not in value or len(value) > 3:
        return None
    return next((name for key in _NAME_KEYS if isinstance(name := value.get(key), str)), None)


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
