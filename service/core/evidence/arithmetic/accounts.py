"""Decide whether anything accounts for a value: a result, earlier messages, or one step of arithmetic on these.

A value that nothing accounts for came from nowhere. Any number of any record may account for a stated one, so a value with
no source is suspicious whatever the words around it say. Arithmetic combines only what belongs together: numbers of one
column or one record, and a stated number with any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import combinations, islice, permutations
from math import log10

from service.core.evidence.arithmetic.asked import asks_result
from service.core.evidence.arithmetic.known_moments import KnownMoments
from service.core.evidence.arithmetic.known_numbers import (
    EPSILON,
    MAX_BARE,
    MAX_NUMBERS,
    KnownNumbers,
    NumberColumns,
    has_near,
)
from service.core.evidence.arithmetic.transforms import relate
from service.core.evidence.facts.entities import Holdings
from service.core.evidence.facts.facts import Fact
from service.core.evidence.narration.verdicts import Utterances
from service.core.evidence.reading.quantities import Quantity, Value, list_significant_digits
from service.core.evidence.reading.stated import find_stated
from service.core.evidence.reading.units import UNITS, convert_to_base
from service.core.evidence.reading.words import split_tokens, split_words
from service.core.evidence.sentences.claims import Statement
from service.core.evidence.sentences.mentions import find_words
from service.core.models.lazy import lazy

MAX_SHARES, MAX_FACTORS = 40, 24
_FACTORS = {
    "half": (0.5,),
    "twice": (2,),
    "double": (2,),
    "doubled": (2,),
    "third": (1 / 3,),
    "thirds": (2 / 3,),
    "quarter": (0.25,),
    "quarters": (0.75,),
    "dozen": (12,),
    "week": (7, 52),
    "weekly": (7, 52),
    "month": (12, 30, 4),
    "monthly": (12, 30, 4),
    "year": (12, 52, 365),
    "yearly": (12, 52, 365),
    "annual": (12, 52, 365),
    "day": (7, 24, 30, 365),
    "daily": (7, 30, 365),
    "hour": (24, 60),
    "hourly": (24,),
    "minute": (60,),
    "both": (2,),
    "million": (1e6,),
    "thousand": (1e3,),
}
"""The factors that words imply where something is multiplied or divided."""
_SHARED = split_words("together both each apiece per altogether")
_DIGITS = re.compile(r"\d{3,40}")
_MIN_TAIL = 4
"""Digits by which the end of an identifier is told."""
_CHANCE_DIGITS = 2
"""A number with more digits than this counts as held even if the results have it in another unit."""
_MIN_BARE = 10
"""Smaller bare numbers count things, so they are not added to amounts."""
MAX_BESIDE, _MIN_WORKED_OUT = 6, 2
"""Numbers of a sentence from which another one is worked out, and the fewest digits of that one."""


class Accounts:
    """Everything that may account for the values of one text."""

    def __init__(self, holdings: Holdings, utterances: Utterances, said: Sequence[Quantity], *, english: bool) -> None:
        """`said`: the quantities of the text itself. `english`: its words tell where arithmetic is asked for."""
        heard = utterances.quantities()
        self._english = english
        self._holdings = holdings
        self._heard = heard
        self.said = said
        self._others = [*heard, *said]
        self._moments = KnownMoments(holdings, heard, said, utterances.today)
        self._numbers: dict[tuple[str, str], KnownNumbers] = {}
        self._close: dict[tuple[int, str], bool] = {}
        """For each quantity of the text, by its place and kind, whether it follows closely."""

    def give(self, statement: Statement, *, rough: bool) -> bool:
        """Whether something accounts for the quantity of a statement. `rough`: the text gives it roughly."""
        said = statement.quantity
        if not self._heard_values.isdisjoint(said.values):
            return True
        if said.kind in ("date", "time"):
            return self._moments.give(statement, rough=rough)
        if said.kind == "duration" and self._moments.give_duration(said, measure_tolerance(said, rough=rough)):
            return True
        return said.number is None or self._gives_number(statement, float(abs(said.number)), rough=rough)

    @lazy
    def _heard_values(self) -> frozenset[Value]:
        """Values from others' messages and from arguments, and those in field names (`3.5mm jack`)."""
        names = {name for path in self._holdings.by_path for name in path if any(c.isdigit() for c in name)}
        told = (one for name in islice(names, MAX_NUMBERS) for one in find_stated(name))
        return frozenset(value for one in (*self._heard, *told) for value in one.values)

    def _is_held(self, statement: Statement, *, rough: bool) -> bool:
        """Whether the results hold a number: in its own unit, in any unit if it has enough digits, or ending a run of digits."""
        said = statement.quantity
        digits = len(list_significant_digits(said.number)) if said.number is not None else 0
        held = (fact for value in said.values for fact in self._holdings.by_value.get(value, ()))
        if digits > _CHANCE_DIGITS and not all(said.kind == "money" and fact.counted.minor for fact in held):
            return True
        if said.kind == "number" and digits > _CHANCE_DIGITS and str(said.number) in self._digit_runs:
            return True
        tail = said.kind == "number" and len(said.text) >= _MIN_TAIL and said.text.isdigit()
        if tail and any(run.endswith(said.text) for run in self._digit_runs):
            return True
        return self.holds(statement, rough=rough)

    def holds(self, statement: Statement, *, rough: bool) -> bool:
        """Whether the results hold a number in its own unit, as it is, converted, rounded or with its sign in words."""
        said, words = statement.quantity, find_words(statement.sentence)
        near = self._holdings.scale.find_near(said, about=rough)
        return any(relate(said, fact, held, about=rough, words=words) for fact in near for held in fact.quantities)

    @lazy
    def _digit_runs(self) -> frozenset[str]:
        """Runs of digits in the texts of results: a text may refer to `certificate_7504069` as `ending in 4069`."""
        texts = (fact.value for fact in self._holdings.facts if isinstance(fact.value, str))
        return frozenset(run for text in texts for run in _DIGITS.findall(text))

    def give_near(self, statement: Statement, *, rough: bool) -> bool:
        """Whether a value follows from known ones that belong together; that a moment is known elsewhere is not enough."""
        said = statement.quantity
        if said.kind in ("date", "time"):
            return self._moments.follow(statement)
        if said.kind == "duration" and self._moments.lasts(statement, measure_tolerance(said, rough=rough)):
            return True
        return self.give_closely(statement, rough=rough)

    def give_at_once(self, statement: Statement, *, rough: bool) -> bool:
        """Whether a number is known, or follows from others of its sentence."""
        said = statement.quantity
        known = not self._heard_values.isdisjoint(said.values) or self._is_held(statement, rough=rough)
        if known or said.number is None:
            return True
        return self._is_worked_out(statement, float(abs(said.number)), measure_tolerance(said, rough=rough))

    def give_sum(self, statement: Statement, *, rough: bool) -> bool:
        """Whether a number is known, or a sum or difference of numbers of its sentence, of one column, one record or the text."""
        said = statement.quantity
        if self.give_at_once(statement, rough=rough) or said.number is None:
            return True
        return self._find_numbers(said).has_close(float(abs(said.number)), measure_tolerance(said, rough=rough))

    def give_closely(self, statement: Statement, *, rough: bool) -> bool:
        """Whether a number is known, or follows from numbers that belong together.

        A percentage may be a share of them; an amount may be a multiple of any, and a few of one and a few of another.
        """
        key = statement.quantity.start, statement.quantity.kind
        if key not in self._close:
            self._close[key] = self._follows_closely(statement, rough=rough)
        return self._close[key]

    def _follows_closely(self, statement: Statement, *, rough: bool) -> bool:
        said = statement.quantity
        if said.number is None or self.give_at_once(statement, rough=rough):
            return True
        size, tolerance = float(abs(said.number)), measure_tolerance(said, rough=rough)
        if said.kind == "percent":
            return has_near(self._share_ways, size / 100, tolerance / 100) or any(
                self._find_numbers(one).has_close_share(size / 100, tolerance / 100) for one in self._list_wholes(said)
            )
        numbers = self._find_numbers(said)
        if said.kind == "money" and (
            numbers.has_mix(size, tolerance) or numbers.has_multiple(size, self._factors, (), tolerance)
        ):
            return True
        return numbers.has_close(size, tolerance)

    def _gives_number(self, statement: Statement, size: float, *, rough: bool) -> bool:
        """Whether a number follows closely or, where its sentence may state a computed value, from any that are known."""
        if self.give_closely(statement, rough=rough):
            return True
        said = statement.quantity
        tolerance = measure_tolerance(said, rough=rough)
        if said.kind == "percent":
            return any(
                self._find_numbers(one).has_share(size / 100, tolerance / 100) for one in self._list_wholes(said)
            )
        numbers, words = self._find_numbers(said), split_tokens(statement.sentence)
        implied = [n for word in words for n in _FACTORS.get(word, _FACTORS.get(word.rstrip("s"), ()))]
        if not implied and self._english and not asks_result(statement.sentence):
            return False
        return (
            numbers.has_pair(size, tolerance)
            or numbers.has_multiple(size, [*self._bare, *implied], self._shares, tolerance)
            or (not _SHARED.isdisjoint(words) and numbers.has_shared_pair(size, tolerance))
        )

    def find_totals(self, said: Quantity) -> list[tuple[float, Fact]]:
        """Return the totals of the columns of a quantity's kind, each with its first fact."""
        return self._find_numbers(said).totals

    def _is_worked_out(self, statement: Statement, size: float, tolerance: float) -> bool:
        """Whether a number of two or more digits follows from those that its sentence states: `$60 less 10 %, so $54`."""
        if len(list_significant_digits(statement.quantity.number or Decimal(0))) < _MIN_WORKED_OUT:
            return False
        beside = (one for one in statement.list_beside(self.said) if one.start != statement.quantity.start)
        near = [*islice((one for one in beside if one.number), MAX_BESIDE)]
        if not any(self._is_known(one) for one in near):  # an invented total follows from its invented parts
            return False
        numbers = [float(abs(one.number or 0)) for one in near]
        return any(abs(way - size) <= tolerance + EPSILON for way in _iter_workings(numbers))

    def _is_known(self, said: Quantity) -> bool:
        return self._holdings.holds(said) or not self._heard_values.isdisjoint(said.values)

    def _list_wholes(self, said: Quantity) -> list[Quantity]:
        """Return one quantity for each sort of number that a percentage may be a share of."""
        return [said._replace(kind="number", unit=""), said._replace(kind="money", unit="?"), *self._measured]

    def _find_numbers(self, said: Quantity) -> KnownNumbers:
        """Return all numbers in the terms of a quantity: those of results, of `heard`, and of the text."""
        key = said.kind, said.unit
        if key not in self._numbers:
            columns = self._holdings.once((NumberColumns, key), lambda: NumberColumns(said, self._holdings))
            heard, told = ([n for one in ones if (n := _read_said(said, one))] for ones in (self._heard, self.said))
            self._numbers[key] = KnownNumbers(columns, heard, told)
        return self._numbers[key]

    @lazy
    def _bare(self) -> list[float]:
        """Stated numbers by which amounts may be multiplied or divided."""
        found = dict.fromkeys(float(abs(one.number)) for one in self._others if one.number)
        return [n for n in islice(found, MAX_BARE) if n not in (0, 1)]

    @lazy
    def _factors(self) -> list[float]:
        """Stated numbers by which amounts may be multiplied, without those that only move the point."""
        return [n for n in self._bare[:MAX_FACTORS] if not log10(n).is_integer()]

    @lazy
    def _shares(self) -> list[float]:
        """The shares, as parts of 1, that results and messages give."""
        found: dict[float, None] = {}
        for fact in self._holdings.facts:
            for held in fact.quantities:
                if held.number is not None and (held.kind == "percent" or fact.counted.unit == "%"):
                    found[float(abs(held.number)) / 100] = None
                elif held.number is not None and held.kind == "number" and 0 < abs(held.number) < 1:
                    found[float(abs(held.number))] = None
        found.update(
            (float(abs(one.number)) / 100, None) for one in self._others if one.kind == "percent" and one.number
        )
        return [share for share in islice(found, MAX_SHARES) if share]

    @lazy
    def _share_ways(self) -> list[float]:
        """What is left of each share, and how far any two shares are apart, sorted."""
        apart = {abs(one - other) for one, other in combinations(self._shares, 2)}
        return sorted(apart | {abs(1 - share) for share in self._shares})

    @lazy
    def _measured(self) -> list[Quantity]:
        """One quantity for each dimension in which the results give measures."""
        found: dict[str, Quantity] = {}
        for fact in self._holdings.facts:
            for held in fact.quantities:
                unit = held.unit or fact.counted.unit
                if unit in UNITS and held.number is not None:
                    dimension = UNITS[unit].dimension
                    kind = "duration" if dimension == "duration" else "measure"
                    found.setdefault(dimension, held._replace(kind=kind, unit=unit))
        return [*found.values()]


