"""Check whether a number can be computed, in one step, from held numbers and those of the text."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import combinations, islice
from typing import NamedTuple

from service.core.evidence.arithmetic.asked import CHANGED, asks_arithmetic, asks_sum, asks_total_alone
from service.core.evidence.arithmetic.holding import read_number
from service.core.evidence.arithmetic.transforms import name_slip
from service.core.evidence.facts.entities import MAX_INSIDE, Entity, Holdings, Words
from service.core.evidence.facts.facts import Fact
from service.core.evidence.narration.fitting import is_of_kind, is_rough, is_typed
from service.core.evidence.reading.quantities import Quantity, list_significant_digits
from service.core.evidence.sentences.claims import MAX_BESIDE
from service.core.evidence.sentences.mentions import Clause, find_words
from service.core.models.lazy import lazy

MAX_POOL, MAX_VALUES = 60, 400
"""Limits on the values of results combined with each other, and on those considered at all."""
MAX_OWN = 40
"""Values of a clause's subjects from which others are computed."""
MAX_FACTORS = 12
"""Numbers of one record by which others are multiplied and divided."""
MAX_TIMES = 100
"""Largest number of things by which an amount is multiplied."""
MAX_PICKED = 8
"""Longest column of which a sum may take any selection of values."""
_FEW = 10
_CHANCE_DIGITS = 2
"""A number with more digits than this is unlikely to be the sum of a few others by chance."""
_COUNTED = ("number", "measure", "duration")


class _Pool:
    """The numbers of results in the terms of a claim, and the results of arithmetic within one column or record."""

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
        """Pairs of values that may be combined: they are siblings, or both are of the claim's type."""
        keyed = [(value, fact.path[:-1], fact.path[:-2], is_typed(self._said, fact)) for value, fact in self._few]
        return [
            (one[0], other[0])
            for one, other in combinations(keyed, 2)
            if (one[3] and other[3]) or one[1] == other[1] or (one[1] and one[2] == other[2])
        ]

    @lazy
    def apart(self) -> list[Decimal]:
        """The differences between values that belong together."""
        return sorted({abs(a - b) for a, b in self._pairs})

    @lazy
    def sums(self) -> list[Decimal]:
        """The sums of two values that belong together, and of any selection from a short column, which words may pick out."""
        short = [each for each in self._columns if len(each) <= MAX_PICKED]
        picked = {
            sum(some, Decimal(0)) for each in short for n in range(3, len(each)) for some in combinations(each, n)
        }
        return sorted({*picked, *(a + b for a, b in self._pairs)})

    @lazy
    def products(self) -> list[Decimal]:
        """The values multiplied and divided by another number of their record, or taken as or lowered by that percentage."""
        return sorted(
            {
                made
                for value, fact in self._few
                for n in _list_factors(fact)
                for made in (value * n, value / n, value * n / 100, value - value * n / 100)
            }
        )


class _Context(NamedTuple):
    """The context of a number: the numbers around it (`told`), those of its clause's subjects (`own`), and its tolerance."""

    told: Sequence[Decimal]
    own: Sequence[Decimal]
    tolerance: Decimal

    def has(self, ordered: Sequence[Decimal], number: Decimal) -> bool:
        """Whether one of the sorted values equals the number within the tolerance."""
        return _has_near(ordered, number, self.tolerance)


