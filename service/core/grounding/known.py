"""Look up what a trace holds before a point of it: by size, day, time, code and name, and what is a slip away from a value."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from heapq import merge
from itertools import islice, takewhile
from typing import NamedTuple

from service.core.grounding.facts import Fact, Source
from service.core.grounding.reading.mentions import Kind, Reading
from service.core.grounding.reading.moments import Day, Time
from service.core.grounding.reading.units import may_be_same_currency
from service.core.grounding.slips import SlipIndex, list_digits
from service.core.grounding.store import MAX_FACTS, FactStore, Index, Places
from service.core.models.light import lazy

MIN_PART = 4
"""The fewest characters of a code that may stand for it, where it has twice as many."""
_MAX_NEAR = 64
_MAX_NAMED = 4
_MAX_SLIP_CHARS = 64
_MAX_MEMBERS = 40
_MAX_RECORDS = 64

LOOSE: dict[str, tuple[tuple[float, float], ...]] = {
    "money": ((1.0, 0.0), (0.01, 0.0)),
    "share": ((1.0, 0.0), (0.01, 0.0)),
    "time": ((1.0, 0.0), (0.001, 0.0), (60.0, 0.0), (3_600.0, 0.0), (86_400.0, 0.0)),
    "temperature": ((1.0, 0.0), (1.0, -273.15), (5 / 9, -160 / 9)),
    "mass": ((1.0, 0.0), (1_000.0, 0.0)),
}
"""The units that a number whose field names none may be in, as factors and shifts to the base unit; else the base unit alone."""


class Near(NamedTuple):
    """A fact that a reading equals, and how: `same`, `rounded`, `unit`, `minor units`, `part`."""

    fact: Fact
    how: str


class Orders:
    """The keys of a store in order, and what is a slip away from them: made once, and only what is asked for."""

    def __init__(self, store: FactStore) -> None:
        self._store, self._sizes = store, dict[str | None, list[float]]()

    def sort_sizes(self, dimension: str | None) -> list[float]:
        """Return the sizes of a dimension in order; None: of all numbers that have one, as written."""
        found = self._sizes.get(dimension)
        if found is None:
            keys = self._store.keys
            found = self._sizes[dimension] = sorted(keys.written if dimension is None else keys.sizes[dimension])
        return found

    @lazy
    def codes(self) -> list[str]:
        """All codes in order."""
        return sorted(self._store.keys.codes)

    @lazy
    def reversed_codes(self) -> list[str]:
        """All codes from the back, in order."""
        return sorted([code[::-1] for code in self._store.keys.codes])

    @lazy
    def code_slips(self) -> SlipIndex:
        """Codes by what is a slip away."""
        return SlipIndex([code for code in self._store.keys.codes if len(code) <= _MAX_SLIP_CHARS])

    @lazy
    def digits(self) -> Index[str]:
        """Numbers by their digits, with and without zeros at the end."""
        found: Index[str] = defaultdict(list)
        for places in self._store.keys.iter_numbers():
            facts = self._store.build(places[0])
            for digits in {list_digits(fact.text) for fact in facts if fact.reading.kind == "number"}:
                for each in {digits, digits.rstrip("0")}:
                    found[each].append(places)
        return found

    @lazy
    def digit_slips(self) -> SlipIndex:
        """Digits of numbers by what is a slip away."""
        return SlipIndex(self.digits)

    @lazy
    def said(self) -> list[tuple[int, Fact]]:
        """The numbers in what users wrote, with their places."""
        held = self._store.held
        places = [place for place, (holder, _, _) in enumerate(held) if holder.source == "user"]
        return [(n, fact) for n in places for fact in self._store.build(n) if fact.reading.kind == "number"]


class KnownFacts:
    """The facts of a trace that stand before a point of it."""

    def __init__(self, store: FactStore, before: int | None = None, orders: Orders | None = None) -> None:
        """`before`: the first place that is not known; None: all are. `orders`: those of the store, if they are made."""
        self.store, self.orders = store, orders or Orders(store)
        self.before = len(store.held) if before is None else before
        self.today = store.today

    @property
    def full(self) -> bool:
        """Whether not all values could be taken in."""
        return self.before >= MAX_FACTS

    def _iter_places(self, groups: Sequence[Places]) -> Iterator[int]:
        """Yield the known ones of several lists of places, in the order of the trace."""
        before = self.before
        known = [places for places in groups if places[0] < before]
        if not known or (len(known) == 1 and known[0][-1] < before):
            return iter(known[0] if known else ())
        return takewhile(before.__gt__, merge(*known))

    def _build(self, groups: Sequence[Places], kind: Kind, most: int = _MAX_NEAR) -> Iterator[Fact]:
        """Yield the facts of a kind that stand at the first of these places."""
        build = self.store.build
        for place in islice(self._iter_places(groups), most):
            for fact in build(place):
                if fact.reading.kind == kind:
                    yield fact

    def find(self, reading: Reading, *, limit: int = 4) -> list[Near]:
        """Return facts that say what a reading says, at most `limit`: those in results first."""
        found: list[Near] = []
        best = 0
        for near in self._iter_near(reading):
            found.append(near)
            best += near.how == "same" and near.fact.source == "result"
            if best == limit:  # nothing goes before these
                break
        if found[1:]:
            found.sort(key=lambda near: (near.fact.source != "result", near.how != "same"))
        return found[:limit]

    def _iter_near(self, reading: Reading) -> Iterator[Near]:
        value = reading.value
        if isinstance(value, Day):
            return self._iter_days(value)
        if isinstance(value, Time):
            return self._iter_times(value)
        if isinstance(value, str):
            return self._iter_codes(value)
        return self._iter_numbers(reading) if reading.kind == "number" else iter(())

    def _iter_numbers(self, reading: Reading) -> Iterator[Near]:
        value, dimension, spread = reading.number, reading.dimension, reading.tolerance
        found = False
        for fact in self._iter_between(dimension, value, spread):
            if may_be_same_currency(reading.currency, fact.reading.currency):
                same = "same" if abs(fact.reading.number) == abs(value) else "rounded"
                found = found or (same == "same" and fact.source == "result")
                yield Near(fact, "minor units" if fact.minor else same)
        if not found:
            yield from self._iter_unitless(reading) if dimension else self._iter_with_units(reading)

    def _iter_with_units(self, reading: Reading) -> Iterator[Near]:
        """Yield what a bare number may state beside bare numbers: one that has a unit, and a fraction in hundredths."""
        for dimension in (None, "money", "share"):
            for fact in self._iter_between(dimension, reading.number, reading.tolerance):
                yield Near(fact, "minor units" if fact.minor else "same")
        for fact in self._iter_between("", reading.number / 100, reading.tolerance / 100):
            if fact.reading.number < 1:
                yield Near(fact, "unit")
        if 0 < reading.tolerance < 0.01:  # `544.43` of a count of cents
            yield from (Near(fact, "unit") for fact in self._iter_between("", reading.number * 100, 0.0))

    def _iter_unitless(self, reading: Reading) -> Iterator[Near]:
        """Yield the bare numbers that are meant in this unit, or in a common one of its dimension."""
        value = reading.number
        seen: set[str] = set()
        for factor, shift in (*LOOSE.get(reading.dimension, ((1.0, 0.0),)), (reading.factor, 0.0)):
            for fact in self._iter_between("", (value - shift) / factor, reading.tolerance / abs(factor)):
                whole = reading.dimension != "money" or factor == 1.0 or fact.reading.number == fact.reading.number // 1
                if fact.pointer not in seen and whole:
                    seen.add(fact.pointer)
                    yield Near(fact, "same" if factor == 1.0 else "unit")

    def _iter_between(self, dimension: str | None, value: float, tolerance: float) -> Iterator[Fact]:
        """Yield the facts with a size within a tolerance of a value, smallest first. None: any dimension, as written."""
        size = abs(value)
        spread = tolerance * 1.0001 + min(size * 1e-9, 0.25)  # two long numbers that differ by one are two
        order = self.orders.sort_sizes(dimension)
        at = bisect_left(order, size - spread)
        if at == len(order) or order[at] > size + spread:
            return
        keys = self.store.keys.written if dimension is None else self.store.keys.sizes[dimension]
        near = [places for one in order[at : bisect_right(order, size + spread)] for places in keys[one]]
        for fact in self._build(near, "number"):
            held = fact.reading
            if dimension is None:
                if held.dimension and abs(abs(held.written) - size) <= spread:
                    yield fact
            elif held.dimension == dimension and abs(abs(held.number) - size) <= spread:
                yield fact

    def _iter_days(self, day: Day) -> Iterator[Near]:
        days = self.store.keys.days
        for number in [day.day, 0] if day.day else range(32):
            for fact in self._build(days.get((day.month, number), ()), "day"):
                if isinstance(fact.reading.value, Day) and day.may_be(fact.reading.value):
                    yield Near(fact, "same")

    def _iter_times(self, time: Time) -> Iterator[Near]:
        minute, times = time.seconds // 60, self.store.keys.times
        for either in [minute] if time.exact else [minute, (minute + 720) % 1_440]:
            for fact in self._build(times.get(either, ()), "time"):
                held = fact.reading.value
                if (
                    isinstance(held, Time)
                    and held.seconds // 60 == either
                    and time.seconds % 60 in (0, held.seconds % 60)
                ):
                    yield Near(fact, "same")

    def _iter_codes(self, code: str) -> Iterator[Near]:
        exact = [Near(fact, "same") for fact in self._build_codes(code)]
        yield from exact
        if not exact:
            yield from self._iter_wholes(code)
            yield from self._iter_wholes(code.lstrip("0")) if code.startswith("0") else ()

    def _build_codes(self, code: str) -> Iterator[Fact]:
        """Yield the facts that are this code, or numbers of three digits or more that are written like it."""
        keys = self.store.keys
        groups = keys.codes.get(code, [])
        if code.isdecimal() and 3 <= len(code) <= 15 and code[0] != "0":
            groups = [*groups, *keys.sizes[""].get(float(code), ()), *keys.written.get(float(code), ())]
        return (fact for fact in self._build(groups, "code") if fact.reading.value == code)

    def _iter_wholes(self, part: str) -> Iterator[Near]:
        """Yield the codes that begin or end with a part: the last digits of a card, the first of a hash."""
        if len(part) < MIN_PART:
            return
        for order, step in ((self.orders.codes, 1), (self.orders.reversed_codes, -1)):
            start = part[::step]
            at = bisect_left(order, start)
            for code in order[at : at + 4]:
                if len(code) >= 2 * MIN_PART and code.startswith(start) and code != start:
                    yield from (Near(fact, "part") for fact in islice(self._build_codes(code[::step]), 1))

    def goes_on(self, code: str, *, whole: bool) -> bool:
        """Whether a code that stands somewhere begins with this one; `whole`: or is this one."""
        order = self.orders.codes
        at = bisect_left(order, code)
        return any(held.startswith(code) and (whole or held != code) for held in order[at : at + 2])

    def has_code(self, code: str) -> bool:
        """Whether this is a whole code that stands somewhere."""
        return next(self._build_codes(code), None) is not None

    def has_code_part(self, code: str) -> bool:
        """Whether this is the greater part of a long code: a phone number without its prefix."""
        bare = code.lstrip("0")
        return len(bare) >= MIN_PART + 3 and next(self._iter_wholes(bare), None) is not None

    def find_slip(self, code: str) -> bool:
        """Whether there is a long code, or one of letters and digits, that differs from this one by a slip."""
        mixed = not code.isdecimal() and any(map(str.isdecimal, code))
        if not MIN_PART + 1 + 3 * (not mixed) <= len(code) <= _MAX_SLIP_CHARS:
            return False
        return any(len(held) == len(code) for held, _ in self.list_code_slips(code))

    def list_code_slips(self, code: str) -> list[tuple[str, Fact]]:
        """List the codes that are one slip away, with their first facts."""
        near = self.orders.code_slips.find(code) if len(code) <= _MAX_SLIP_CHARS else ()
        return [(held, fact) for held in near for fact in islice(self._build_codes(held), 1)]

    def list_number_slips(self, digits: str, dimension: str) -> list[Fact]:
        """List the numbers of a dimension whose digits, but for zeros at the end, are the same or one slip away."""
        spelled = {digits, digits.rstrip("0")} if len(digits) <= _MAX_SLIP_CHARS else ()
        alike = dict.fromkeys([each for one in spelled for each in (one, *self.orders.digit_slips.find(one))])
        near = [
            place for each in alike for place in islice(self._iter_places(self.orders.digits.get(each, ())), _MAX_NEAR)
        ]
        facts = [fact for place in sorted({*near}) for fact in self.store.build(place)]
        return [fact for fact in facts if fact.reading.kind == "number" and fact.reading.dimension == dimension]

    def list_around(self, dimension: str, size: float, count: int = 3) -> list[Fact]:
        """Return the facts of a dimension that are nearest in size."""
        order, keys = self.orders.sort_sizes(dimension), self.store.keys.sizes[dimension]
        at = bisect_left(order, size)
        facts = self._build(
            [places for one in order[max(0, at - count) : at + count] for places in keys[one]], "number"
        )
        near = [fact for fact in facts if fact.reading.dimension == dimension]
        return sorted(near, key=lambda fact: abs(abs(fact.reading.number) - size))[:count]

    def list_moments(self, kind: Kind) -> list[Fact]:
        """Return a fact for each day of the year, or each minute of the day."""
        groups = self.store.keys.days.values() if kind == "day" else self.store.keys.times.values()
        return [fact for each in groups for fact in islice(self._build(each, kind), 1)]

    def list_first(self, kind: Kind, most: int) -> list[Fact]:
        """Return the first facts of a kind."""
        first = range(min(self.before, 4 * most))
        return [*islice((fact for n in first for fact in self.store.build(n) if fact.reading.kind == kind), most)]

    @lazy
    def only_record(self) -> Sequence[str]:
        """The record of the results if there is one alone; empty if not, or if there are too many of any kind to look through."""
        known = takewhile(lambda one: one[1][0] < self.before, self.store.records.items())
        first = [record for record, _ in islice(known, _MAX_RECORDS + 1)]
        found = [record for record in first if "/result/" in record]
        return found if len(found) == 1 and len(first) <= _MAX_RECORDS else ()

    def list_record(self, record: str) -> list[Fact]:
        """Return the facts of the members of an object."""
        places = islice(self._iter_places([places] if (places := self.store.records.get(record)) else []), _MAX_MEMBERS)
        return [fact for place in places for fact in self.store.build(place)]

    def list_said(self) -> list[Fact]:
        """Return the numbers in what users wrote."""
        return [fact for place, fact in self.orders.said if place < self.before]

    def find_last(self, name: str) -> Fact | None:
        """Return the last value of a field of the results, if it is one that is looked up."""
        for place in range(self.before - 1, -1, -1):
            holder, key, _ = self.store.held[place]
            if key == name and holder.source == "result":
                return next(iter(self.store.build(place)), None)
        return None

    def find_named(self, words: Collection[str], prefer: Collection[Source]) -> list[Fact]:
        """Return some of the short texts of these words, those of the preferred sources first."""
        name, held = "".join(words), self.store.held
        groups = self.store.keys.names.get(name, ())
        first = [*islice((n for n in self._iter_places(groups) if held[n][0].source in prefer), _MAX_NAMED)]
        if len(first) < _MAX_NAMED:
            more = (n for n in self._iter_places(groups) if held[n][0].source not in prefer)
            first += islice(more, _MAX_NAMED - len(first))
        code = Reading("code", name)
        return [Fact(code, holder.enter(key), str(text)) for holder, key, text in [held[n] for n in first]]

    def has_word(self, word: str, *, of_results: bool = False) -> bool:
        """Whether a word stands somewhere, or in a result."""
        places = self.store.words.get(word, ())
        return any(place < self.before for place in (places[1:] if of_results else places))
