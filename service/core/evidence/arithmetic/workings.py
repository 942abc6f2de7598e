"""What may be worked out, in one step, from the numbers that are held and told."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import combinations, islice
from typing import NamedTuple

from service.core.evidence.arithmetic.asked import CHANGED, asks_arithmetic, asks_sum, asks_total_alone
from service.core.evidence.arithmetic.holding import read_number
from service.core.evidence.arithmetic.transforms import name_slip
from service.core.evidence.facts.facts import Fact
from service.core.evidence.facts.held import MAX_INSIDE, Entity, Holdings, Words
from service.core.evidence.narration.fitting import is_of_kind, is_rough, is_typed
from service.core.evidence.reading.quantities import Quantity, list_significant_digits
from service.core.evidence.sentences.claims import MAX_BESIDE
from service.core.evidence.sentences.mentions import Clause, find_words
from service.core.models.lazy import lazy

MAX_POOL, MAX_VALUES = 60, 400
"""Values of results that are added to and taken from each other; that are compared at all."""
MAX_OWN = 40
"""Values of those a clause speaks of from which others are worked out."""
MAX_FACTORS = 12
"""Numbers of one record that others are multiplied with and divided by."""
MAX_TIMES = 100
"""A number of things by which an amount is multiplied."""
MAX_PICKED = 8
"""Values of a column of which any may be meant by a sum."""
_FEW = 10
_TELLING = 2
"""More digits than these are no chance sum of a few others."""
_COUNTED = ("number", "measure", "duration")


class _Pool:
    """The numbers of results in the terms of a claim, and what comes of those of one column or one record."""

    def __init__(self, said: Quantity, facts: Iterable[Fact]) -> None:
        held = list(islice(((value, fact) for fact in facts if (value := read_number(said, fact))), MAX_VALUES))
        self.values = sorted({value for value, _ in held})
        self._few = held[:MAX_POOL]
        self._said = said
        self._columns = list(_list_columns(self._few))
        self.totals = [sum(each, Decimal(0)) for each in self._columns]
        means = [total / len(each) for total, each in zip(self.totals, self._columns, strict=True)]
        self.wholes = sorted({*self.totals, *means})

    @lazy
    def _pairs(self) -> list[tuple[Decimal, Decimal]]:
        """The values that may be added: they stand side by side, or both are of the kind."""
        keyed = [(value, fact.path[:-1], fact.path[:-2], is_typed(self._said, fact)) for value, fact in self._few]
        return [
            (one[0], other[0])
            for one, other in combinations(keyed, 2)
            if (one[3] and other[3]) or one[1] == other[1] or (one[1] and one[2] == other[2])
        ]

    @lazy
    def apart(self) -> list[Decimal]:
        """How far values lie apart that go together."""
        return sorted({abs(a - b) for a, b in self._pairs})

    @lazy
    def sums(self) -> list[Decimal]:
        """The sums of two values that go together, and of some of a short column: those that words pick out."""
        short = [each for each in self._columns if len(each) <= MAX_PICKED]
        picked = {
            sum(some, Decimal(0)) for each in short for n in range(3, len(each)) for some in combinations(each, n)
        }
        return sorted({*picked, *(a + b for a, b in self._pairs)})

    @lazy
    def products(self) -> list[Decimal]:
        """The values taken so many times as a number of their record says, shared out among so many, or a part of them."""
        return sorted(
            {
                made
                for value, fact in self._few
                for n in _list_factors(fact)
                for made in (value * n, value / n, value * n / 100, value - value * n / 100)
            }
        )


class _Near(NamedTuple):
    """What a number may come of: the numbers around it, those of whom its clause speaks, and how far off it may be."""

    told: Sequence[Decimal]
    own: Sequence[Decimal]
    room: Decimal

    def has(self, ordered: Sequence[Decimal], number: Decimal) -> bool:
        """Whether one of sorted values is it."""
        return _has_near(ordered, number, self.room)


class Workings:
    """What comes of the numbers that results hold and a text tells."""

    def __init__(self, holdings: Holdings, quantities: Sequence[Quantity], heard: Sequence[Quantity] = ()) -> None:
        self._holdings = holdings
        self._heard = heard
        self._quantities = quantities
        self._starts = [one.start for one in quantities]

    def give(self, said: Quantity, clause: Clause, *, apart: bool) -> bool:
        """Whether a number comes of others. `apart`: as a difference, by its words."""
        number = said.number
        if number is None:
            return False
        if said.kind == "percent":
            return self._is_share(said, number, clause)
        pool, near = self._find_pool(said), self._find_near(said, number, clause)
        asked = apart or asks_arithmetic(clause)
        if (apart or not asks_total_alone(clause)) and _is_difference(number, pool, near, asked=asked):
            return True
        picked = asked or len(list_significant_digits(number)) > _TELLING
        return not apart and (
            _is_total(number, pool, near, picked=picked) or self._is_multiple(said, number, clause, near)
        )

    def is_near(self, said: Quantity, clause: Clause) -> bool:
        """Whether a number is nearly what its words ask to be worked out: a total, a difference."""
        number = said.number
        if number is None or not (asks_sum(clause) or asks_arithmetic(clause)):
            return False
        pool, told = self._find_pool(said), self._list_told(said, clause)[-_FEW:]
        if asks_sum(clause):
            made = [*pool.totals, sum(told, Decimal(0)), *(a + b for a, b in combinations(told, 2))]
        else:
            made = [
                *(pool.apart if len(pool.values) <= _FEW else ()),
                *(abs(a - b) for a, b in combinations(told, 2)),
            ]
        return any(name_slip(number, one) != "wrong_value" for one in made)

    def is_factor(self, said: Quantity, clause: Clause) -> bool:
        """Whether a number tells how often an amount is taken that stands behind it: `four seats come to $204`."""
        number = said.number
        if number is None or not 1 < number <= MAX_TIMES:
            return False
        behind = [
            one for one in self._list_said(clause) if one.start >= said.end and one.kind == "money" and one.number
        ]
        return any(
            _has_near(self._find_pool(one).values, one.number / number, _measure_room(one, clause) / number)
            for one in behind
            if one.number
        )

    def _find_pool(self, said: Quantity) -> _Pool:
        """The numbers of all results, which many texts may be held against."""
        facts = self._holdings.facts
        return self._holdings.once(
            (_Pool, said.kind, said.unit), lambda: _Pool(said, (fact for fact in facts if is_of_kind(said, fact)))
        )

    def _find_near(self, said: Quantity, number: Decimal, clause: Clause) -> _Near:
        facts = [fact for entity in clause.subjects for fact in entity.inside[:MAX_INSIDE] if is_of_kind(said, fact)]
        own = [value for fact in facts[:MAX_OWN] if (value := read_number(said, fact)) and value != number]
        return _Near(self._list_told(said, clause), own, _measure_room(said, clause))

    def _list_said(self, clause: Clause) -> Sequence[Quantity]:
        """The first quantities of a clause's sentence."""
        end = clause.sentence_start + len(clause.sentence)
        near = self._quantities[bisect_left(self._starts, clause.sentence_start) :][:MAX_BESIDE]
        return [one for one in near if one.start < end]

    def _list_told(self, said: Quantity, clause: Clause) -> list[Decimal]:
        """The numbers of its kind that stand before one, or else in its sentence, or that others said."""
        at = bisect_left(self._starts, said.start)
        end = clause.sentence_start + len(clause.sentence)
        near = [*self._quantities[max(0, at - MAX_BESIDE) : at]]
        near += [one for one in self._quantities[at + 1 : at + MAX_BESIDE] if one.start < end]
        near += [one for one in self._heard if one.kind == said.kind]
        return [one.number for one in near if one.kind in (said.kind, "number", "money") and one.number]

    def _is_multiple(self, said: Quantity, number: Decimal, clause: Clause, near: _Near) -> bool:
        """So many times a value, one shared out among so many, or so many percent of it; by numbers of its record too."""
        pool, beside = self._find_pool(said), self._list_said(clause)
        if near.has(pool.products, number):
            return True
        times = [one.number for one in beside if one.kind in _COUNTED and one.number and one.number != number]
        factors = [each for each in times if 1 < each <= MAX_TIMES and each == each.to_integral_value()]
        shares = [one.number / 100 for one in beside if one.kind == "percent" and one.number and 0 < one.number < 100]
        values = sorted({*near.told, *near.own, *pool.values[:MAX_POOL]} - {number})
        return any(
            _has_near(values, number / n, near.room / n)
            for n in (*factors, *(1 / each for each in factors), *shares, *(1 - each for each in shares))
        )

    def _is_share(self, said: Quantity, number: Decimal, clause: Clause) -> bool:
        """A part of a whole, or a change: of what is told, of whom the clause speaks, and, where none is, of all."""
        at, size = bisect_left(self._starts, said.start), abs(number)
        told = [*self._quantities[max(0, at - MAX_BESIDE) : at], *self._list_said(clause)]
        named = {one.number for one in told if one.kind != "percent" and one.number}
        values = named | {value for kind in ("number", "money") for value in self._list_parts(said, kind, clause)}
        ordered = sorted(abs(value) for value in values)
        room = _measure_room(said, clause) / 100
        changes = [1 - size / 100, 1 + size / 100] if CHANGED & find_words(clause.sentence) or named else []
        return any(
            _has_near(ordered, whole * part, room * whole)
            for part in (size / 100, *changes)
            for whole in ordered
            if part != 1
        )

    def _list_parts(self, said: Quantity, kind: str, clause: Clause) -> Iterator[Decimal]:
        """The numbers of whom a clause speaks, or else of what stands in no list; with the totals of columns."""
        like = said._replace(kind=kind, unit="?" if kind == "money" else "")
        entities: Iterable[Entity] = clause.subjects or (one for one in self._holdings.entities if not one.collection)
        facts = [fact for one in islice(entities, MAX_OWN) for fact in one.own if is_of_kind(like, fact)]
        yield from (value for fact in facts[:MAX_OWN] if (value := read_number(like, fact)))
        yield from self._find_pool(like).wholes[:MAX_OWN]