def _iter_workings(numbers: Sequence[float]) -> Iterator[float]:
    """Iterate over what follows from two or three numbers: sums, differences, products, quotients, and shares in percent."""
    for one, other in permutations(numbers, 2):
        yield from (one + other, one - other, one * other, one * other / 100)
        if other:
            yield from (one / other, 100 * one / other)
    for one, other, third in permutations(numbers, 3):
        yield from (one + other + third, one + other - third, one - other - third)


def _read_said(said: Quantity, other: Quantity) -> float | None:
    """Return the number of `other` in the terms of `said`; None if the two are not of the same sort."""
    if other.number is None:
        return None
    if other.kind == said.kind and other.unit in UNITS and said.unit in UNITS:
        mine, own = UNITS[said.unit], UNITS[other.unit]
        same = mine.dimension == own.dimension
        return float((convert_to_base(abs(other.number), own) - mine.shift) / mine.factor) if same else None
    size = float(abs(other.number))
    bare = other.kind == "number" and (said.kind == "number" or size >= _MIN_BARE)
    return size if other.kind == said.kind or bare else None


def measure_tolerance(said: Quantity, *, rough: bool) -> float:
    """Return by how much a number may differ from the one it gives: half its last place, or a tenth if it is rough."""
    return float(abs(said.number or 0)) / 10 if rough else 10.0 ** -max(said.places, -6) / 2 * 1.001
