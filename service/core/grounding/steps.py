"""One step of arithmetic between values that stand close together: what a text may have worked out itself."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from itertools import combinations, product
from typing import NamedTuple

from service.core.grounding.facts import Fact, split_plain
from service.core.grounding.known import LOOSE, KnownFacts
from service.core.grounding.reading.mentions import Mention, Reading
from service.core.grounding.reading.moments import DAY_S, Day, Time

MAX_AROUND = 10
"""The most values on each side of a step that are looked at around one value."""
_MAX_CHARS = 500
"""How far a sentence may reach."""
_MAX_RECORDS = 3
_MAX_DAYS = 3_660
_MAX_CHANCE = 4.0
"""How many steps may be expected to lead to a value by chance, if the first that does is to count."""


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
        days = abs((b.date - a.date).days) if a.date and b.date else 0
        for n in (days, days + 1) if days else ():
            yield Derivation("days between", sources, Reading("number", float(n * DAY_S), "time"))
    elif isinstance(a, Time) and isinstance(b, Time):
        for apart in {abs(a.seconds - b.seconds), DAY_S - abs(a.seconds - b.seconds)} if a.seconds != b.seconds else ():
            yield Derivation("time between", sources, Reading("number", float(apart), "time"))
    elif isinstance(a, float) and isinstance(b, float):
        yield from _iter_of_numbers(one.reading, other.reading, sources)
    elif isinstance(a, Day | Time) and isinstance(b, float) and other.reading.dimension == "time":
        yield from _iter_moved(a, b, sources)
    elif isinstance(b, Day | Time) and isinstance(a, float):
        yield from iter_steps(other, one)


def _iter_moved(moment: Day | Time, seconds: float, sources: tuple[str, str]) -> Iterator[Derivation]:
    """Yield what is some time after or before a day or a time of day."""
    if isinstance(moment, Time):
        for size in (moment.seconds + seconds, moment.seconds - seconds):
            yield Derivation("time after", sources, Reading("time", Time(round(size) % DAY_S)))
    elif moment.date and seconds % DAY_S == 0 and seconds <= _MAX_DAYS * DAY_S:
        for days in (seconds / DAY_S, -seconds / DAY_S):
            after = moment.date + timedelta(days=days)
            yield Derivation("days after", sources, Reading("day", Day(after.year, after.month, after.day)))


def _iter_of_numbers(one: Reading, other: Reading, sources: tuple[str, str]) -> Iterator[Derivation]:
    a, b, kinds = abs(one.number), abs(other.number), {one.dimension, other.dimension}
    if len(kinds) == 2 and "" in kinds and "share" not in kinds:  # `from 41 to 68 cm`
        bare, told = (one, other) if not one.dimension else (other, one)
        x, y = abs(bare.number) * told.factor, abs(told.number)
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
    if isinstance(said, Day) and isinstance(made, Day):
        return said.may_be(made)
    if not isinstance(said, float) or not isinstance(made, float) or reading.kind != "number":
        return False
    spread, size = reading.tolerance * 1.001 + abs(said) * 1e-6, abs(said)
    if reading.dimension == step.reading.dimension:
        return abs(size - abs(made)) <= spread
    bare = not step.reading.dimension and (reading.dimension == "money" or step.how not in ("product", "ratio"))
    if reading.dimension and bare:
        factors = {reading.factor, *(factor for factor, shift in LOOSE.get(reading.dimension, ()) if not shift)}
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
    """What the values around one make, those of its sentence first, and the records that the sentence names."""

    steps: list[Derivation]
    records: Sequence[str]
    columns: Collection[str] = ()
    """The fields, of any item of a list, whose values the sentence states."""
    words: Collection[str] = ()


_SENTENCE = re.compile(r"\n|[.!?;](?=\s)")
POSITION = re.compile(r"/\d+(?=/|$)")


Found = tuple[Mention, Sequence[Fact]]


class Surroundings:
    """The values of one text in their order, for each to find those around it."""

    def __init__(
        self, text: str, pointer: str, held: Sequence[Found], rest: Sequence[Mention], known: KnownFacts
    ) -> None:
        """`held`: the values that something holds; `rest`: the others."""
        self._text, self._known = text, known
        found: list[tuple[Mention, Sequence[Fact], Amount]] = []
        for one, near in held:  # in the unit that the text states where the field names none
            bare = near[0].reading.kind == "number" and not near[0].reading.dimension and one.dimension
            found.append((one, near, Amount(one.readings[0] if bare else near[0].reading, near[0].pointer)))
        found += [(one, (), Amount(one.readings[0], f"{pointer}@{one.start}-{one.end}")) for one in rest]
        self._found = sorted(found, key=lambda one: one[0].start)
        self._starts = [one.start for one, _, _ in self._found]
        columns: dict[tuple[str, str], dict[str, Amount]] = defaultdict(dict)
        for one, near, amount in self._found:
            if near and near[0].source == "result" and one.kind == amount.reading.kind == "number":
                column = POSITION.sub("/*", amount.pointer), amount.reading.dimension
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
        named = [near[0] for _, near, _ in inside if 0 < len(near) <= 2 and near[0].source == "result"]
        records = [*dict.fromkeys(fact.site.record for fact in named if fact.site.record)]
        earlier = [amount for _, _, amount in self._list_between(mention, before, first)]
        amounts = [amount for _, _, amount in inside if amount.reading.kind != "code"]
        alike = [amount for one, near, amount in inside if near and one.dimension == mention.dimension]
        totals = [*self._totals, *iter_totals(alike)]
        scene = build_scene(self._known, amounts, earlier, totals, records)
        columns = {POSITION.sub("/*", amount.pointer) for _, near, amount in inside if near}
        sentence = self._text[first : end.start() if end else mention.end + _MAX_CHARS]
        return scene._replace(columns=columns, words=frozenset(split_plain(sentence)))

    def _list_between(self, mention: Mention, low: int, high: int) -> list[tuple[Mention, Sequence[Fact], Amount]]:
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
    """List what values make with what the user gave, and with the numbers of the records that are named, or of the only one."""
    facts = [fact for record in records[:_MAX_RECORDS] or known.only_record for fact in known.list_record(record)]
    beside = [Amount(fact.reading, fact.pointer) for fact in facts if fact.reading.kind != "code" and fact.whole]
    beside = beside[:MAX_AROUND]
    before = [*before, *[Amount(fact.reading, fact.pointer) for fact in known.list_said()[:_MAX_RECORDS]]]
    pairs = [*combinations(inside, 2), *product(inside, (*before, *beside))]
    pairs += [*combinations(before, 2), *combinations(beside, 2), *product(before, beside)]
    found = [Derivation("unit", (one.pointer,), one.reading) for one in inside if one.reading.dimension]
    pairs = [(one, other) for one, other in pairs if one.pointer != other.pointer and _go_together(one, other)]
    found += [step for one, other in pairs for step in iter_steps(one, other)]
    return Scene([*found, *totals], records)


def _go_together(one: Amount, other: Amount) -> bool:
    """Whether two values may make another: bare numbers of results must be of one record or of one field."""
    held = [each for each in (one, other) if each.reading.kind == "number" and not each.reading.dimension]
    (here, _, name), (there, _, field) = (each.pointer.rpartition("/") for each in (one, other))
    return here == there or name == field or len([each for each in held if "/result/" in each.pointer]) < 2