class Workings:
    """The numbers that can be computed from those of the results and those of a text."""

    def __init__(self, holdings: Holdings, quantities: Sequence[Quantity], heard: Sequence[Quantity] = ()) -> None:
        self._holdings = holdings
        self._heard = heard
        self._quantities = quantities
        self._starts = [one.start for one in quantities]

    def give(self, said: Quantity, clause: Clause, *, apart: bool) -> bool:
        """Whether a number can be computed from others. `apart`: its words say that it is a difference."""
        number = said.number
        if number is None:
            return False
        if said.kind == "percent":
            return self._is_share(said, number, clause)
        pool, context = self._find_pool(said), self._build_context(said, number, clause)
        asked = apart or asks_arithmetic(clause)
        if (apart or not asks_total_alone(clause)) and _is_difference(number, pool, context, asked=asked):
            return True
        picked = asked or len(list_significant_digits(number)) > _CHANCE_DIGITS
        return not apart and (
            _is_total(number, pool, context, picked=picked) or self._is_multiple(said, number, clause, context)
        )

    def is_near(self, said: Quantity, clause: Clause) -> bool:
        """Whether a number is a slip of the total or the difference that its words call for."""
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
        """Whether a number multiplies a held amount into one stated after it: `four seats come to $204`."""
        number = said.number
        if number is None or not 1 < number <= MAX_TIMES:
            return False
        behind = [
            one for one in self._list_said(clause) if one.start >= said.end and one.kind == "money" and one.number
        ]
        return any(
            _has_near(self._find_pool(one).values, one.number / number, _measure_tolerance(one, clause) / number)
            for one in behind
            if one.number
        )

    def _find_pool(self, said: Quantity) -> _Pool:
        """Return the numbers of all results, shared by the texts compared with them."""
        facts = self._holdings.facts
        return self._holdings.once(
            (_Pool, said.kind, said.unit), lambda: _Pool(said, (fact for fact in facts if is_of_kind(said, fact)))
        )

    def _build_context(self, said: Quantity, number: Decimal, clause: Clause) -> _Context:
        facts = [fact for entity in clause.subjects for fact in entity.inside[:MAX_INSIDE] if is_of_kind(said, fact)]
        own = [value for fact in facts[:MAX_OWN] if (value := read_number(said, fact)) and value != number]
        return _Context(self._list_told(said, clause), own, _measure_tolerance(said, clause))

    def _list_said(self, clause: Clause) -> Sequence[Quantity]:
        """Return the first quantities of a clause's sentence."""
        end = clause.sentence_start + len(clause.sentence)
        near = self._quantities[bisect_left(self._starts, clause.sentence_start) :][:MAX_BESIDE]
        return [one for one in near if one.start < end]

    def _list_told(self, said: Quantity, clause: Clause) -> list[Decimal]:
        """Return the numbers of its kind before a quantity, in the rest of its sentence, and in what others said."""
        at = bisect_left(self._starts, said.start)
        end = clause.sentence_start + len(clause.sentence)
        near = [*self._quantities[max(0, at - MAX_BESIDE) : at]]
        near += [one for one in self._quantities[at + 1 : at + MAX_BESIDE] if one.start < end]
        near += [one for one in self._heard if one.kind == said.kind]
        return [one.number for one in near if one.kind in (said.kind, "number", "money") and one.number]

    def _is_multiple(self, said: Quantity, number: Decimal, clause: Clause, context: _Context) -> bool:
        """Whether a number is a value multiplied, divided, or scaled by a percentage, with factors from text or from records."""
        pool, beside = self._find_pool(said), self._list_said(clause)
        if context.has(pool.products, number):
            return True
        times = [one.number for one in beside if one.kind in _COUNTED and one.number and one.number != number]
        factors = [each for each in times if 1 < each <= MAX_TIMES and each == each.to_integral_value()]
        shares = [one.number / 100 for one in beside if one.kind == "percent" and one.number and 0 < one.number < 100]
        values = sorted({*context.told, *context.own, *pool.values[:MAX_POOL]} - {number})
        return any(
            _has_near(values, number / n, context.tolerance / n)
            for n in (*factors, *(1 / each for each in factors), *shares, *(1 - each for each in shares))
        )

    def _is_share(self, said: Quantity, number: Decimal, clause: Clause) -> bool:
        """Whether a percentage is a share or a change between numbers of the text, the clause's subjects, or all results."""
        at, size = bisect_left(self._starts, said.start), abs(number)
        told = [*self._quantities[max(0, at - MAX_BESIDE) : at], *self._list_said(clause)]
        named = {one.number for one in told if one.kind != "percent" and one.number}
        values = named | {value for kind in ("number", "money") for value in self._list_parts(said, kind, clause)}
        ordered = sorted(abs(value) for value in values)
        tolerance = _measure_tolerance(said, clause) / 100
        changes = [1 - size / 100, 1 + size / 100] if CHANGED & find_words(clause.sentence) or named else []
        return any(
            _has_near(ordered, whole * part, tolerance * whole)
            for part in (size / 100, *changes)
            for whole in ordered
            if part != 1
        )

    def _list_parts(self, said: Quantity, kind: str, clause: Clause) -> Iterator[Decimal]:
        """Iterate over the numbers of a clause's subjects, or else of entities in no array, and over the totals of columns."""
        like = said._replace(kind=kind, unit="?" if kind == "money" else "")
        entities: Iterable[Entity] = clause.subjects or (one for one in self._holdings.entities if not one.collection)
        facts = [fact for one in islice(entities, MAX_OWN) for fact in one.own if is_of_kind(like, fact)]
        yield from (value for fact in facts[:MAX_OWN] if (value := read_number(like, fact)))
        yield from self._find_pool(like).wholes[:MAX_OWN]


def _is_difference(number: Decimal, pool: _Pool, context: _Context, *, asked: bool) -> bool:
    """Whether a number is the difference of one around it and any other, or (`asked`) of two held ones."""
    size, ends = abs(number), sorted({*context.told, *context.own, *pool.values, *pool.wholes})
    if asked and context.has(pool.apart, size):
        return True
    parts = {*context.told, *context.own} - {number}
    return any(
        context.has(ends, one + size) or context.has(ends, one - size)
        for one in parts
        if abs(one) not in (size / 2, size * 2)  # a number cannot be computed from itself
    )


def _is_total(number: Decimal, pool: _Pool, context: _Context, *, picked: bool) -> bool:
    """Whether a number is the sum of a column, of numbers of the text, or (`picked`) of a selection from a record or column."""
    if context.has(pool.wholes, number) or (picked and context.has(pool.sums, number)):
        return True
    few, parts = context.told[-_FEW:], {*context.told, *context.own} - {number}
    if any(abs(sum(few[n:]) - number) <= context.tolerance for n in range(len(few) - 1)):
        return True
    others = sorted({*context.told, *pool.values})
    return any(context.has(others, number - one) for one in parts)


def _has_near(ordered: Sequence[Decimal], number: Decimal, tolerance: Decimal) -> bool:
    at = bisect_left(ordered, number - tolerance)
    return at < len(ordered) and ordered[at] <= number + tolerance


def _list_factors(fact: Fact) -> list[Decimal]:
    """Return the other numbers of a fact's record."""
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


def _measure_tolerance(said: Quantity, clause: Clause) -> Decimal:
    number = said.number or Decimal(0)
    return abs(number) / 10 if is_rough(said, clause) else Decimal(1).scaleb(-max(said.places, 0)) / 2
