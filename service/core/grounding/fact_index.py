"""Look up what a trace holds: facts by size, by day, by time, by code."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

from service.core.grounding.fact_store import WRITTEN, FactStore
from service.core.grounding.facts import Fact
from service.core.grounding.reading.mentions import Reading
from service.core.grounding.reading.moments import Day, Time
from service.core.grounding.reading.units import may_be_same_currency
from service.core.grounding.slips import SlipIndex, list_digits

MIN_PART = 4
"""The fewest characters of a code that may stand for it, where it has twice as many."""
_MAX_SLIP_CHARS = 64
_MAX_NEAR = 64

_CENT = 0.01
_LOOSE: dict[str, tuple[tuple[float, float], ...]] = {
    "money": ((1.0, 0.0), (_CENT, 0.0)),
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


class FactIndex(FactStore):
    """The facts of a trace up to a point. Adding is cheap; the first lookup after it sorts."""

    def __init__(self, today: date | None = None) -> None:
        """`today`: what `tomorrow` and `next Friday` count from, in texts that people wrote."""
        super().__init__(today)
        self._code_orders: tuple[list[str], list[str]] = ([], [])
        self._slips: dict[str, SlipIndex] = {}
        self._slips_of = [0, 0]
        """How many codes and how many values the indexes of slips have taken in."""

    def _list_code_orders(self) -> tuple[list[str], list[str]]:
        """Return all codes in their order, from the front and from the back."""
        if len(self._code_orders[0]) != len(self._codes):
            self._code_orders = sorted(self._codes), sorted([code[::-1] for code in self._codes])
        return self._code_orders

    def find(self, reading: Reading, *, limit: int = 4) -> list[Near]:
        """Return facts that say what a reading says, at most `limit`: those in results first."""
        found = list(self._iter_found(reading))
        found.sort(key=lambda near: (near.fact.source != "result", near.how != "same"))
        return found[:limit]

    def _iter_found(self, reading: Reading) -> Iterator[Near]:
        value = reading.value
        if isinstance(value, Day):
            yield from self._iter_days(value)
        elif isinstance(value, Time):
            yield from self._iter_times(value)
        elif isinstance(value, str):
            yield from self._iter_codes(value)
        elif reading.kind == "number":
            yield from self._iter_numbers(reading)

    def _iter_numbers(self, reading: Reading) -> Iterator[Near]:
        value, dimension = reading.number, reading.dimension
        for fact in self._list_between(dimension, value, reading.tolerance):
            if may_be_same_currency(reading.currency, fact.reading.currency):
                same = "same" if abs(fact.reading.number) == abs(value) else "rounded"
                yield Near(fact, "minor units" if fact.minor else same)
        yield from self._iter_unitless(reading) if dimension else self._iter_with_units(reading)

    def _iter_with_units(self, reading: Reading) -> Iterator[Near]:
        """Yield what a bare number may state beside bare numbers: one that has a unit, and a fraction in hundredths."""
        for dimension in (WRITTEN, "money", "share"):
            for fact in self._list_between(dimension, reading.number, reading.tolerance):
                yield Near(fact, "minor units" if fact.minor else "same")
        for fact in self._list_between("", reading.number / 100, reading.tolerance / 100):
            if fact.reading.number < 1:
                yield Near(fact, "unit")

    def _iter_unitless(self, reading: Reading) -> Iterator[Near]:
        """Yield the bare numbers that are meant in this unit, or in a common one of its dimension."""
        value = reading.number
        own = value / reading.written if reading.written else 1.0
        seen: set[str] = set()
        for factor, shift in (*_LOOSE.get(reading.dimension, ((1.0, 0.0),)), (own, 0.0)):
            for fact in self._list_between("", (value - shift) / factor, reading.tolerance / abs(factor)):
                if fact.pointer not in seen and (factor != _CENT or fact.reading.number == fact.reading.number // 1):
                    seen.add(fact.pointer)
                    yield Near(fact, "same" if factor == 1.0 else "unit")

    def _list_between(self, dimension: str, value: float, tolerance: float) -> list[Fact]:
        """Return the facts whose size is within a tolerance of that of a value, smallest first."""
        size = abs(value)
        spread = tolerance * 1.0001 + min(size * 1e-9, 0.25)  # two long numbers that differ by one are two
        found: list[tuple[float, int, Fact]] = []
        for written in list(self._orders) if dimension == WRITTEN else [dimension]:
            for factor, order in self._orders.get(written, {}).items():
                if dimension == WRITTEN and not written and factor == 1:
                    continue
                by = 1.0 if dimension == WRITTEN else abs(factor)
                for n in order.list_between((size - spread) / by, (size + spread) / by, _MAX_NEAR):
                    found += [
                        (held, n, fact)
                        for fact in self.build_facts(n)
                        for held in [abs(_get_size(fact, dimension))]
                        if abs(held - size) <= spread
                    ]
        found.sort(key=lambda one: one[:2])
        return list(dict.fromkeys([fact for _, _, fact in found[:_MAX_NEAR]]))

    def _build(self, places: list[int] | tuple[int, ...], kind: str) -> Iterator[Fact]:
        """Yield the facts of a kind that the values of these numbers are."""
        for n in dict.fromkeys(places):
            yield from [fact for fact in self.build_facts(n) if fact.reading.kind == kind]

    def _iter_days(self, day: Day) -> Iterator[Near]:
        for number in [day.day, 0] if day.day else range(32):
            for fact in self._build(self._days.get((day.month, number), ()), "day"):
                if isinstance(fact.reading.value, Day) and day.may_be(fact.reading.value):
                    yield Near(fact, "same")

    def _iter_times(self, time: Time) -> Iterator[Near]:
        minute = time.seconds // 60
        for either in [minute] if time.exact else [minute, (minute + 720) % 1_440]:
            for fact in self._build(self._times.get(either, ()), "time"):
                held = fact.reading.value
                if not isinstance(held, Time) or held.seconds // 60 != either:
                    continue
                if time.seconds % 60 == 0 or held.seconds == time.seconds:
                    yield Near(fact, "same")

    def _iter_codes(self, code: str) -> Iterator[Near]:
        places = self._codes.get(code, ())[:_MAX_NEAR] or self._list_plain(code)
        yield from [Near(fact, "same") for fact in self._build(places, "code") if fact.reading.value == code]
        if places:
            return
        yield from self._iter_wholes(code)
        yield from self._iter_wholes(code.lstrip("0")) if code.startswith("0") else ()

    def _list_plain(self, code: str) -> list[int]:
        """List the numbers of three digits or more that are written like a code."""
        if not (code.isdecimal() and 3 <= len(code) <= 15) or code[0] == "0":
            return []
        value = float(code)
        orders = [order for orders in self._orders.values() for order in orders.values()]
        near = [n for order in orders for n in order.list_between(value, value, _MAX_NEAR)]
        return [n for n in near if any(fact.reading.value == code for fact in self.build_facts(n))]

    def _iter_wholes(self, part: str) -> Iterator[Near]:
        """Yield the codes that begin or end with a part: the last digits of a card, the first of a hash."""
        if len(part) < MIN_PART:
            return
        for order, step in zip(self._list_code_orders(), (1, -1), strict=True):
            start = part[::step]
            at = bisect_left(order, start)
            for code in order[at : at + 4]:
                if len(code) >= 2 * MIN_PART and code.startswith(start) and code != start:
                    whole = code[::step]
                    yield Near(
                        next(fact for fact in self._build(self._codes[whole], "code") if fact.reading.value == whole),
                        "part",
                    )

    def has_code(self, code: str) -> bool:
        """Whether this is a whole code that stands somewhere."""
        return code in self._codes or bool(self._list_plain(code))

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
        index = self._slips.setdefault("code", SlipIndex())
        for held in list(self._codes)[self._slips_of[0] :]:
            if len(held) <= _MAX_SLIP_CHARS:
                index.add(held, self._codes[held][0])
        self._slips_of[0] = len(self._codes)
        near = index.find(code) if len(code) <= _MAX_SLIP_CHARS else ()
        return [(held, next(self._find_code(n, held))) for held, n in near]

    def _find_code(self, n: int, code: str) -> Iterator[Fact]:
        return (fact for fact in self.build_facts(n) if fact.reading.value == code)

    def list_number_slips(self, digits: str, dimension: str) -> list[Fact]:
        """List the numbers of a dimension whose digits, but for zeros at the end, are one slip away."""
        for n in self._numbered[self._slips_of[1] :]:
            for fact in self._build([n], "number"):
                index = self._slips.setdefault(f" {fact.reading.dimension}", SlipIndex())
                held = list_digits(fact.text)
                for each in {held, held.rstrip("0")}:
                    index.add(each, n, result=fact.source == "result")
        self._slips_of[1] = len(self._numbered)
        index = self._slips.get(f" {dimension}", SlipIndex())
        near = dict.fromkeys([n for each in {digits, digits.rstrip("0")} for _, n in index.find(each, same=True)])
        return [fact for fact in self._build(sorted(near), "number") if fact.reading.dimension == dimension]

    def list_around(self, dimension: str, size: float, count: int = 3) -> list[Fact]:
        """Return the facts of a dimension that are nearest in size."""
        near: list[tuple[float, int, Fact]] = []
        for factor, order in self._orders.get(dimension, {}).items():
            sizes = order.sort()
            at = bisect_left(sizes, (size / abs(factor), -1))
            for _, n in sizes[max(0, at - count) : at + count]:
                facts = [fact for fact in self._build([n], "number") if fact.reading.dimension == dimension]
                near += [(abs(abs(fact.reading.number) - size), n, fact) for fact in facts]
        return [fact for _, _, fact in sorted(near, key=lambda one: one[:2])[:count]]

    def list_days(self) -> list[Fact]:
        """Return a fact for each day."""
        return [next(self._build(each, "day")) for each in self._days.values()]

    def list_times(self) -> list[Fact]:
        """Return a fact for each minute of the day."""
        return [next(self._build(each, "time")) for each in self._times.values()]


def _get_size(fact: Fact, dimension: str) -> float:
    """Return the size of a fact as it stands in the order of a dimension; of any other, infinity."""
    if fact.reading.kind != "number":
        return float("inf")
    if dimension == WRITTEN:
        return fact.reading.written or float("inf")
    return fact.reading.number if fact.reading.dimension == dimension else float("inf")
