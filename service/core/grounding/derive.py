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

MAX_STEPS = 300_000
"""How many steps the search for all texts of a trace may take; then values are no longer looked for."""
MAX_PAIRED = 40
"""Groups of more values than this are only added up and averaged: among so many pairs anything fits."""
_MAX_COLUMNS = 200
_MAX_GIVEN = 24


class Origin(NamedTuple):
    """How a value comes about (`sum`, `mean`, `difference`, `product`, `ratio`, `count`, `days between`, ...) of what."""

    how: str
    sources: tuple[str, ...]


class Amount(NamedTuple):
    """A number with its place: what a derivation starts from."""

    value: float
    dimension: str
    pointer: str


class Deriver:
    """Derives values from one state of an index, and from the values that a text itself states."""

    def __init__(self, index: FactIndex, today: date | None) -> None:
        self._index = index
        self._steps = self._facts = self._tables = 0
        self._columns: dict[str, list[Amount]] = defaultdict(list)
        self._records: dict[str, list[Amount]] = defaultdict(list)
        self._given: dict[float, str] = {}
        self._counts: dict[int, str] = {}
        self._days: dict[int, str] = {} if today is None else {today.toordinal(): ""}

    def _refresh(self) -> None:
        """Take in what the index has taken in since."""
        for fact in self._index.iter_facts(self._facts):
            _add_to_groups(fact, self._columns, self._records)
            _add_to_given(fact, self._given)
            held = fact.reading.value.date if isinstance(fact.reading.value, Day) else None
            if held is not None:
                self._days.setdefault(held.toordinal(), fact.pointer)
        for pointer, items in self._index.tables[self._tables :]:
            for count in _iter_counts(items):
                self._counts.setdefault(count, pointer)
        self._facts, self._tables = len(self._index), len(self._index.tables)

    @property
    def exhausted(self) -> bool:
        """Whether the search was given up: what it did not find may be derivable all the same."""
        return self._steps > MAX_STEPS

    def derive(self, reading: Reading, stated: Sequence[Amount]) -> Origin | None:
        """Return one step that leads to a reading, or None. `stated`: other values of the text."""
        if self.exhausted:
            return None
        self._refresh()
        if reading.kind == "number":
            return self._derive_number(reading, stated)
        if isinstance(reading.value, Time):
            return self._find_end(reading.value)
        if reading.kind == "weekday":
            pointers = [self._days[day] for day in self._days if (day - 1) % 7 == reading.value]
            return Origin("weekday", tuple(filter(None, pointers[:1]))) if pointers else None
        return None

    def _find_end(self, time: Time) -> Origin | None:
        """Find a time and a duration that lead to a time of day."""
        durations = [one for column in self._columns.values() for one in column if one.dimension == "time"][:_MAX_GIVEN]
        seconds = {cast("Time", fact.reading.value).seconds: fact.pointer for fact in self._index.list_times()}
        self._steps += len(durations) + len(seconds)
        for one in durations:
            start = (time.seconds - round(one.value)) % DAY_S
            held = next(
                (
                    at
                    for at in (start, (start + DAY_S // 2) % DAY_S)
                    if at in seconds and (at == start or not time.exact)
                ),
                -1,
            )
            if held >= 0:
                return Origin("time after", (seconds[held], one.pointer))
        return None

    def list_totals(self, dimension: str) -> Iterator[tuple[float, Origin]]:
        """Yield the sums, means and counts that a text may have meant."""
        for column in _list_groups(self._columns):
            if dimension in (column[0].dimension, "", "share"):
                total = sum(one.value for one in column)
                yield total, Origin("sum", _name(column))
                yield total / len(column), Origin("mean", _name(column))
        if not dimension:
            for count, pointer in self._counts.items():
                yield float(count), Origin("count", (pointer,))

    def _derive_number(self, reading: Reading, stated: Sequence[Amount]) -> Origin | None:
        target, spread = abs(reading.number), reading.tolerance * 1.001 + abs(reading.number) * 1e-6
        if not reading.dimension and target == target // 1 and int(target) in self._counts:
            return Origin("count", (self._counts[int(target)],))
        if reading.dimension == "time" and (found := self._find_span(target, spread)):
            return found
        groups = (
            (_list_groups(self._columns), "column"),
            (_list_groups(self._records), "record"),
            ([list(stated)], "text"),
        )
        for group, kind in groups:
            for amounts in group:
                self._steps += 4 + 6 * len(amounts)
                found = _derive_in(amounts, kind, reading.dimension, target, spread)
                if found is not None:
                    return found
                if self.exhausted:
                    return None
        return self._find_scaled(reading, target, spread)

    def _find_scaled(self, reading: Reading, target: float, spread: float) -> Origin | None:
        """Find a held number that a given one multiplies or divides: a price by the nights that the user asked for."""
        for factor in [Amount(value, "", pointer) for value, pointer in islice(self._given.items(), _MAX_GIVEN)]:
            self._steps += 8
            for value, how, share in (
                (target / factor.value, "product", 1 / factor.value),
                (target * factor.value, "ratio", factor.value),
            ):
                scaled = Reading("number", value, reading.dimension, spread * share, reading.currency, value)
                near = self._index.find(scaled, limit=1) if reading.dimension else []
                if near and near[0].fact.pointer != factor.pointer:
                    return Origin(how, (near[0].fact.pointer, factor.pointer))
        return None

    def _find_span(self, target: float, spread: float) -> Origin | None:
        """Find two days, or two times, that are this far apart."""
        ordinals = sorted(self._days)
        self._steps += len(ordinals) + 1
        days = (
            [round(target / DAY_S) + extra for extra in (0, -1, 1)]
            if abs(target / DAY_S - round(target / DAY_S)) * DAY_S <= max(spread, 1)
            else []
        )
        for n in days if len(ordinals) <= _MAX_COLUMNS else ():
            for one in ordinals:
                if n and one + n in self._days:
                    return Origin("days between", tuple(filter(None, (self._days[one], self._days[one + n]))))
        times = self._index.list_times()
        if len(times) > _MAX_COLUMNS:
            return None
        seconds = {cast("Time", fact.reading.value).seconds: fact.pointer for fact in times}
        self._steps += len(seconds) * 2
        for one, pointer in seconds.items():
            for other in (one + target, one + target - DAY_S):
                near = next((seconds[s] for s in (round(other), *_round_minutes(other, spread)) if s in seconds), None)
                if near is not None and target:
                    return Origin("time between", (pointer, near))
        return None


def _round_minutes(seconds: float, spread: float) -> Iterator[int]:
    if spread >= 30:
        minute = int(seconds) // 60
        reach = min(60, int(spread // 60) + 1)
        yield from (60 * (minute + away) for away in range(-reach, reach + 1))


def _name(group: Sequence[Amount]) -> tuple[str, ...]:
    return tuple([one.pointer for one in group[:8]])


def _is_near(value: float, target: float, spread: float) -> bool:
    return abs(abs(value) - target) <= spread


def _derive_in(group: Sequence[Amount], kind: str, dimension: str, target: float, spread: float) -> Origin | None:
    """Derive a number within a column, a record, or from the other values of the text."""
    same = [one for one in group if one.dimension == dimension or (one.dimension == "" and dimension == "money")]
    if same[1:]:
        for how, value, part in _iter_totals(same, kind):
            if _is_near(value, target, spread):
                return Origin(how, _name(part))
    found = _find_pair(same, target, spread) if 1 < len(same) <= MAX_PAIRED else None
    if found is None and dimension == "share" and len(group) <= MAX_PAIRED:
        found = _find_ratio(group, target, spread)
    return found


def _iter_totals(column: Sequence[Amount], kind: str) -> Iterator[tuple[str, float, Sequence[Amount]]]:
    """Yield the sum and the mean of a column, and the sums of all but one and of the first and the last few."""
    total = sum(one.value for one in column)
    yield "sum", total, column
    if kind == "column":
        yield "mean", total / len(column), column
    if 2 < len(column) <= MAX_PAIRED:
        for n, left_out in enumerate(column):
            yield "sum", total - left_out.value, [*column[:n], *column[n + 1 :]]
            yield "sum", sum(one.value for one in column[: n + 1]), column[: n + 1]


def _find_pair(group: Sequence[Amount], target: float, spread: float) -> Origin | None:
    """Find two values with this sum or difference."""
    order = sorted([(abs(one.value), n) for n, one in enumerate(group)])
    for size, n in order:
        for wanted, how in ((target - size, "sum"), (size - target, "difference"), (size + target, "difference")):
            at = bisect_left(order, (wanted - spread, -1))
            if wanted >= 0 and at < len(order) and order[at][0] <= wanted + spread:
                other = order[at][1]
                if other != n and order[at][0] and size:
                    return Origin(how, (group[n].pointer, group[other].pointer))
    return None


def _find_ratio(group: Sequence[Amount], target: float, spread: float) -> Origin | None:
    """Find two values of one dimension of which one is this share of the other, or this much more or less."""
    for dimension in dict.fromkeys(one.dimension for one in group):
        same = [one for one in group if one.dimension == dimension and one.value]
        total = sum(one.value for one in same)
        for one in same:
            if total and same[1:] and _is_near(one.value / total, target, spread):
                return Origin("ratio", (one.pointer, *_name(same)[:3]))
            for other in same:
                ratio = one.value / other.value
                if one is not other and (_is_near(ratio, target, spread) or _is_near(ratio - 1, target, spread)):
                    return Origin("ratio", (one.pointer, other.pointer))
    return None


_POSITION = re.compile(r"/\d+(?=/|$)")


def _list_groups(groups: Mapping[str, list[Amount]]) -> list[list[Amount]]:
    return list(islice((group for group in groups.values() if group[1:]), _MAX_COLUMNS))


def _add_to_groups(fact: Fact, columns: dict[str, list[Amount]], records: dict[str, list[Amount]]) -> None:
    """Add a number of a result or an argument to its column (one field of many records) and to its record."""
    if fact.reading.kind != "number" or fact.source not in ("result", "argument") or not _is_amount(fact):
        return
    amount, record = Amount(fact.reading.number, fact.reading.dimension, fact.pointer), fact.place.record
    columns[_POSITION.sub("/*", fact.pointer)].append(amount)
    records[record].append(amount)
    if record.count("/") > 4 and not record.rpartition("/")[2].isdecimal():  # a member of a record
        records[record.rpartition("/")[0]].append(amount)


_NUMERAL = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?(?:e-?\d+)?")
_NO_AMOUNTS = split_words(
    "id ids phone zip postcode code no number year month last4 card ref lat lon lng page rank pos"
)
"""Words in the names of numbers that nobody adds up."""


def _is_amount(fact: Fact) -> bool:
    return fact.whole and _NUMERAL.fullmatch(fact.text) is not None and not _NO_AMOUNTS & set(split_name(fact.name))


def _add_to_given(fact: Fact, given: dict[float, str]) -> None:
    """Add a small whole number that somebody gave and that results count: nights, pieces, people."""
    if fact.reading.kind == "number" and fact.source in ("user", "argument") and fact.reading.dimension in ("", "time"):
        number = fact.reading.number / (DAY_S if fact.reading.dimension else 1)
        if 1 < number <= 400 and number == number // 1:
            given.setdefault(number, fact.pointer)


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
