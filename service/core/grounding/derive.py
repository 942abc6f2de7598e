"""Find the one step of arithmetic that leads from held values to a stated one: a sum, a share, a count, the days between."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.grounding.fact_index import FactIndex
from service.core.grounding.facts import Fact
from service.core.grounding.fields import split_name
from service.core.grounding.reading.languages import split_words
from service.core.grounding.reading.mentions import Reading
from service.core.grounding.reading.moments import DAY_S, Day, Time
from service.core.grounding.steps import Derivation

MAX_STEPS = 300_000
"""How many steps the search for all texts of a trace may take; then values are no longer looked for."""
MAX_PAIRED = 40
"""Groups of more values than this are only added up and averaged: among so many pairs anything fits."""
_MAX_GROUPS = 200
_MAX_CHANCE = 1.0
"""How many of the steps that were tried may be expected to lead to a value by chance, if the one that does is to count."""
_MAX_GIVEN = 24


class _Number(NamedTuple):
    """A number with its place: what a derivation starts from."""

    value: float
    dimension: str
    pointer: str


class _Wanted(NamedTuple):
    """A size to derive from amounts of a dimension."""

    dimension: str
    size: float
    spread: float

    def is_near(self, value: float) -> bool:
        return abs(abs(value) - self.size) <= self.spread


def _list_wanted(reading: Reading, wanted: _Wanted) -> list[_Wanted]:
    """List what leads to a number: its own size and, from amounts that name no unit, its size as written or in cents."""
    found = [wanted]
    if reading.dimension == "money" and reading.written and reading.number:
        unit = abs(reading.written / reading.number)
        found.append(_Wanted("", abs(reading.written), wanted.spread * unit))
    if reading.dimension == "money":
        found.append(_Wanted("", wanted.size * 100, wanted.spread * 100))
    return found


_Groups = dict[str, dict[str, list[_Number]]]
"""Amounts that belong together: by dimension, then by what they have in common."""


class Deriver:
    """Derives values from one state of an index."""

    def __init__(self, index: FactIndex, today: date | None) -> None:
        self._index = index
        self._chance: Derivation | None = None
        self._steps = self._trials = self._numbers = self._dates = self._tables = 0
        self._columns: _Groups = defaultdict(dict)
        """The numbers of one field of many records."""
        self._records: _Groups = defaultdict(dict)
        """The numbers of a record and of its members."""
        self._given: dict[float, str] = {}
        """Small whole numbers that somebody gave and that results count: nights, pieces, people."""
        self._counts: dict[int, str] = {}
        self._days: dict[int, str] = {} if today is None else {today.toordinal(): ""}

    def _refresh(self) -> None:
        """Take in what the index has taken in since."""
        for fact in self._index.iter_kind("number", self._numbers):
            _add_to_groups(fact, self._columns, self._records)
            number = fact.reading.number / (DAY_S if fact.reading.dimension else 1)
            given = fact.source in ("user", "argument") and fact.reading.dimension in ("", "time")
            if given and 1 < number <= 400 and number == number // 1:
                self._given.setdefault(number, fact.pointer)
        for fact in self._index.iter_kind("day", self._dates):
            held = cast("Day", fact.reading.value).date
            if held is not None:
                self._days.setdefault(held.toordinal(), fact.pointer)
        for pointer, items in self._index.tables[self._tables :]:
            for count in _iter_counts(items):
                self._counts.setdefault(count, pointer)
        self._numbers, self._dates = self._index.count("number"), self._index.count("day")
        self._tables = len(self._index.tables)

    @property
    def exhausted(self) -> bool:
        """Whether the search was given up: what it did not find may be derivable all the same."""
        return self._steps > MAX_STEPS

    def spend(self, steps: int) -> None:
        """Count steps that were tried elsewhere, for the same text."""
        self._steps += steps

    def derive(self, reading: Reading) -> Derivation | None:
        """Return one step that leads to a reading; where there is none, one that may do so by chance; or None."""
        if self.exhausted:
            return None
        self._refresh()
        if reading.kind == "number":
            self._chance = None
            return self._derive_number(reading) or self._chance
        if reading.kind == "weekday":
            pointers = [self._days[day] for day in self._days if (day - 1) % 7 == reading.value]
            return Derivation("weekday", tuple(filter(None, pointers[:1]))) if pointers else None
        return None

    def _is_rare(self, wanted: _Wanted) -> bool:
        return self._trials * wanted.spread <= _MAX_CHANCE * max(wanted.size, wanted.spread)

    def _admit(self, found: Derivation | None, wanted: _Wanted) -> Derivation | None:
        if found is None or self._is_rare(wanted):
            return found
        self._chance = found._replace(by_chance=True)
        return None

    def list_totals(self, dimension: str) -> Iterator[tuple[float, Derivation]]:
        """Yield the sums, means and counts that a text may have meant."""
        for one in dict.fromkeys((dimension, "", "share")):
            for column in islice(self._columns.get(one, {}).values(), _MAX_GROUPS):
                yield from _iter_totals(column, mean=True) if column[1:] else ()
        if not dimension:
            for count, pointer in self._counts.items():
                yield float(count), Derivation("count", (pointer,))

    def _derive_number(self, reading: Reading) -> Derivation | None:
        self._trials = 0
        spread = reading.tolerance * 1.001 + abs(reading.number) * 1e-6
        wanted = _Wanted(reading.dimension, abs(reading.number), spread)
        if not reading.dimension and wanted.size in self._counts:
            return Derivation("count", (self._counts[int(wanted.size)],))
        if reading.dimension == "time" and (found := self._find_span(wanted.size, spread)):
            return found
        for groups in (self._columns, self._records):
            for one in _list_wanted(reading, wanted):
                found = self._derive_in(groups, one)
                if found is not None or self.exhausted:
                    return found
        return self._find_scaled(reading, wanted.size, spread)

    def _derive_in(self, groups: _Groups, wanted: _Wanted) -> Derivation | None:
        """Derive a number within one column or record."""
        for group in islice(groups.get(wanted.dimension, {}).values(), _MAX_GROUPS):
            self._steps += 4 + 6 * len(group)
            totals = _iter_totals(group, mean=groups is self._columns) if group[1:] else ()
            self._trials += 2
            found = self._admit(next((origin for total, origin in totals if wanted.is_near(total)), None), wanted)
            if found is None and 1 < len(group) <= MAX_PAIRED:
                self._trials += len(group) ** 2
                found = self._admit(_find_pair(group, wanted), wanted)
            if found is not None or self.exhausted:
                return found
        for group in [each for one in groups.values() for each in one.values()] if wanted.dimension == "share" else ():
            self._steps += len(group)
            self._trials += len(group) ** 2 * 2
            found = _find_ratio(group, wanted) if 1 < len(group) <= MAX_PAIRED and self._is_rare(wanted) else None
            if found is not None or self.exhausted:
                return found
        return None

    def _find_scaled(self, reading: Reading, target: float, spread: float) -> Derivation | None:
        """Find a held number that a given one multiplies or divides: a price by the nights that the user asked for."""
        for factor, pointer in islice(self._given.items(), _MAX_GIVEN) if reading.dimension else ():
            self._steps += 8
            for how, share in (("product", 1 / factor), ("ratio", factor)):
                size = target * share
                near = self._index.find(
                    Reading("number", size, reading.dimension, spread * share, reading.currency, size), limit=1
                )
                if near and near[0].fact.pointer != pointer:
                    return Derivation(how, (near[0].fact.pointer, pointer))
        return None

    def _list_seconds(self) -> dict[int, str]:
        """Return the times of day in seconds with their pointers; {} if there are too many to look through."""
        times = self._index.list_times()
        self._steps += len(times)
        return (
            {cast("Time", fact.reading.value).seconds: fact.pointer for fact in times[: _MAX_GROUPS + 1]}
            if len(times) <= _MAX_GROUPS
            else {}
        )

    def _find_span(self, target: float, spread: float) -> Derivation | None:
        """Find two days, or two times, that are this far apart."""
        self._steps += len(self._days) + 1
        whole = round(target / DAY_S)
        near = abs(target - whole * DAY_S) <= max(spread, 1) and len(self._days) <= _MAX_GROUPS
        for n in filter(None, (whole, whole - 1, whole + 1)) if near else ():
            for one, pointer in sorted(self._days.items()):
                if one + n in self._days:
                    return Derivation("days between", tuple(filter(None, (pointer, self._days[one + n]))))
        seconds = self._list_seconds()
        for one, pointer in seconds.items() if target else ():
            other = round(one + target) % DAY_S
            if other in seconds:
                return Derivation("time between", (pointer, seconds[other]))
        return None


def _iter_totals(group: Sequence[_Number], *, mean: bool) -> Iterator[tuple[float, Derivation]]:
    total, pointers = sum(one.value for one in group), tuple([one.pointer for one in group[:8]])
    yield total, Derivation("sum", pointers)
    if mean:
        yield total / len(group), Derivation("mean", pointers)


def _find_pair(group: Sequence[_Number], wanted: _Wanted) -> Derivation | None:
    """Find two values with this sum or difference."""
    order = sorted([(abs(one.value), n) for n, one in enumerate(group)])
    _, target, spread = wanted
    for size, n in order:
        for rest, how in ((target - size, "sum"), (size - target, "difference"), (size + target, "difference")):
            at = bisect_left(order, (rest - spread, -1))
            if rest >= 0 and at < len(order) and order[at][0] <= rest + spread:
                other = order[at][1]
                if other != n and order[at][0] and size:
                    return Derivation(how, (group[n].pointer, group[other].pointer))
    return None


def _find_ratio(group: Sequence[_Number], wanted: _Wanted) -> Derivation | None:
    """Find two values of which one is this share of the other, or this much more or less; or one that is this share of all."""
    total = sum(one.value for one in group)
    for one in group:
        if total and wanted.is_near(one.value / total):
            return Derivation("ratio", (one.pointer, *[each.pointer for each in group[:3]]))
        for other in group:
            ratio = one.value / other.value if other.value and other is not one else 0.0
            if ratio and (wanted.is_near(ratio) or wanted.is_near(ratio - 1)):
                return Derivation("ratio", (one.pointer, other.pointer))
    return None


_POSITION = re.compile(r"/\d+(?=/|$)")
_NUMERAL = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?(?:e-?\d+)?")
_NO_AMOUNTS = split_words(
    "id ids phone zip postcode code no number year month last4 card ref lat lon lng page rank pos"
)
"""Words in the names of numbers that nobody adds up."""


def _add_to_groups(fact: Fact, columns: _Groups, records: _Groups) -> None:
    """Add a number of a result or an argument to its column, to its record, and to that of which its record is a member."""
    counted = fact.whole and _NUMERAL.fullmatch(fact.text) is not None and _NO_AMOUNTS.isdisjoint(split_name(fact.name))
    if fact.source not in ("result", "argument") or not counted:
        return
    dimension, record = fact.reading.dimension, fact.place.record
    amount = _Number(fact.reading.number, dimension, fact.pointer)
    columns[dimension].setdefault(_POSITION.sub("/*", fact.pointer), []).append(amount)
    records[dimension].setdefault(record, []).append(amount)
    outer, _, member = record.rpartition("/")
    if record.count("/") > 4 and not member.isdecimal():
        records[dimension].setdefault(outer, []).append(amount)


def _iter_counts(items: Sequence[JsonValue]) -> Iterator[int]:
    """Yield how many records there are, how many of them share a value and how many do not, and how many values there are."""
    yield len(items)
    kinds: dict[tuple[str, JsonValue], int] = defaultdict(int)
    for item in items[:1_000]:
        for name, value in cast("Mapping[str, JsonValue]", item).items() if isinstance(item, dict) else [("", item)]:
            if value is None or isinstance(value, bool | str):
                kinds[name, value] += 1
    distinct: dict[str, int] = defaultdict(int)
    for (name, _), count in kinds.items():
        distinct[name] += 1
        yield count
        yield len(items) - count
    yield from distinct.values()
