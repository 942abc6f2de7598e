"""Look up what a trace holds before a point of it: by size, day, time, code and name, and what is a slip away from a value."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice, takewhile
from typing import cast

from service.core.grounding.facts import Fact, Part, Source
from service.core.grounding.reading.languages import DATA, Words
from service.core.grounding.reading.mentions import Kind, Reading
from service.core.grounding.reading.moments import Day, Time
from service.core.grounding.reading.units import may_be_same_currency
from service.core.grounding.store import MAX_FACTS, MAX_SLIP_CHARS, Cell, FactStore
from service.core.models.light import lazy

MIN_PART = 4
"""The fewest characters of a code that may stand for it, where it has twice as many."""
_MAX_NEAR = 64
_MAX_NAMED = 4
_MAX_MEMBERS = 40
_MAX_RECORDS = 64

LOOSE = {
    dimension: tuple(
        [(float(factor), float(shift or 0)) for factor, _, shift in (one.partition("+") for one in units.split())]
    )
    for dimension, units in cast("Words", DATA["loose"]).items()
}
"""By dimension, the units that a number whose field names none may be in, as factors and shifts to the base unit."""


class KnownFacts:
    """The facts of a trace that stand before a point of it."""

    def __init__(self, store: FactStore, before: int | None = None) -> None:
        """`before`: the first place that is not known; None: all are."""
        self.store = store
        self.before = len(store.cells) if before is None else before

    @property
    def full(self) -> bool:
        """Whether not all values could be taken in."""
        return self.before >= MAX_FACTS

    def _pick(self, cells: Iterable[Cell], tell: Callable[[Part], str]) -> Iterator[Fact]:
        """Yield the facts among some values, in the order of the trace: from 64 places at most. `tell`: how one fits, or ""."""
        store, found = self.store, list[tuple[Sequence[int], list[tuple[Part, str]]]]()
        for cell in cells:
            parts = [(part, how) for part in store.read(cell) if (how := tell(part))]
            if parts:
                found.append((cell.places[:_MAX_NEAR], parts))
        if found[1:]:
            order = sorted([(place, n) for n, (places, _) in enumerate(found) for place in places])
            pairs = [(place, found[n][1]) for place, n in order[:_MAX_NEAR]]
        else:
            pairs = [(place, parts) for places, parts in found for place in places]
        for place, parts in pairs:
            if place >= self.before:
                return
            for (reading, text, minor, whole), how in parts:
                yield Fact(reading, text, minor, whole, store.sites[place], store.members[place], how)

    def _pick_kind(self, cells: Iterable[Cell], kind: Kind, dimension: str | None = None) -> Iterator[Fact]:
        def tell(part: Part) -> str:
            return "same" if part.reading.kind == kind and dimension in (None, part.reading.dimension) else ""

        return self._pick(cells, tell)

    def find(self, reading: Reading, *, limit: int = 4) -> list[Fact]:
        """Return facts that say what a reading says, at most `limit`: those in results first."""
        found: list[Fact] = []
        best = 0
        for fact in self._iter_near(reading):
            found.append(fact)
            best += fact.how == "same" and fact.site.source == "result"
            if best == limit:  # nothing goes before these
                break
        if found[1:]:
            found.sort(key=lambda fact: (fact.site.source != "result", fact.how != "same"))
        return found[:limit]

    def _iter_near(self, reading: Reading) -> Iterator[Fact]:
        value = reading.value
        if isinstance(value, Day):
            return self._iter_days(value)
        if isinstance(value, Time):
            return self._iter_times(value)
        return self._iter_codes(value) if isinstance(value, str) else self._iter_numbers(reading)

    def _iter_numbers(self, reading: Reading) -> Iterator[Fact]:
        value, dimension, currency = abs(reading.number), reading.dimension, reading.currency

        def tell(held: Reading) -> str:
            same = "same" if abs(held.number) == value else "rounded"
            return same if may_be_same_currency(currency, held.currency) else ""

        found = False
        for fact in self._iter_between(dimension, value, reading.tolerance, tell):
            found = found or (fact.how != "rounded" and fact.site.source == "result")
            yield fact
        if not found:
            yield from self._iter_unitless(reading) if dimension else self._iter_with_units(reading)

    def _iter_with_units(self, reading: Reading) -> Iterator[Fact]:
        """Yield what a bare number may state beside bare numbers: one that has a unit, and a fraction in hundredths."""
        value, spread = reading.number, reading.tolerance
        for dimension in (None, "money", "share"):
            yield from self._iter_between(dimension, value, spread)
        yield from self._iter_between("", value / 100, spread / 100, lambda held: "unit" if held.number < 1 else "")
        if 0 < spread < 0.01:  # `544.43` of a count of cents
            yield from self._iter_between("", value * 100, 0.0, lambda _: "unit")

    def _iter_unitless(self, reading: Reading) -> Iterator[Fact]:
        """Yield the bare numbers that are meant in this unit, or in a common one of its dimension."""
        for factor, shift in dict.fromkeys((*LOOSE.get(reading.dimension, ((1.0, 0.0),)), (reading.factor, 0.0))):
            how = "same" if factor == 1.0 else "unit"
            any_part = reading.dimension != "money" or factor == 1.0

            def tell(held: Reading, how: str = how, any_part: bool = any_part) -> str:  # noqa: FBT001
                return how if any_part or held.number == held.number // 1 else ""

            yield from self._iter_between("", (reading.number - shift) / factor, reading.tolerance / abs(factor), tell)

    def _iter_between(
        self, dimension: str | None, value: float, tolerance: float, tell: Callable[[Reading], str] = lambda _: "same"
    ) -> Iterator[Fact]:
        """Yield the facts with a size within a tolerance of a value, smallest first. None: any dimension, as written."""
        size = abs(value)
        spread = tolerance * 1.0001 + min(size * 1e-9, 0.25)  # two long numbers that differ by one are two
        order = self.store.keys.sort_sizes(dimension)
        at = bisect_left(order, size - spread)
        if at == len(order) or order[at] > size + spread:
            return iter(())
        sizes = self.store.keys.sizes[dimension]
        cells = [cell for one in order[at : bisect_right(order, size + spread)] for cell in sizes.get(one)]

        def tell_part(part: Part) -> str:
            held = part.reading
            if held.kind != "number" or (held.dimension != dimension if dimension is not None else not held.dimension):
                return ""
            if abs(abs(held.number if dimension is not None else held.written) - size) > spread:
                return ""
            return tell(held) and ("minor units" if part.minor else tell(held))

        return self._pick(cells, tell_part)

    def _iter_days(self, day: Day) -> Iterator[Fact]:
        def tell(part: Part) -> str:
            held = part.reading.value
            return "same" if isinstance(held, Day) and day.may_be(held) else ""

        days = self.store.keys.days
        for number in [day.day, 0] if day.day else range(32):
            if cells := days.get((day.month, number)):
                yield from self._pick(cells, tell)

    def _iter_times(self, time: Time) -> Iterator[Fact]:
        minute, second = divmod(time.seconds, 60)
        for either in [minute] if time.exact else [minute, (minute + 720) % 1_440]:

            def tell(part: Part, either: int = either) -> str:
                held = part.reading.value
                fits = isinstance(held, Time) and held.seconds // 60 == either and second in (0, held.seconds % 60)
                return "same" if fits else ""

            yield from self._pick(self.store.keys.times.get(either), tell)

    def _iter_codes(self, code: str) -> Iterator[Fact]:
        exact = [*self._build_codes(code)]
        yield from exact
        if not exact:
            yield from self._iter_wholes(code)
            yield from self._iter_wholes(code.lstrip("0")) if code.startswith("0") else ()

    def _build_codes(self, code: str, how: str = "same") -> Iterator[Fact]:
        """Yield the facts that are this code, or numbers of three digits or more that are written like it."""
        keys = self.store.keys
        cells: Iterable[Cell] = keys.codes.get(code)
        if code.isdecimal() and 3 <= len(code) <= 15 and code[0] != "0":
            size = float(code)
            cells = dict.fromkeys([*cells, *keys.sizes[""].get(size), *keys.sizes[None].get(size)])
        return self._pick(cells, lambda part: how if part.reading.value == code else "") if cells else iter(())

    def _iter_wholes(self, part: str) -> Iterator[Fact]:
        """Yield the codes that begin or end with a part: the last digits of a card, the first of a hash."""
        if len(part) < MIN_PART:
            return
        for order, step in zip(self.store.keys.sorted_codes, (1, -1), strict=True):
            start = part[::step]
            at = bisect_left(order, start)
            for code in order[at : at + 4]:
                if len(code) >= 2 * MIN_PART and code.startswith(start) and code != start:
                    yield from islice(self._build_codes(code[::step], "part"), 1)

    def goes_on(self, code: str, *, whole: bool) -> bool:
        """Whether a code that stands somewhere begins with this one; `whole`: or is this one."""
        order = self.store.keys.sorted_codes[0]
        at = bisect_left(order, code)
        return any(held.startswith(code) and (whole or held != code) for held in order[at : at + 2])

    def has_code(self, code: str) -> bool:
        """Whether this is a whole code that stands somewhere."""
        if any(cell.places[0] < self.before for cell in self.store.keys.codes.get(code)):
            return True
        return code.isdecimal() and next(self._build_codes(code), None) is not None

    def has_code_part(self, code: str) -> bool:
        """Whether this is the greater part of a long code: a phone number without its prefix."""
        bare = code.lstrip("0")
        return len(bare) >= MIN_PART + 3 and next(self._iter_wholes(bare), None) is not None

    def find_slip(self, code: str) -> bool:
        """Whether there is a long code, or one of letters and digits, that differs from this one by a slip."""
        mixed = not code.isdecimal() and any(map(str.isdecimal, code))
        if not MIN_PART + 1 + 3 * (not mixed) <= len(code) <= MAX_SLIP_CHARS:
            return False
        return any(len(held) == len(code) for held, _ in self.list_code_slips(code))

    def list_code_slips(self, code: str) -> list[tuple[str, Fact]]:
        """List the codes that are one slip away, with their first facts."""
        near = self.store.keys.code_slips.find(code) if len(code) <= MAX_SLIP_CHARS else ()
        return [(held, fact) for held in near for fact in islice(self._build_codes(held), 1)]

    def list_number_slips(self, digits: str, dimension: str) -> list[Fact]:
        """List the numbers of a dimension whose digits, but for zeros at the end, are the same or one slip away."""
        spelled = {digits, digits.rstrip("0")} if len(digits) <= MAX_SLIP_CHARS else ()
        alike = [each for one in spelled for each in (one, *self.store.digit_slips.find(one))]
        cells = dict.fromkeys([cell for each in alike for cell in self.store.digits.get(each)])
        return [*self._pick_kind(cells, "number", dimension)]

    def list_around(self, dimension: str, size: float, count: int = 3) -> list[Fact]:
        """Return the facts of a dimension that are nearest in size."""
        order, sizes = self.store.keys.sort_sizes(dimension), self.store.keys.sizes[dimension]
        at = bisect_left(order, size)
        cells = [cell for one in order[max(0, at - count) : at + count] for cell in sizes.get(one)]
        near = self._pick_kind(cells, "number", dimension)
        return sorted(near, key=lambda fact: abs(abs(fact.reading.number) - size))[:count]

    def list_moments(self, kind: Kind) -> list[Fact]:
        """Return a fact for each day of the year, or each minute of the day."""
        groups = (self.store.keys.days if kind == "day" else self.store.keys.times).list_groups()
        return [fact for cells in groups for fact in islice(self._pick_kind(cells, kind), 1)]

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
        places = self.store.records.get(record, [])[:_MAX_MEMBERS]
        return [fact for place in places if place < self.before for fact in self.store.build(place)]

    def list_said(self) -> list[Fact]:
        """Return the numbers in what users wrote."""
        return [fact for place, fact in self.store.said if place < self.before]

    def find_last(self, name: str) -> Fact | None:
        """Return the last value of a field of the results, if it is one that is looked up."""
        store = self.store
        for place in range(self.before - 1, -1, -1):
            if store.members[place] == name and store.sites[place].source == "result":
                return next(iter(store.build(place)), None)
        return None

    def find_named(self, words: Sequence[str], prefer: Collection[Source]) -> list[Fact]:
        """Return some of the short texts of these words, those of the preferred sources first."""
        name, sites = "".join(words), self.store.sites
        cells = self.store.keys.names.get(name)
        places = sorted([place for cell in cells for place in cell.places if place < self.before])
        first = sorted(places, key=lambda place: sites[place].source not in prefer)[:_MAX_NAMED]
        code, texts = Reading("code", name), [str(self.store.cells[n].value) for n in first]
        members = self.store.members
        return [Fact(code, text, False, True, sites[n], members[n]) for n, text in zip(first, texts, strict=True)]

    def has_word(self, word: str, *, of_results: bool = False) -> bool:
        """Whether a word stands somewhere, or in a result."""
        places = self.store.words.get(word, ())
        return any(place < self.before for place in (places[1:] if of_results else places))
