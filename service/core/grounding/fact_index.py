"""Look up what a trace holds: facts by size, by day, by time, by code, and what is a slip away from a value."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from itertools import islice
from typing import NamedTuple

from service.core.grounding.fact_store import MAX_NEAR, FactStore
from service.core.grounding.facts import Fact
from service.core.grounding.reading.mentions import Reading
from service.core.grounding.reading.moments import Day, Time
from service.core.grounding.reading.units import may_be_same_currency
from service.core.grounding.slips import SlipIndex, list_digits

MIN_PART = 4
"""The fewest characters of a code that may stand for it, where it has twice as many."""
_MAX_SLIP_CHARS = 64

_CENT = 0.01
LOOSE: dict[str, tuple[tuple[float, float], ...]] = {
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
        """All codes in their order, from the front and from the back."""
        self._digits: dict[str, list[int]] = defaultdict(list)
        self._with_digits = 0
        """How many of the numbers can be found by their digits."""
        self._digit_slips, self._code_slips = SlipIndex(), SlipIndex()
        self._with_slips = 0
        """How many of the codes can be found by a slip."""

    def find(self, reading: Reading, *, limit: int = 4) -> list[Near]:
        """Return facts that say what a reading says, at most `limit`: those in results first."""
        found: list[Near] = []
        best = 0
        for near in self._iter_near(reading):
            found.append(near)
            best += near.how == "same" and near.fact.source == "result"
            if best == limit:  # nothing goes before these
                break
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
        for fact in self._iter_between(dimension, value, spread):
            if may_be_same_currency(reading.currency, fact.reading.currency):
                same = "same" if abs(fact.reading.number) == abs(value) else "rounded"
                yield Near(fact, "minor units" if fact.minor else same)
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
        own = value / reading.written if reading.written and value else 1.0  # 32 °F are 0 °C
        seen: set[str] = set()
        for factor, shift in (*LOOSE.get(reading.dimension, ((1.0, 0.0),)), (own, 0.0)):
            for fact in self._iter_between("", (value - shift) / factor, reading.tolerance / abs(factor)):
                whole = reading.dimension != "money" or factor == 1.0 or fact.reading.number == fact.reading.number // 1
                if fact.pointer not in seen and whole:
                    seen.add(fact.pointer)
                    yield Near(fact, "same" if factor == 1.0 else "unit")

    def _iter_between(self, dimension: str | None, value: float, tolerance: float) -> Iterator[Fact]:
        """Yield the facts with a size within a tolerance of a value, smallest first. None: any dimension, as written."""
        size = abs(value)
        spread = tolerance * 1.0001 + min(size * 1e-9, 0.25)  # two long numbers that differ by one are two
        order = self._get_order(dimension)
        for fact in self._build(order.list_between(size - spread, size + spread), "number"):
            held = fact.reading
            if dimension is None:
                if held.dimension and abs(abs(held.written) - size) <= spread:
                    yield fact
            elif held.dimension == dimension and abs(abs(held.number) - size) <= spread:
                yield fact

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
                if (
                    isinstance(held, Time)
                    and held.seconds // 60 == either
                    and time.seconds % 60 in (0, held.seconds % 60)
                ):
                    yield Near(fact, "same")

    def _iter_codes(self, code: str) -> Iterator[Near]:
        places = self._codes.get(code, ())[:MAX_NEAR] or self._list_plain(code)
        yield from [Near(fact, "same") for fact in self._build(places, "code") if fact.reading.value == code]
        if not places:
            yield from self._iter_wholes(code)
            yield from self._iter_wholes(code.lstrip("0")) if code.startswith("0") else ()

    def _list_plain(self, code: str) -> list[int]:
        """List the numbers of three digits or more that are written like a code."""
        if not (code.isdecimal() and 3 <= len(code) <= 15) or code[0] == "0":
            return []
        near = [n for one in ("", None) for n in self._get_order(one).list_between(float(code), float(code))]
        return [n for n in near if any(fact.reading.value == code for fact in self.build_facts(n))]

    def _order_codes(self) -> tuple[list[str], list[str]]:
        if len(self._code_orders[0]) != len(self._codes):
            self._code_orders = sorted(self._codes), sorted([code[::-1] for code in self._codes])
        return self._code_orders

    def _iter_wholes(self, part: str) -> Iterator[Near]:
        """Yield the codes that begin or end with a part: the last digits of a card, the first of a hash."""
        if len(part) < MIN_PART:
            return
        for order, step in zip(self._order_codes(), (1, -1), strict=True):
            start = part[::step]
            at = bisect_left(order, start)
            for code in order[at : at + 4]:
                if len(code) >= 2 * MIN_PART and code.startswith(start) and code != start:
                    yield Near(self._get_code(code[::step]), "part")

    def goes_on(self, code: str, *, whole: bool) -> bool:
        """Whether a code that stands somewhere begins with this one; `whole`: or is this one."""
        order = self._order_codes()[0]
        at = bisect_left(order, code)
        return any(held.startswith(code) and (whole or held != code) for held in order[at : at + 2])

    def _get_code(self, code: str) -> Fact:
        return next(fact for fact in self._build(self._codes[code], "code") if fact.reading.value == code)

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
        for held in islice(self._codes, self._with_slips, None):
            if len(held) <= _MAX_SLIP_CHARS:
                self._code_slips.add(held)
        self._with_slips = len(self._codes)
        near = self._code_slips.find(code) if len(code) <= _MAX_SLIP_CHARS else ()
        return [(held, self._get_code(held)) for held in near]

    def list_number_slips(self, digits: str, dimension: str) -> list[Fact]:
        """List the numbers of a dimension whose digits, but for zeros at the end, are the same or one slip away."""
        for n in dict.fromkeys(self._places["number"][self._with_digits :]):
            for held in {list_digits(fact.text) for fact in self._build([n], "number")}:
                for each in {held, held.rstrip("0")}:
                    self._digits[each].append(n)
                    self._digit_slips.add(each)
        self._with_digits = len(self._places["number"])
        spelled = {digits, digits.rstrip("0")} if len(digits) <= _MAX_SLIP_CHARS else ()
        alike = [each for one in spelled for each in (one, *self._digit_slips.find(one))]
        near = [n for each in alike for n in self._digits.get(each, ())[:MAX_NEAR]]
        return [fact for fact in self._build(sorted(near), "number") if fact.reading.dimension == dimension]

    def list_around(self, dimension: str, size: float, count: int = 3) -> list[Fact]:
        """Return the facts of a dimension that are nearest in size."""
        facts = self._build(self._get_order(dimension).list_around(size, count), "number")
        near = [fact for fact in facts if fact.reading.dimension == dimension]
        return sorted(near, key=lambda fact: abs(abs(fact.reading.number) - size))[:count]

    def list_days(self) -> list[Fact]:
        """Return a fact for each day of the year."""
        return [next(self._build(each, "day")) for each in self._days.values()]

    def list_times(self) -> list[Fact]:
        """Return a fact for each minute of the day."""
        return [next(self._build(each, "time")) for each in self._times.values()]
