"""One step of arithmetic between values that stand close together: what a text may have worked out itself."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from service.core.grounding.fact_index import LOOSE, FactIndex, Near
from service.core.grounding.facts import split_plain
from service.core.grounding.reading.mentions import Mention, Reading
from service.core.grounding.reading.moments import DAY_S, Day, Time

MAX_AROUND = 10
"""The most values on each side of a step that are looked at around one value."""
_MAX_CHANCE = 4.0
_CALENDAR = (12.0, 7.0, 24.0, 60.0, 30.0, 365.0)
"""What a price per month, day or hour is multiplied by."""


class Amount(NamedTuple):
    """A value with its place: what a step starts from. `text`: whether it is read as the text states it."""

    reading: Reading
    pointer: str
    record: str = ""


class Step(NamedTuple):
    """What values make, and how: `sum`, `mean`, `difference`, `product`, `ratio`, `days between`, `time between`, `time after`, `unit`."""

    how: str
    reading: Reading
    sources: tuple[str, ...]


class Scene(NamedTuple):
    """What stands around a value: the words of its sentence, the values in it and just before it, those of the records named."""

    words: Collection[str]
    inside: Sequence[Amount]
    before: Sequence[Amount]
    beside: Sequence[Amount]
    columns: Sequence[Sequence[Amount]]
    """The values of one field of several records that the text states."""
    told: Collection[str]
    """The pointers of what the text says."""

    def list_steps(self) -> list[Step]:
        """List what the values around make: those of the sentence first."""
        pairs = [*combinations(self.inside, 2)]
        pairs += [(one, other) for one in self.inside for other in (*self.before, *self.beside)]
        pairs += [
            *combinations(self.before, 2),
            *combinations(self.beside, 2),
            *((a, b) for a in self.before for b in self.beside),
        ]
        found = [
            Step("unit", one.reading, (one.pointer,))
            for one in self.inside
            if one.reading.dimension or one.reading.kind == "time"
        ]
        found += [step for one, other in pairs if one.pointer != other.pointer for step in iter_steps(one, other)]
        for group in (self.inside, self.before):
            found += [
                step
                for n in range(2, len(group))
                for part in (group[-n - 1 :], group[: n + 1])
                for step in iter_totals(part)
            ]
        found += [step for column in self.columns for step in iter_totals(column)]
        for one in (*self.inside, *self.before, *self.beside):
            if one.reading.kind == "number":
                for factor in _CALENDAR:
                    found.append(
                        Step("product", _make(one.reading.number * factor, one.reading.dimension), (one.pointer,))
                    )
                    found.append(
                        Step("ratio", _make(one.reading.number / factor, one.reading.dimension), (one.pointer,))
                    )
        return found


def _make(value: float, dimension: str) -> Reading:
    return Reading("number", value, dimension)


def iter_totals(group: Sequence[Amount]) -> Iterator[Step]:
    """Yield the sum and the mean of three numbers or more of one dimension."""
    numbers = [one for one in group if one.reading.kind == "number"]
    if numbers[1:] and len({one.reading.dimension for one in numbers}) == 1:
        total, pointers = sum(one.reading.number for one in numbers), tuple([one.pointer for one in numbers[:8]])
        yield Step("sum", _make(total, numbers[0].reading.dimension), pointers)
        yield Step("mean", _make(total / len(numbers), numbers[0].reading.dimension), pointers)


def iter_steps(one: Amount, other: Amount) -> Iterator[Step]:
    """Yield what two values make."""
    sources = (one.pointer, other.pointer)
    a, b = one.reading.value, other.reading.value
    if isinstance(a, Day) and isinstance(b, Day):
        first, last = a.date, b.date
        days = abs((last - first).days) if first and last else 0
        for n in (days, days + 1) if days else ():
            yield Step("days between", _make(float(n * DAY_S), "time"), sources)
    elif isinstance(a, Time) and isinstance(b, Time):
        for apart in {abs(a.seconds - b.seconds), DAY_S - abs(a.seconds - b.seconds)} if a.seconds != b.seconds else ():
            yield Step("time between", _make(float(apart), "time"), sources)
    elif isinstance(a, float) and isinstance(b, float) and one.reading.kind == other.reading.kind == "number":
        yield from _iter_of_numbers(one.reading, other.reading, sources)
    elif isinstance(a, Time) and isinstance(b, float) and other.reading.dimension == "time":
        for seconds in (a.seconds + b, a.seconds - b):
            yield Step("time after", Reading("time", Time(round(seconds) % DAY_S)), sources)
    elif isinstance(b, Time) and isinstance(a, float):
        yield from iter_steps(other, one)


def _iter_of_numbers(one: Reading, other: Reading, sources: tuple[str, str]) -> Iterator[Step]:
    a, b, kinds = abs(one.number), abs(other.number), {one.dimension, other.dimension}
    if len(kinds) == 2 and "" in kinds and "share" not in kinds:  # `from 41 to 68 cm`
        bare, told = (one, other) if not one.dimension else (other, one)
        unit = abs(told.number / told.written) if told.written else 1.0
        x, y = abs(bare.number) * unit, abs(told.number)
        yield Step("difference", _make(abs(x - y), told.dimension), sources)
        yield Step("sum", _make(x + y, told.dimension), sources)
    if len(kinds) == 1:
        yield Step("difference", _make(abs(a - b), one.dimension), sources)
        yield Step("sum", _make(a + b, one.dimension), sources)
    if a and b and len(kinds) == 1:
        less, more = sorted((a, b))
        for share in (less / more, more / less - 1, 1 - less / more):
            yield Step("ratio", _make(share, "share"), sources)
        yield Step("ratio", _make(more / less, ""), sources)
    if kinds & {"", "share"}:
        yield Step("product", _make(a * b, max(kinds - {"share"}, default="")), sources)
    if a and b and len(kinds) == 2:
        yield Step("ratio", _make(a / b, one.dimension), sources)
        yield Step("ratio", _make(b / a, other.dimension), sources)


def fits(reading: Reading, step: Step) -> bool:
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


def find_step(mention: Mention, steps: Sequence[Step]) -> Step | None:
    """Return the first step that leads to what a mention says, unless among so many one could be expected to by chance."""
    for reading in mention.readings:
        alike = [
            one
            for one in steps
            if one.reading.kind == reading.kind and one.reading.dimension in ("", reading.dimension)
        ]
        n = next((n for n, step in enumerate(alike) if fits(reading, step)), None)
        share = (
            reading.tolerance / max(abs(reading.number), reading.tolerance, 1e-9) if reading.kind == "number" else 0.0
        )
        if n is not None and n * share <= _MAX_CHANCE:
            return alike[n]
    return None


_SENTENCE = re.compile(r"\n|[.!?;](?=\s)")
_POSITION = re.compile(r"/\d+(?=/|$)")
Held = tuple[Mention, Sequence[Near]]


def list_columns(held: Sequence[Held]) -> list[list[Amount]]:
    """List the numbers that a text states, by their fields, where it states several of one."""
    columns: dict[tuple[str, str], dict[str, Amount]] = defaultdict(dict)
    for mention, near in held:
        fact = near[0].fact
        if fact.reading.kind == "number" and fact.source == "result" and mention.kind == "number":
            columns[_POSITION.sub("/*", fact.pointer), fact.reading.dimension][fact.pointer] = Amount(
                fact.reading, fact.pointer
            )
    return [[*column.values()] for column in columns.values() if len(column) > 1]


def build_scene(
    text: str,
    mention: Mention,
    held: Sequence[Held],
    rest: Sequence[Mention],
    pointer: str,
    index: FactIndex,
    columns: Sequence[Sequence[Amount]],
) -> Scene:
    """Gather what stands in the sentence of a value, or in its line of a list."""
    ends = [match.end() for match in _SENTENCE.finditer(text, max(0, mention.start - 500), mention.start)]
    first = ends[-1] if ends else max(0, mention.start - 500)
    before = ends[-2] if ends[1:] else max(0, mention.start - 500)
    end = _SENTENCE.search(text, mention.end)
    last = end.start() if end else len(text)
    inside = [near for one, near in held if first <= one.start and one.end <= last]
    records = {
        near[0].fact.place.record: 0
        for near in inside
        if len(near) <= 2 and near[0].fact.place.record and near[0].fact.source == "result"
    }

    def amounts(low: int, high: int) -> list[Amount]:
        found: list[tuple[int, Amount]] = []
        for one, near in held:
            if low <= one.start and one.end <= high:
                fact = next((each.fact for each in near if each.fact.place.record in records), near[0].fact)
                reading = (
                    fact.reading
                    if fact.reading.dimension or one.kind != "number" or not one.dimension
                    else one.readings[0]
                )
                found.append((one.start, Amount(reading, fact.pointer, fact.place.record)))
        found += [
            (one.start, Amount(one.readings[0], f"{pointer}@{one.start}-{one.end}"))
            for one in rest
            if low <= one.start and one.end <= high and one != mention
        ]
        near_by = sorted(
            [one for one in found if one[1].reading.kind in ("number", "day", "time")],
            key=lambda one: abs(one[0] - mention.start),
        )
        return [amount for _, amount in sorted(near_by[:MAX_AROUND], key=lambda one: one[0])]

    beside = [
        Amount(fact.reading, fact.pointer, fact.place.record)
        for record in list(records)[:3]
        for fact in index.list_record(record)
        if fact.reading.kind in ("number", "time", "day")
    ]
    given = [Amount(fact.reading, fact.pointer) for fact in index.said[:3]]
    told = {one.fact.pointer for _, near in held if len(near) == 1 for one in near}
    words = frozenset(split_plain(text[first:last]))
    return Scene(words, amounts(first, last), [*amounts(before, first), *given], beside[:MAX_AROUND], columns, told)
