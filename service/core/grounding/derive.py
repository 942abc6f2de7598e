"""One step of arithmetic: between values that stand close together, over a column, between moments, with what somebody gave."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice, product
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.grounding.fields import apply_unit, read_field, split_name
from service.core.grounding.known import LOOSE, KnownFacts, Near
from service.core.grounding.reading.languages import split_words
from service.core.grounding.reading.mentions import Mention, Reading
from service.core.grounding.reading.moments import DAY_S, Day, Time
from service.core.grounding.store import FactStore
from service.core.models.light import lazy

MAX_STEPS = 300_000
"""How many steps the search for all texts of a trace may take; then values are no longer looked for."""
MAX_AROUND = 10
"""The most values on each side of a step that are looked at around one value."""
_MAX_CHARS = 500
"""How far a sentence may reach."""
_MAX_RECORDS = 3
_FIRST_PLACES = 64
_MAX_CHANCE = 4.0
"""How many steps may be expected to lead to a value by chance, if the first that does is to count."""
_MAX_COLUMNS = 200
_MAX_GIVEN = 24
_MAX_COUNTED = 1_000
_COUNTED = ("number", "day", "time")


class Derivation(NamedTuple):
    """What values make, and how: `sum`, `mean`, `difference`, `product`, `ratio`, `days between`, `time after`, `unit`, ..."""

    how: str
    sources: tuple[str, ...]
    reading: Reading = Reading("number", 0.0)
    by_chance: bool = False
    """Whether it was found among so many steps that some step would have led to the value: then it proves nothing."""


class Amount(NamedTuple):
    """A value with its place: what a step starts from."""

    reading: Reading
    pointer: str


def iter_totals(group: Sequence[Amount]) -> Iterator[Derivation]:
    """Yield the sum and the mean of two numbers or more of one dimension."""
    numbers = [one for one in group if one.reading.kind == "number"]
    if numbers[1:] and len({one.reading.dimension for one in numbers}) == 1:
        total, pointers = sum(one.reading.number for one in numbers), tuple([one.pointer for one in numbers[:8]])
        yield Derivation("sum", pointers, Reading("number", total, numbers[0].reading.dimension))
        yield Derivation("mean", pointers, Reading("number", total / len(numbers), numbers[0].reading.dimension))


def iter_steps(one: Amount, other: Amount) -> Iterator[Derivation]:
    """Yield what two values make."""
    sources = (one.pointer, other.pointer)
    a, b = one.reading.value, other.reading.value
    if isinstance(a, Day) and isinstance(b, Day):
        first, last = a.date, b.date
        days = abs((last - first).days) if first and last else 0
        for n in (days, days + 1) if days else ():
            yield Derivation("days between", sources, Reading("number", float(n * DAY_S), "time"))
    elif isinstance(a, Time) and isinstance(b, Time):
        for apart in {abs(a.seconds - b.seconds), DAY_S - abs(a.seconds - b.seconds)} if a.seconds != b.seconds else ():
            yield Derivation("time between", sources, Reading("number", float(apart), "time"))
    elif isinstance(a, float) and isinstance(b, float) and one.reading.kind == other.reading.kind == "number":
        yield from _iter_of_numbers(one.reading, other.reading, sources)
    elif isinstance(a, Time) and isinstance(b, float) and other.reading.dimension == "time":
        for seconds in (a.seconds + b, a.seconds - b):
            yield Derivation("time after", sources, Reading("time", Time(round(seconds) % DAY_S)))
    elif isinstance(b, Time) and isinstance(a, float):
        yield from iter_steps(other, one)


def _iter_of_numbers(one: Reading, other: Reading, sources: tuple[str, str]) -> Iterator[Derivation]:
    a, b, kinds = abs(one.number), abs(other.number), {one.dimension, other.dimension}
    if len(kinds) == 2 and "" in kinds and "share" not in kinds:  # `from 41 to 68 cm`
        bare, told = (one, other) if not one.dimension else (other, one)
        unit = abs(told.number / told.written) if told.written else 1.0
        x, y = abs(bare.number) * unit, abs(told.number)
        yield Derivation("difference", sources, Reading("number", abs(x - y), told.dimension))
        yield Derivation("sum", sources, Reading("number", x + y, told.dimension))
    if len(kinds) == 1:
        yield Derivation("difference", sources, Reading("number", abs(a - b), one.dimension))
        yield Derivation("sum", sources, Reading("number", a + b, one.dimension))
    if a and b and len(kinds) == 1:
        less, more = sorted((a, b))
        for share in (less / more, more / less - 1, 1 - less / more):
            yield Derivation("ratio", sources, Reading("number", share, "share"))
        yield Derivation("ratio", sources, Reading("number", more / less, ""))
    if kinds & {"", "share"}:
        yield Derivation("product", sources, Reading("number", a * b, max(kinds - {"share"}, default="")))
    if a and b and len(kinds) == 2:
        yield Derivation("ratio", sources, Reading("number", a / b, one.dimension))
        yield Derivation("ratio", sources, Reading("number", b / a, other.dimension))


def _fits(reading: Reading, step: Derivation) -> bool:
    """Whether a step leads to what a reading says."""
    said, made = reading.value, step.reading.value
    if isinstance(said, Time) and isinstance(made, Time):
        return said.seconds == made.seconds or (not said.exact and (said.seconds - made.seconds) % (DAY_S // 2) == 0)
    if not isinstance(said, float) or not isinstance(made, float) or reading.kind != "number":
        return False
    spread, size = reading.tolerance * 1.001 + abs(said) * 1e-6, abs(said)
    if reading.dimension == step.reading.dimension:
        return abs(size - abs(made)) <= spread
    if reading.dimension and not step.reading.dimension:
        unit = abs(said / reading.written) if reading.written else 1.0
        factors = {unit, *(factor for factor, shift in LOOSE.get(reading.dimension, ()) if not shift)}
        return any(abs(size - abs(made) * factor) <= spread for factor in factors)
    return False


def find_derivation(readings: Sequence[Reading], steps: Sequence[Derivation]) -> Derivation | None:
    """Return the first step that leads to what a value says; it counts as chance where so many were tried before it."""
    chance: Derivation | None = None
    for reading in readings:
        alike = [one for one in steps if one.reading.kind == reading.kind]
        alike = [one for one in alike if one.reading.dimension in ("", reading.dimension)]
        n = next((n for n, step in enumerate(alike) if _fits(reading, step)), None)
        if n is not None and n * reading.tolerance <= _MAX_CHANCE * max(abs(reading.number), reading.tolerance):
            return alike[n]
        chance = chance or (alike[n]._replace(by_chance=True) if n is not None else None)
    return chance


class Scene(NamedTuple):
    """What stands around a value: in its sentence, before that, and beside it in the records that the sentence names."""

    inside: Sequence[Amount]
    before: Sequence[Amount]
    beside: Sequence[Amount]
    totals: Sequence[Derivation]
    records: Sequence[str]

    def list_steps(self) -> list[Derivation]:
        """List what the values around make: those of the sentence first."""
        pairs = [*combinations(self.inside, 2), *product(self.inside, (*self.before, *self.beside))]
        pairs += [*combinations(self.before, 2), *combinations(self.beside, 2), *product(self.before, self.beside)]
        found = [Derivation("unit", (one.pointer,), one.reading) for one in self.inside if one.reading.dimension]
        found += [step for one, other in pairs if one.pointer != other.pointer for step in iter_steps(one, other)]
        for group in (self.inside, self.before):
            parts = [part for n in range(3, len(group) + 1) for part in (group[-n:], group[:n])]
            found += [step for part in parts for step in iter_totals(part)]
        return [*found, *self.totals]


_SENTENCE = re.compile(r"\n|[.!?;](?=\s)")
_POSITION = re.compile(r"/\d+(?=/|$)")


Found = tuple[Mention, Sequence[Near]]


class Surroundings:
    """The values of one text in their order, for each to find those around it."""

    def __init__(
        self, text: str, pointer: str, held: Sequence[Found], rest: Sequence[Mention], known: KnownFacts
    ) -> None:
        """`held`: the values that something holds; `rest`: the others."""
        self._text, self._known = text, known
        found = [(one, near, _read_held(one, near)) for one, near in held]
        found += [(one, (), Amount(one.readings[0], f"{pointer}@{one.start}-{one.end}")) for one in rest]
        self._found = sorted(found, key=lambda one: one[0].start)
        self._starts = [one.start for one, _, _ in self._found]
        columns: dict[tuple[str, str], dict[str, Amount]] = defaultdict(dict)
        for one, near, amount in self._found:
            if near and near[0].fact.source == "result" and one.kind == amount.reading.kind == "number":
                column = _POSITION.sub("/*", amount.pointer), amount.reading.dimension
                columns[column][amount.pointer] = amount
        self._totals = [step for column in columns.values() for step in iter_totals([*column.values()])]
        """Of the fields of which the text states several values."""

    def look_around(self, mention: Mention) -> Scene:
        """Gather what stands in the sentence of a value, or in its line of a list, and before it."""
        low = max(0, mention.start - _MAX_CHARS)
        ends = [match.end() for match in _SENTENCE.finditer(self._text, low, mention.start)]
        first, before = (ends[-1] if ends else low), (ends[-2] if ends[1:] else low)
        end = _SENTENCE.search(self._text, mention.end, mention.end + _MAX_CHARS)
        inside = self._list_between(mention, first, end.start() if end else mention.end + _MAX_CHARS)
        named = [near[0].fact for _, near, _ in inside if 0 < len(near) <= 2 and near[0].fact.source == "result"]
        records = [*dict.fromkeys(fact.place.record for fact in named if fact.place.record)]
        earlier = [amount for _, _, amount in self._list_between(mention, before, first)]
        amounts = [amount for _, _, amount in inside if amount.reading.kind in _COUNTED]
        return build_scene(self._known, amounts, earlier, self._totals, records)

    def _list_between(self, mention: Mention, low: int, high: int) -> list[tuple[Mention, Sequence[Near], Amount]]:
        """List the values of a stretch, but for the one in question: the nearest to it, in their order."""
        found = self._found[bisect_left(self._starts, low) : bisect_left(self._starts, high)]
        near = sorted([one for one in found if one[0] != mention], key=lambda one: abs(one[0].start - mention.start))
        return sorted(near[:MAX_AROUND], key=lambda one: one[0].start)


def build_scene(
    known: KnownFacts,
    inside: Sequence[Amount] = (),
    before: Sequence[Amount] = (),
    totals: Sequence[Derivation] = (),
    records: Sequence[str] = (),
) -> Scene:
    """Build a scene with what the user gave, and the numbers of the records that are named or else of the first ones."""
    first = [one for one in islice(known.store.records, _FIRST_PLACES) if one.partition("/result/")[1]]
    facts = [fact for record in (records or first)[:_MAX_RECORDS] for fact in known.list_record(record)]
    beside = [Amount(fact.reading, fact.pointer) for fact in facts if fact.reading.kind in _COUNTED]
    given = [Amount(fact.reading, fact.pointer) for fact in known.list_said()[:_MAX_RECORDS]]
    return Scene(inside, [*before, *given], beside[:MAX_AROUND], totals, records)


def _read_held(mention: Mention, near: Sequence[Near]) -> Amount:
    """Return what holds a value as an amount, in the unit that the text states where the field names none."""
    fact = near[0].fact
    bare = fact.reading.kind == "number" and not fact.reading.dimension and mention.dimension
    return Amount(mention.readings[0] if bare else fact.reading, fact.pointer)


class _Number(NamedTuple):
    """A number with its place."""

    place: int
    value: float
    pointer: str


_NO_AMOUNTS = split_words(
    "id ids phone zip postcode code no number year month last4 card ref lat lon lng page rank pos"
)
"""Words in the names of numbers that nobody adds up."""


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
        for (name, beside, told), values in store.fields.items():
            unit = read_field(name, beside, minor_told=told).unit
            for value, places in values.items() if _NO_AMOUNTS.isdisjoint(split_name(name)) else ():
                dimension, size = apply_unit(unit, value)
                for place in places:
                    holder, key, _ = store.held[place]
                    number = _Number(place, size, holder.enter(key).pointer)
                    for group in (_POSITION.sub("/*", number.pointer), holder.record):
                        columns[dimension][group].append(number)
        for group in [group for groups in columns.values() for group in groups.values()]:
            group.sort()
        return columns

    @lazy
    def _given(self) -> list[_Number]:
        """The small whole numbers that somebody gave and that results count: nights, pieces, people."""
        store = self._known.store
        places = [n for n, (holder, _, _) in enumerate(store.held) if holder.source in ("user", "argument")]
        facts = [(n, fact) for n in places for fact in store.build(n)[:1] if fact.reading.dimension in ("", "time")]
        sizes = [(n, fact.reading.number / (DAY_S if fact.reading.dimension else 1), fact) for n, fact in facts]
        return [_Number(n, size, fact.pointer) for n, size, fact in sizes if 1 < size <= 400 and size == size // 1]

    @lazy
    def _counts(self) -> list[_Number]:
        """How many records lists have, and how many of those share a value."""
        held = [(place, *self._known.store.held[place]) for place in self._known.store.tables]
        return [
            _Number(place, n, site.pointer)
            for place, site, _, items in held
            for n in _iter_counts(cast("Sequence[JsonValue]", items))
        ]

    @lazy
    def _days(self) -> list[_Number]:
        """The days of the trace, as ordinals."""
        store = self._known.store
        places = {place for groups in store.keys.days.values() for places in groups for place in places}
        stated = [(place, fact.pointer, fact.reading.value) for place in sorted(places) for fact in store.build(place)]
        dates = [(place, pointer, day.date) for place, pointer, day in stated if isinstance(day, Day)]
        return [_Number(place, date.toordinal(), pointer) for place, pointer, date in dates if date is not None]

    def _cut(self, numbers: list[_Number]) -> list[_Number]:
        """Return the known ones of numbers in the order of the trace."""
        return numbers[: bisect_left(numbers, (self._known.before,))]

    def derive(self, reading: Reading) -> Derivation | None:
        """Return one step that leads to a reading, or None."""
        if reading.kind == "weekday":
            pointers = [one for day, one in self._list_days().items() if (day - 1) % 7 == reading.value]
            return Derivation("weekday", tuple(filter(None, pointers[:1]))) if pointers else None
        if reading.kind != "number" or self.exhausted:
            return None
        size, spread = abs(reading.number), reading.tolerance * 1.001 + abs(reading.number) * 1e-6
        if not reading.dimension:
            count = next((one for one in self._cut(self._counts) if one.value == size), None)
            if count is not None:
                return Derivation("count", (count.pointer,))
        wanted = [(reading.dimension, size, spread)]
        if reading.dimension == "money" and reading.written and reading.number:  # of amounts that name no unit
            unit = abs(reading.written / reading.number)
            wanted += [("", abs(reading.written), spread * unit), ("", size * 100, spread * 100)]
        totals = ((*one, total) for one in wanted for total in self._iter_totals(one[0]))
        found = next((made for _, target, far, (total, made) in totals if abs(abs(total) - target) <= far), None)
        if found is None and reading.dimension == "time":
            found = self._find_span(size, spread)
        return found or (self._find_scaled(reading, size, spread) if reading.dimension else None)

    def _iter_totals(self, dimension: str) -> Iterator[tuple[float, Derivation]]:
        for column in map(self._cut, islice(self._groups[dimension].values(), _MAX_COLUMNS)):
            self._steps += 2 + len(column)
            if column[1:]:
                total, pointers = sum(one.value for one in column), tuple([one.pointer for one in column[:8]])
                yield total, Derivation("sum", pointers)
                yield total / len(column), Derivation("mean", pointers)

    def list_totals(self, dimension: str) -> Iterator[tuple[float, Derivation]]:
        """Yield the sums, means and counts that a text may have meant."""
        for one in dict.fromkeys((dimension, "", "share")):
            yield from self._iter_totals(one)
        for one in self._cut(self._counts) if not dimension else ():
            yield one.value, Derivation("count", (one.pointer,))

    def _find_scaled(self, reading: Reading, target: float, spread: float) -> Derivation | None:
        """Find a held number that a given one multiplies or divides: a price by the nights that the user asked for."""
        given = {one.value: one.pointer for one in reversed(self._cut(self._given))}
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
        return {int(one.value): one.pointer for one in reversed(self._cut(self._days))} | today

    def _find_span(self, target: float, spread: float) -> Derivation | None:
        """Find two days, or two times, that are this far apart."""
        days, times = self._list_days(), self._known.list_moments("time")
        self._steps += len(days) + len(times) + 1
        whole = round(target / DAY_S)
        near = abs(target - whole * DAY_S) <= max(spread, 1) and len(days) <= _MAX_COLUMNS
        for n in filter(None, (whole, whole - 1, whole + 1)) if near else ():
            for one, pointer in sorted(days.items()):
                if one + n in days:
                    return Derivation("days between", tuple(filter(None, (pointer, days[one + n]))))
        seconds = {cast("Time", fact.reading.value).seconds: fact.pointer for fact in times}
        for one, pointer in seconds.items() if target and len(times) <= _MAX_COLUMNS else ():
            other = round(one + target) % DAY_S
            if other in seconds:
                return Derivation("time between", (pointer, seconds[other]))
        return None


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
