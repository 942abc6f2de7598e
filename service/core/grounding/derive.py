"""One step of arithmetic between values of a column, a record or a list: a sum, a share, a count, the days between."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, permutations
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.grounding.fields import apply_unit, read_field, split_name
from service.core.grounding.known import KnownFacts
from service.core.grounding.reading.languages import split_words
from service.core.grounding.reading.mentions import Reading
from service.core.grounding.reading.moments import DAY_S, Day, Time
from service.core.models.light import lazy

MAX_STEPS = 300_000
"""How many steps the search for all texts of a trace may take; then values are no longer looked for."""
MAX_PAIRED = 40
"""Groups of more values than this are only added up and averaged: among so many pairs anything fits."""
_MAX_GROUPS = 200
_MAX_GIVEN = 24
_MAX_COUNTED = 1_000


class Derivation(NamedTuple):
    """What values make, and how: `sum`, `mean`, `difference`, `product`, `ratio`, `days between`, `time after`, `unit`, ..."""

    how: str
    sources: tuple[str, ...]
    reading: Reading = Reading("number", 0.0)
    by_chance: bool = False
    """Whether it was found among so many steps that some step would have led to the value: then it proves nothing."""


class _Number(NamedTuple):
    """A number with its place: what a derivation starts from."""

    place: int
    value: float
    pointer: str


_Groups = dict[str, dict[str, list[_Number]]]
"""Numbers that belong together: by dimension, then by what they have in common."""
_POSITION = re.compile(r"/\d+(?=/|$)")
_NO_AMOUNTS = split_words(
    "id ids phone zip postcode code no number year month last4 card ref lat lon lng page rank pos"
)
"""Words in the names of numbers that nobody adds up."""


class Groups:
    """The numbers of a whole trace in the groups in which they may be added up, each group in the order of the trace."""

    def __init__(self, known: KnownFacts) -> None:
        self.columns: _Groups = defaultdict(lambda: defaultdict(list))
        """The numbers of one field of many records."""
        self.records: _Groups = defaultdict(lambda: defaultdict(list))
        """The numbers of a record and of its members."""
        self.given: list[_Number] = []
        """Small whole numbers that somebody gave and that results count: nights, pieces, people."""
        store = known.store
        self.counts: list[_Number] = []
        for place in store.tables:
            site, _, items = store.held[place]
            self.counts += [_Number(place, n, site.pointer) for n in _iter_counts(cast("list[JsonValue]", items))]
        stated = {place for groups in store.keys.days.values() for places in groups for place in places}
        days = [(place, fact) for place in sorted(stated) for fact in store.build(place)]
        self.days = [
            _Number(place, fact.reading.value.date.toordinal(), fact.pointer)
            for place, fact in days
            if isinstance(fact.reading.value, Day) and fact.reading.value.date is not None
        ]
        for (name, beside, told), values in store.fields.items():
            unit, adds_up = read_field(name, beside, minor_told=told).unit, _NO_AMOUNTS.isdisjoint(split_name(name))
            for value, places in values.items():
                dimension, size = apply_unit(unit, value)
                for place in places:
                    self._add(place, dimension, size, known, adds_up=adds_up)
        for each in (self.columns, self.records):
            for group in [group for groups in each.values() for group in groups.values()]:
                group.sort()
        said = [(place, fact.reading, fact.pointer) for place, fact in known.orders.said]
        for place, reading, pointer in said:
            self._add_given(place, reading.dimension, reading.number, pointer)
        self.given.sort()

    def _add(self, place: int, dimension: str, size: float, known: KnownFacts, *, adds_up: bool) -> None:
        holder, key, _ = known.store.held[place]
        if holder.source not in ("result", "argument"):
            return
        number = _Number(place, size, holder.enter(key).pointer)
        if holder.source == "argument":
            self._add_given(place, dimension, size, number.pointer)
        if adds_up:
            self.columns[dimension][_POSITION.sub("/*", number.pointer)].append(number)
            self.records[dimension][holder.record].append(number)
            outer, _, member = holder.record.rpartition("/")
            if holder.record.count("/") > 4 and not member.isdecimal():
                self.records[dimension][outer].append(number)

    def _add_given(self, place: int, dimension: str, size: float, pointer: str) -> None:
        number = size / (DAY_S if dimension else 1)
        if dimension in ("", "time") and 1 < number <= 400 and number == number // 1:
            self.given.append(_Number(place, number, pointer))


def _iter_counts(items: Sequence[JsonValue]) -> Iterator[int]:
    """Yield how many records there are, how many of them share a value and how many do not, and how many values there are."""
    yield len(items)
    kinds: dict[tuple[str, JsonValue], int] = defaultdict(int)
    for item in items[:_MAX_COUNTED]:
        for name, value in cast("Mapping[str, JsonValue]", item).items() if isinstance(item, dict) else [("", item)]:
            if value is None or isinstance(value, bool | str):
                kinds[name, value] += 1
    distinct: dict[str, int] = defaultdict(int)
    for (name, _), count in kinds.items():
        distinct[name] += 1
        yield count
        yield len(items) - count
    yield from distinct.values()


class _Wanted(NamedTuple):
    """A size to derive from amounts of a dimension."""

    dimension: str
    size: float
    spread: float

    def is_near(self, value: float) -> bool:
        return abs(abs(value) - self.size) <= self.spread


class Deriver:
    """Derives values from what is known at a point of a trace. The search for all of them together is bounded."""

    def __init__(self, known: KnownFacts) -> None:
        self._known = known
        self._steps = self._trials = 0
        self._chance: Derivation | None = None

    @lazy
    def _groups(self) -> Groups:
        return Groups(self._known)

    def move(self, known: KnownFacts) -> None:
        """Go on with what is known at a later point."""
        self._known = known

    @property
    def exhausted(self) -> bool:
        """Whether the search was given up: what it did not find may be derivable all the same."""
        return self._steps > MAX_STEPS

    def spend(self, steps: int) -> None:
        """Count steps that were tried elsewhere, for the same text."""
        self._steps += steps

    def _cut(self, group: list[_Number]) -> list[_Number]:
        """Return what is known of a group."""
        return group[: bisect_left(group, (self._known.before,))]

    def derive(self, reading: Reading) -> Derivation | None:
        """Return one step that leads to a reading; where there is none, one that may do so by chance; or None."""
        if self.exhausted:
            return None
        if reading.kind == "number":
            self._chance, self._trials = None, 0
            return self._derive_number(reading) or self._chance
        if reading.kind == "weekday":
            pointers = [one for day, one in self._list_days().items() if (day - 1) % 7 == reading.value]
            return Derivation("weekday", tuple(filter(None, pointers[:1]))) if pointers else None
        return None

    def _derive_number(self, reading: Reading) -> Derivation | None:
        size, spread = abs(reading.number), reading.tolerance * 1.001 + abs(reading.number) * 1e-6
        count = next((one for one in self._cut_counts() if one.value == size), None) if not reading.dimension else None
        if count is not None:
            return Derivation("count", (count.pointer,))
        if reading.dimension == "time" and (found := self._find_span(size, spread)):
            return found
        wanted = [_Wanted(reading.dimension, size, spread)]
        if reading.dimension == "money" and reading.written and reading.number:  # of amounts that name no unit
            unit = abs(reading.written / reading.number)
            wanted += [_Wanted("", abs(reading.written), spread * unit), _Wanted("", size * 100, spread * 100)]
        for groups in (self._groups.columns, self._groups.records):
            for one in wanted:
                found = self._derive_in(groups, one)
                if found is not None or self.exhausted:
                    return found
        return self._find_scaled(reading, size, spread) if reading.dimension else None

    def _derive_in(self, groups: _Groups, wanted: _Wanted) -> Derivation | None:
        """Derive a number within one column or record."""
        of_columns = groups is self._groups.columns
        for group in map(self._cut, islice(groups[wanted.dimension].values(), _MAX_GROUPS)):
            self._steps += 4 + 6 * len(group)
            self._trials += 2
            totals = _iter_totals(group, mean=of_columns) if group[1:] else ()
            found = self._admit(next((origin for total, origin in totals if wanted.is_near(total)), None), wanted)
            if found is None and 1 < len(group) <= MAX_PAIRED:
                self._trials += len(group) ** 2
                found = self._admit(_find_pair(group, wanted), wanted)
            if found is not None or self.exhausted:
                return found
        every = [group for one in groups.values() for group in one.values()] if wanted.dimension == "share" else ()
        for group in map(self._cut, every):
            self._steps += len(group)
            self._trials += len(group) ** 2 * 2
            found = _find_ratio(group, wanted) if 1 < len(group) <= MAX_PAIRED and self._is_rare(wanted) else None
            if found is not None or self.exhausted:
                return found
        return None

    def _is_rare(self, wanted: _Wanted) -> bool:
        """Whether fewer than one of the steps that were tried may be expected to lead to a value by chance."""
        return self._trials * wanted.spread <= max(wanted.size, wanted.spread)

    def _admit(self, found: Derivation | None, wanted: _Wanted) -> Derivation | None:
        if found is None or self._is_rare(wanted):
            return found
        self._chance = found._replace(by_chance=True)
        return None

    def list_totals(self, dimension: str) -> Iterator[tuple[float, Derivation]]:
        """Yield the sums, means and counts that a text may have meant."""
        for one in dict.fromkeys((dimension, "", "share")):
            for column in map(self._cut, islice(self._groups.columns[one].values(), _MAX_GROUPS)):
                yield from _iter_totals(column, mean=True) if column[1:] else ()
        for one in self._cut_counts() if not dimension else ():
            yield one.value, Derivation("count", (one.pointer,))

    def _cut_counts(self) -> list[_Number]:
        return [one for one in self._groups.counts if one.place < self._known.before]

    def _find_scaled(self, reading: Reading, target: float, spread: float) -> Derivation | None:
        """Find a held number that a given one multiplies or divides: a price by the nights that the user asked for."""
        given = {one.value: one.pointer for one in reversed(self._cut(self._groups.given))}
        for factor, pointer in islice(reversed(given.items()), _MAX_GIVEN):
            self._steps += 8
            for how, share in (("product", 1 / factor), ("ratio", factor)):
                size = target * share
                held = Reading("number", size, reading.dimension, spread * share, reading.currency, size)
                near = self._known.find(held, limit=1)
                if near and near[0].fact.pointer != pointer:
                    return Derivation(how, (near[0].fact.pointer, pointer))
        return None

    def _list_days(self) -> dict[int, str]:
        """Return the known days by number, with their pointers; today has none."""
        today = {} if self._known.today is None else {self._known.today.toordinal(): ""}
        return {int(one.value): one.pointer for one in reversed(self._cut(self._groups.days))} | today

    def _find_span(self, target: float, spread: float) -> Derivation | None:
        """Find two days, or two times, that are this far apart."""
        days = self._list_days()
        times = self._known.list_moments("time")
        self._steps += len(days) + len(times) + 1
        whole = round(target / DAY_S)
        near = abs(target - whole * DAY_S) <= max(spread, 1) and len(days) <= _MAX_GROUPS
        for n in filter(None, (whole, whole - 1, whole + 1)) if near else ():
            for one, pointer in sorted(days.items()):
                if one + n in days:
                    return Derivation("days between", tuple(filter(None, (pointer, days[one + n]))))
        seconds = {cast("Time", fact.reading.value).seconds: fact.pointer for fact in times}
        for one, pointer in seconds.items() if target and len(times) <= _MAX_GROUPS else ():
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
    order = sorted([(abs(one.value), n) for n, one in enumerate(group) if one.value])
    _, target, spread = wanted
    for size, n in order:
        for rest, how in ((target - size, "sum"), (size - target, "difference"), (size + target, "difference")):
            at = bisect_left(order, (rest - spread, -1)) if rest >= 0 else len(order)
            if at < len(order) and order[at][0] <= rest + spread and order[at][1] != n:
                return Derivation(how, (group[n].pointer, group[order[at][1]].pointer))
    return None


def _find_ratio(group: Sequence[_Number], wanted: _Wanted) -> Derivation | None:
    """Find two values of which one is this share of the other, or this much more or less; or one that is this share of all."""
    total = sum(one.value for one in group)
    for one in group:
        if total and wanted.is_near(one.value / total):
            return Derivation("ratio", (one.pointer, *[each.pointer for each in group[:3]]))
    for one, other in permutations(group, 2):
        ratio = one.value / other.value if other.value else 0.0
        if ratio and (wanted.is_near(ratio) or wanted.is_near(ratio - 1)):
            return Derivation("ratio", (one.pointer, other.pointer))
    return None