def _is_difference(number: Decimal, pool: _Pool, near: _Near, *, asked: bool) -> bool:
    """Whether a number lies between one around it and any other, or (`asked`) between two that are held."""
    size, ends = abs(number), sorted({*near.told, *near.own, *pool.values, *pool.wholes})
    if asked and near.has(pool.apart, size):
        return True
    parts = {*near.told, *near.own} - {number}
    return any(
        near.has(ends, one + size) or near.has(ends, one - size)
        for one in parts
        if abs(one) not in (size / 2, size * 2)  # by itself
    )


def _is_total(number: Decimal, pool: _Pool, near: _Near, *, picked: bool) -> bool:
    """Whether a number is the sum of a column, of numbers that are told, or (`picked`) of some of a record or column."""
    if near.has(pool.wholes, number) or (picked and near.has(pool.sums, number)):
        return True
    few, parts = near.told[-_FEW:], {*near.told, *near.own} - {number}
    if any(abs(sum(few[n:]) - number) <= near.room for n in range(len(few) - 1)):
        return True
    others = sorted({*near.told, *pool.values})
    return any(near.has(others, number - one) for one in parts)


def _has_near(ordered: Sequence[Decimal], number: Decimal, room: Decimal) -> bool:
    at = bisect_left(ordered, number - room)
    return at < len(ordered) and ordered[at] <= number + room


def _list_factors(fact: Fact) -> list[Decimal]:
    """The other numbers of a fact's record."""
    beside = islice((other for other in fact.record.facts if other is not fact), MAX_FACTORS)
    numbers = [one.quantities[0].number for one in beside if len(one.quantities) == 1]
    return [number for number in numbers if number]


def _list_columns(held: Sequence[tuple[Decimal, Fact]]) -> Iterator[list[Decimal]]:
    columns: dict[Words, list[Decimal]] = {}
    records: dict[tuple[int, Words], list[Decimal]] = {}
    for value, fact in held:
        columns.setdefault(fact.path, []).append(value)
        records.setdefault((id(fact.record), fact.path[:-1]), []).append(value)
    yield from (each for each in (*columns.values(), *records.values()) if len(each) > 1)


def _measure_room(said: Quantity, clause: Clause) -> Decimal:
    number = said.number or Decimal(0)
    return abs(number) / 10 if is_rough(said, clause) else Decimal(1).scaleb(-max(said.places, 0)) / 2
