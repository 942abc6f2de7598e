"""One step of arithmetic over a column or record, between moments, or with what somebody gave; and counts of records."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from typing import NamedTuple, cast

from service.core.grounding.facts import build_member_pointer
from service.core.grounding.fields import apply_unit, read_field, split_name
from service.core.grounding.known import KnownFacts
from service.core.grounding.reading.languages import list_words
from service.core.grounding.reading.mentions import Reading
from service.core.grounding.reading.moments import DAY_S, Day, Time
from service.core.grounding.steps import POSITION, Derivation
from service.core.grounding.store import FactStore
from service.core.models.light import lazy

MAX_STEPS = 300_000
"""How many steps the search for all texts of a trace may take; then values are no longer looked for."""
MAX_PAIRED = 40
"""Groups of more values than this are only added up and averaged: among so many pairs anything fits."""
_MAX_COLUMNS = 500
_MAX_LISTED = 16
_MAX_GIVEN = 24


_NO_AMOUNTS = list_words("fields", "no_amounts")
"""Words in the names of numbers that nobody adds up."""


class _Number(NamedTuple):
    """A number with its place."""

    place: int
    value: float
    pointer: str


class Deriver:
    """Derives values from what is known at a point of a trace. The search for all of them together is bounded."""

    def __init__(self, known: KnownFacts | None = None) -> None:
        self._known, self._steps = known or KnownFacts(FactStore()), 0

    def move(self, known: KnownFacts) -> Deriver:
        """Go on with what is known at a later point of the same trace."""
        self._known = known
        return self

    @property
    def exhausted(self) -> bool:
        """Whether the search was given up: what it did not find may be derivable all the same."""
        return self._steps > MAX_STEPS

    def spend(self, steps: int) -> None:
        """Count steps that were tried elsewhere, for the same text."""
        self._steps += steps

    @lazy
    def _groups(self) -> dict[str, dict[str, list[_Number]]]:
        """The numbers of one field of many records, and those of a record: by dimension, in the order of the trace."""
        store = self._known.store
        columns: dict[str, dict[str, list[_Number]]] = defaultdict(lambda: defaultdict(list))
        every = [(told, *one) for (told, names) in store.fields.items() for one in names.items()]
        for (beside, told), name, cells in every:
            unit = read_field(name, beside, minor_told=told).unit
            for cell in cells.values() if _NO_AMOUNTS.isdisjoint(split_name(name)) else ():
                dimension, size = apply_unit(unit, float(cell.value))
                for place in cell.places:
                    site, key = store.sites[place], store.members[place]
                    number = _Number(place, size, build_member_pointer(site.pointer, key))
                    outer, _, member = site.record.rpartition("/")
                    outer = "" if member.isdecimal() or outer.count("/") < 4 else outer
                    items = f"{site.pointer}/*" if isinstance(key, int) else ""
                    column = POSITION.sub("/*", number.pointer)
                    for group in filter(None, dict.fromkeys((column, site.record, items, outer))):
                        columns[dimension][group].append(number)
        for group in [group for groups in columns.values() for group in groups.values()]:
            group.sort()
        return columns

    @lazy
    def _given(self) -> list[_Number]:
        """The small whole numbers that somebody gave and that results count: nights, pieces, people."""
        store = self._known.store
        places = [n for n, site in enumerate(store.sites) if site.source in ("user", "argument")]
        facts = [(n, fact) for n in places for fact in store.build(n)[:1] if fact.reading.dimension in ("", "time")]
        sizes = [(n, fact.reading.number / (DAY_S if fact.reading.dimension else 1), fact) for n, fact in facts]
        return [_Number(n, size, fact.pointer) for n, size, fact in sizes if 1 < size <= 400 and size == size // 1]

    @lazy
    def _counts(self) -> list[_Number]:
        """How many records lists have."""
        return [_Number(place, n, pointer) for place, pointer, n in self._known.store.tables]

    @lazy
    def _days(self) -> list[_Number]:
        """The days of the trace, as ordinals."""
        store = self._known.store
        places = {place for cells in store.keys.days.list_groups() for cell in cells for place in cell.places}
        stated = [(place, fact.pointer, fact.reading.value) for place in sorted(places) for fact in store.build(place)]
        dates = [(place, pointer, day.date) for place, pointer, day in stated if isinstance(day, Day)]
        return [_Number(place, date.toordinal(), pointer) for place, pointer, date in dates if date is not None]

    def _cut(self, numbers: list[_Number]) -> list[_Number]:
        """Return the known ones of numbers in the order of the trace."""
        return numbers[: bisect_left(numbers, (self._known.before,))]

    def derive(self, reading: Reading) -> Derivation | None:
        """Return one step that leads to a reading, or None."""
        if reading.kind != "number" or self.exhausted:
            return None
        size, spread = abs(reading.number), reading.tolerance * 1.001 + abs(reading.number) * 1e-6
        if not reading.dimension:
            count = next((one for one in self._cut(self._counts) if one.value == size), None)
            if count is not None:
                return Derivation("count", (count.pointer,))
        wanted = [(reading.dimension, size, spread)]
        if reading.dimension == "money" and reading.written and reading.number:  # of amounts that name no unit
            wanted += [("", abs(reading.written), spread / reading.factor), ("", size * 100, spread * 100)]
        totals = ((target, far, total) for dim, target, far in wanted for total in self._iter_totals(dim, dim))
        found = next((one for target, far, one in totals if abs(abs(one.reading.number) - target) <= far), None)
        if found is None and reading.dimension == "time":
            found = self._find_span(size, spread)
        pair = self._find_pair(wanted) if found is None else None
        if pair is not None and not pair.by_chance:
            return pair
        return found or (self._find_scaled(reading, size, spread) if reading.dimension else None) or pair

    def _find_pair(self, wanted: Sequence[tuple[str, float, float]]) -> Derivation | None:
        """Find two values of a small group with this sum or difference."""
        tried = 0
        for dimension, target, spread in wanted:
            for group in map(self._cut, islice(self._groups[dimension].values(), _MAX_COLUMNS)):
                self._steps += 6 * len(group)
                tried += len(group) ** 2
                found = _find_pair_in(group, target, spread) if 1 < len(group) <= MAX_PAIRED else None
                if found is not None:
                    return found._replace(by_chance=tried * spread > max(target, spread))
        return None

    def _iter_totals(self, dimension: str, meant: str) -> Iterator[Derivation]:
        """Yield the sums and means of the groups of a dimension, as numbers of the dimension that they are meant in."""
        for group in map(self._cut, islice(self._groups[dimension].values(), _MAX_COLUMNS)):
            self._steps += 2 + len(group)
            went_out = [one for one in group if one.value < 0]
            came_in = [one for one in group if one.value > 0] if went_out else []
            for each in filter(None, (group, went_out, came_in)) if group[1:] else ():
                total, pointers = sum(one.value for one in each), tuple([one.pointer for one in each[:8]])
                yield Derivation("sum", pointers, Reading("number", total, meant))
                yield Derivation("mean", pointers, Reading("number", total / len(each), meant))

    def iter_totals(self, dimension: str) -> Iterator[Derivation]:
        """Yield the sums, means, counts and, of small groups, the differences that a text may have meant."""
        for one in dict.fromkeys((dimension, "", "share")):
            yield from self._iter_totals(one, dimension)
        for one in self._cut(self._counts) if not dimension else ():
            yield Derivation("count", (one.pointer,), Reading("number", float(one.value)))
        for dim in dict.fromkeys((dimension, "")):
            for group in map(self._cut, islice(self._groups[dim].values(), _MAX_LISTED)):
                self._steps += len(group)
                for a, b in combinations(group[:_MAX_LISTED], 2):
                    for how, size in (("difference", a.value - b.value), ("sum", a.value + b.value)):
                        yield Derivation(how, (a.pointer, b.pointer), Reading("number", abs(size), dim))

    def _find_scaled(self, reading: Reading, target: float, spread: float) -> Derivation | None:
        """Find a held number that a given one multiplies or divides: a price by the nights that the user asked for."""
        given = {one.value: one.pointer for one in reversed(self._cut(self._given))}
        scales = [(how, n, at) for n, at in [*given.items()][: -_MAX_GIVEN - 1 : -1] for how in ("product", "ratio")]
        scales += [("product", 12.0, "")] if reading.dimension == "money" else []  # of a month
        for how, factor, pointer in scales:
            self._steps += 4
            share = 1 / factor if how == "product" else factor
            size = target * share
            held = Reading("number", size, reading.dimension, spread * share, reading.currency, size)
            near = self._known.find(held, limit=1)
            if near and near[0].pointer != pointer:
                return Derivation(how, tuple(filter(None, (near[0].pointer, pointer))))
        return None

    def _find_span(self, target: float, spread: float) -> Derivation | None:
        """Find two days, or two times, that are this far apart."""
        days = {int(one.value): one.pointer for one in reversed(self._cut(self._days))}
        times = self._known.list_moments("time")
        self._steps += len(days) + len(times) + 1
        whole = round(target / DAY_S)
        near = abs(target - whole * DAY_S) <= max(spread, 1) and len(days) <= _MAX_COLUMNS
        for n in filter(None, (whole, whole - 1, whole + 1)) if near else ():
            for one, pointer in sorted(days.items()):
                if POSITION.sub("/*", pointer) != POSITION.sub("/*", days.get(one + n, pointer)):
                    return Derivation("days between", (pointer, days[one + n]))
        seconds = {cast("Time", fact.reading.value).seconds: fact.pointer for fact in times}
        for one, pointer in seconds.items() if 1 <= target < DAY_S and len(times) <= _MAX_COLUMNS else ():
            other = round(one + target) % DAY_S
            if other in seconds:
                return Derivation("time between", (pointer, seconds[other]))
        return None


def _find_pair_in(group: Sequence[_Number], target: float, spread: float) -> Derivation | None:
    order = sorted([(abs(one.value), n) for n, one in enumerate(group) if one.value])
    for size, n in order:
        for rest, how in ((target - size, "sum"), (size - target, "difference"), (size + target, "difference")):
            at = bisect_left(order, (rest - spread, -1)) if rest >= 0 else len(order)
            if at < len(order) and order[at][0] <= rest + spread and order[at][1] != n:
                return Derivation(how, (group[n].pointer, group[order[at][1]].pointer))
    return None
