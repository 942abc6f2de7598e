"""An index of facts by what they say: by size, by day, by time, by code and by name."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Collection, Iterator
from datetime import date
from itertools import islice
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.grounding.facts import (
    Fact,
    Site,
    Source,
    iter_leaves,
    list_names,
    read_code,
    read_number,
    read_string,
    split_plain,
)
from service.core.grounding.fields import tells_minor
from service.core.grounding.reading.mentions import Reading
from service.core.grounding.reading.moments import Day, Time, list_weekdays
from service.core.grounding.reading.units import may_be_same_currency
from service.core.grounding.reading.values import find_values
from service.core.grounding.slips import count_slips
from service.core.results.structure import TextStructure, build_passage_pointer, iter_bodies, read_leaf, read_text
from service.core.trace import Step, ToolDef

MAX_FACTS = 100_000
"""The most values of one trace that are indexed. Beyond it nothing is called `nowhere`."""
MIN_PART = 4
"""The fewest characters of a code that may stand for it, where it has twice as many."""
MAX_READ_CHARS = 64_000
_MAX_SLIP_CHARS = 64
MAX_SCANNED = 5_000
"""The most facts that are looked through one by one, for those that a value may be a slip of."""
_MAX_NEAR = 64
_FEW_NEW = 64

_CENT = 0.01
_WRITTEN = "as written"
"""The index of numbers that have a unit by what they are without it."""
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


class FactIndex:
    """The facts of a trace up to a point. Adding is cheap; the first lookup after it sorts."""

    def __init__(self, today: date | None = None) -> None:
        """`today`: what `tomorrow` and `next Friday` count from, in texts that people wrote."""
        self.today = today
        self.facts: list[Fact] = []
        self.names: dict[tuple[str, ...], list[Fact]] = defaultdict(list)
        """Short texts, by their words."""
        self.words: set[str] = set()
        """All words of all texts."""
        self.result_words: set[str] = set()
        """The words of results alone."""
        self.sources: set[Source] = set()
        """Who wrote anything at all: a value, a word, a truth value."""
        self.tables: list[tuple[str, list[JsonValue]]] = []
        """Every list with its pointer."""
        self.said: list[Fact] = []
        """The numbers in what users wrote."""
        self.fields: dict[str, Fact] = {}
        """The last value of each field of the results, by its name."""
        self._numbers: dict[str, list[tuple[float, int]]] = defaultdict(list)
        self._new: list[tuple[str, float, int]] = []
        """Numbers that are not in their order yet."""
        self._days: dict[tuple[int, int], list[int]] = defaultdict(list)
        self._times: dict[int, list[int]] = defaultdict(list)
        self._codes: dict[str, list[int]] = defaultdict(list)
        self._code_orders: tuple[list[str], list[str]] = ([], [])

    @property
    def full(self) -> bool:
        """Whether not all facts could be taken in."""
        return len(self.facts) >= MAX_FACTS

    def add_value(self, value: JsonValue, place: Site, bodies: Collection[str] = ()) -> None:
        """Add every leaf of a JSON value. `bodies`: the pointers of texts that are what a tool returned."""
        for at, leaf in iter_leaves(value, place):
            if self.full:
                return
            if isinstance(leaf, list):
                self.tables.append((at.pointer, leaf))
            elif isinstance(leaf, bool):
                self.sources.add(at.source)
            elif isinstance(leaf, str):
                if at.pointer in bodies:
                    self._add_passages(read_text(leaf), at)
                else:
                    self._add_passages(read_leaf(leaf), at)
                self._add_words(leaf, at)
                self._add_all(read_code(leaf, at))
                self._add_all(read_string(leaf, at))
            elif leaf is not None and not isinstance(leaf, dict):
                self._add_all(read_number(float(leaf), repr(leaf), at))

    def add_result(self, content: JsonValue, place: Site) -> None:
        """Add what a tool returned; of a text, the structure in it and the values of the words around it."""
        if not isinstance(content, str):
            self.add_value(content, place, {f"{place.pointer}{body.pointer}" for body in iter_bodies(content)})
            return
        reading = read_text(content)
        self._add_passages(reading, place)
        self.add_text(reading.rest, place.pointer, place.source)
        if not reading.passages:
            self._add_words(content, place)
            self._add_all(read_code(content, place))

    def add_step(self, step: Step, tool: ToolDef | None, source: Source | None = "result") -> str:
        """Add a call's arguments and what it returned, unless `source` is None; return the pointer of its result."""
        pointer, minor = f"/steps/{step.index}", tells_minor(tool)
        given = cast("JsonValue", dict(step.call.arguments or {}))
        self.add_value(given, Site(f"{pointer}/call/arguments", "argument", minor_told=minor))
        if step.result is None:
            return f"{pointer}/result"
        if source is not None:
            self.add_result(step.result.content, Site(f"{pointer}/result/content", source, minor_told=minor))
        return f"{pointer}/result/content"

    def _add_passages(self, structure: TextStructure, place: Site) -> None:
        for passage in structure.passages:
            self.add_result(passage.value, place._replace(pointer=build_passage_pointer(place.pointer, passage)))

    def add_text(self, text: str, pointer: str, source: Source) -> None:
        """Add the values in a text that somebody wrote."""
        place = Site(pointer, source)
        self._add_words(text, place, names=False)
        for mention in find_values(text, self.today):
            self._add_all(Fact(reading, place, mention.text, whole=False) for reading in mention.readings)
            for day in list_weekdays(mention.readings[0].number, self.today) if mention.kind == "weekday" else ():
                self._add(Fact(Reading("day", day), place, mention.text, whole=False))

    def _add_words(self, text: str, place: Site, *, names: bool = True) -> None:
        words = split_plain(text[:MAX_READ_CHARS])
        self.words.update(words)
        if words:
            self.sources.add(place.source)
        if place.source in ("result", "error"):
            self.result_words.update(words)
        for name in list_names(text.strip()) if names else ():
            self.names[name].append(Fact(Reading("code", "".join(name)), place, text))

    def _add_all(self, facts: Iterator[Fact]) -> None:
        for fact in facts:
            if not self.full:
                self._add(fact)

    def _add(self, fact: Fact) -> None:
        n, reading = len(self.facts), fact.reading
        self.facts.append(fact)
        self.sources.add(fact.source)
        value = reading.value
        if isinstance(value, Day):
            self._days[value.month, value.day].append(n)
        elif isinstance(value, Time):
            self._times[value.seconds // 60].append(n)
        elif isinstance(value, str):
            self._codes[value].append(n)
        elif reading.kind == "number":
            self._new.append((reading.dimension, abs(value), n))
            if reading.dimension:
                self._new.append((_WRITTEN, abs(reading.written), n))
            if fact.source == "user":
                self.said.append(fact)
        if fact.name and fact.source == "result":
            self.fields[fact.name] = fact

    def _sort(self) -> None:
        """Put what is new into its order: few by search, many by sorting."""
        few = len(self._new) <= _FEW_NEW
        for dimension, size, n in self._new:
            if few:
                insort(self._numbers[dimension], (size, n))
            else:
                self._numbers[dimension].append((size, n))
        for order in self._numbers.values() if not few else ():
            order.sort()
        self._new.clear()

    def _list_code_orders(self) -> tuple[list[str], list[str]]:
        """Return all codes in their order, from the front and from the back."""
        if len(self._code_orders[0]) != len(self._codes):
            self._code_orders = sorted(self._codes), sorted([code[::-1] for code in self._codes])
        return self._code_orders

    def find(self, reading: Reading, *, limit: int = 4) -> list[Near]:
        """Return facts that say what a reading says, at most `limit`: those in results first."""
        self._sort()
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
        for dimension in (_WRITTEN, "money", "share"):
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
        """Return the facts whose size is within a tolerance of that of a value."""
        order, size = self._numbers.get(dimension, []), abs(value)
        spread = tolerance * 1.0001 + min(size * 1e-9, 0.25)  # two long numbers that differ by one are two
        found: list[Fact] = []
        first = bisect_left(order, (size - spread, -1))
        for held, n in order[first : first + _MAX_NEAR]:
            if held > size + spread:
                break
            found.append(self.facts[n])
        return found

    def _iter_days(self, day: Day) -> Iterator[Near]:
        for number in [day.day, 0] if day.day else range(32):
            for n in self._days.get((day.month, number), ()):
                held = self.facts[n].reading.value
                if isinstance(held, Day) and day.may_be(held):
                    yield Near(self.facts[n], "same")

    def _iter_times(self, time: Time) -> Iterator[Near]:
        minute = time.seconds // 60
        for either in [minute] if time.exact else [minute, (minute + 720) % 1_440]:
            for n in self._times.get(either, ()):
                held = self.facts[n].reading.value
                if isinstance(held, Time) and (time.seconds % 60 == 0 or held.seconds == time.seconds):
                    yield Near(self.facts[n], "same")

    def _iter_codes(self, code: str) -> Iterator[Near]:
        places = self._codes.get(code, ())
        yield from [Near(self.facts[n], "same") for n in places[:_MAX_NEAR]]
        if places:
            return
        yield from self._iter_wholes(code)
        yield from self._iter_wholes(code.lstrip("0")) if code.startswith("0") else ()

    def _iter_wholes(self, part: str) -> Iterator[Near]:
        """Yield the codes that begin or end with a part: the last digits of a card, the first of a hash."""
        if len(part) < MIN_PART:
            return
        for order, step in zip(self._list_code_orders(), (1, -1), strict=True):
            start = part[::step]
            at = bisect_left(order, start)
            for code in order[at : at + 4]:
                if len(code) >= 2 * MIN_PART and code.startswith(start) and code != start:
                    yield Near(self.facts[self._codes[code[::step]][0]], "part")

    def has_code(self, code: str) -> bool:
        """Whether this is a whole code that stands somewhere."""
        return code in self._codes

    def has_code_part(self, code: str) -> bool:
        """Whether this is the greater part of a long code: a phone number without its prefix."""
        bare = code.lstrip("0")
        return len(bare) >= MIN_PART + 3 and next(self._iter_wholes(bare), None) is not None

    def find_slip(self, code: str) -> str | None:
        """Find a long code, or one of letters and digits, that differs from this one by a slip."""
        mixed = not code.isdecimal() and any(map(str.isdecimal, code))
        if not MIN_PART + 1 + 3 * (not mixed) <= len(code) <= _MAX_SLIP_CHARS or len(self._codes) > MAX_SCANNED:
            return None
        return next((held for held in self._codes if len(held) == len(code) and count_slips(code, held) == 1), None)

    @property
    def code_count(self) -> int:
        """How many codes there are."""
        return len(self._codes)

    def iter_codes(self) -> Iterator[tuple[str, Fact]]:
        """Yield codes with their first facts, as many as may be looked through."""
        return ((code, self.facts[places[0]]) for code, places in islice(self._codes.items(), MAX_SCANNED))

    def iter_numbers(self, dimension: str) -> Iterator[Fact]:
        """Yield facts of a dimension, in order of size, as many as may be looked through."""
        self._sort()
        return (self.facts[n] for _, n in islice(self._numbers.get(dimension, ()), MAX_SCANNED))

    def list_around(self, dimension: str, size: float, count: int = 3) -> list[Fact]:
        """Return the facts of a dimension that are nearest in size."""
        self._sort()
        order = self._numbers.get(dimension, [])
        at = bisect_left(order, (size, -1))
        near = sorted(order[max(0, at - count) : at + count], key=lambda each: abs(each[0] - size))
        return [self.facts[n] for _, n in near[:count]]

    def list_days(self) -> list[Fact]:
        """Return all days."""
        return [self.facts[n] for each in self._days.values() for n in each]

    def list_times(self) -> list[Fact]:
        """Return all times."""
        return [self.facts[n] for each in self._times.values() for n in each]
