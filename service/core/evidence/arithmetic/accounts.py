"""Decide whether anything accounts for a value: a result, earlier messages, or one step of arithmetic on these.

A value that nothing accounts for came from nowhere. Any number of any record may account for a stated one, so a value with
no source is suspicious whatever the words around it say. Arithmetic combines only what belongs together: numbers of one
column or one record, and a stated number with any other.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import islice, permutations
from math import log10

from service.core.evidence.arithmetic.asked import asks_result
from service.core.evidence.arithmetic.known_numbers import (
    EPSILON,
    MAX_BARE,
    MAX_NUMBERS,
    KnownNumbers,
    NumberColumns,
    has_near,
)
from service.core.evidence.arithmetic.spans import Spans
from service.core.evidence.arithmetic.transforms import relate
from service.core.evidence.arithmetic.zones import Zones
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

MAX_SHARES = 40
MAX_MOMENTS, MAX_PAIRED_MOMENTS, MAX_SPANS, MAX_SAID_SPANS = 120, 60, 80, 4
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
_MOVING = split_words("by until till end ends done finish finishes finished over before after later earlier ready due")
"""Words that relate one moment to another."""
_DAY_MIN, _DAY_S, _ROUGH_MIN = 1440, 86_400, 15
_MONTH_S = float(UNITS["month"].factor)
_AFTER_CHARS = 40
_DIGITS = re.compile(r"\d{3,40}")
_MIN_TAIL = 4
"""Digits by which the end of an identifier is told."""
_CHANCE_DIGITS = 2
"""A number with more digits than this counts as held even if the results have it in another unit."""
_MIN_BARE = 10
"""Smaller bare numbers count things, so they are not added to amounts."""
MAX_BESIDE, _MIN_WORKED_OUT = 6, 2
"""Numbers of a sentence from which another one is worked out, and the fewest digits of that one."""
Span = tuple[float, str]
"""A length in seconds, and the name of the unit it was given in."""


class Accounts:
    """Everything that may account for the values of one text."""

    def __init__(self, holdings: Holdings, utterances: Utterances, said: Sequence[Quantity], *, english: bool) -> None:
        """`said`: the quantities of the text itself. `english`: its words tell where arithmetic is asked for."""
        heard, today = utterances.quantities(), utterances.today
        self._english = english
        self._holdings = holdings
        self._heard = heard
        self._said = said
        self._others = [*heard, *said]
        self._today = today
        self._zones = Zones(holdings, said)
        self._spans = Spans(holdings, today)
        self._numbers: dict[tuple[str, str], KnownNumbers] = {}

    def give(self, statement: Statement, *, rough: bool) -> bool:
        """Whether something accounts for the quantity of a statement. `rough`: the text gives it roughly."""
        said = statement.quantity
        if not self._heard_values.isdisjoint(said.values):
            return True
        if said.kind == "date":
            return self._gives_date(statement)
        if said.kind == "time":
            return self._gives_time(statement, rough=rough)
        if self._is_held(statement, rough=rough) or (said.kind == "duration" and self._lies_between(said, rough=rough)):
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
        if digits > _CHANCE_DIGITS and any(value in self._holdings.by_value for value in said.values):
            return True
        if digits > _CHANCE_DIGITS and str(said.number) in self._digit_runs:
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

    def _iter_held(self) -> Iterator[Quantity]:
        return (held for fact in self._holdings.facts for held in fact.quantities)

    # Moments.

    def _gives_date(self, statement: Statement) -> bool:
        """Whether a day is known, also by other clocks, or lies a known span of time before or after a known day."""
        said = {str(value)[:10] for value in statement.quantity.values}
        if self._holdings.has_moment(statement.quantity) or self._zones.tell(statement.quantity, self._holdings.facts):
            return True
        if not said.isdisjoint(_list_moved(self._days, self._list_said_spans(statement))):
            return True
        return _leads_on(statement) and not said.isdisjoint(self._moved_days)

    @lazy
    def _days(self) -> list[date]:
        """The days with a year that results or messages give, and today."""
        found = dict.fromkeys(
            str(one.value)[:10]
            for one in (*self._iter_held(), *self._others)
            if one.kind == "date" and str(one.value)[0] != "-"
        )
        days = [date.fromisoformat(day) for day in islice(found, MAX_MOMENTS)]
        return [*days, *([self._today] if self._today else [])]

    @lazy
    def _moved_days(self) -> frozenset[str]:
        return _list_moved(self._days, self._known_spans)

    def _list_said_spans(self, statement: Statement) -> list[Span]:
        """Return the spans of time that a statement's sentence states."""
        first = bisect_left(self._said, statement.sentence_start, key=_get_start)
        last = bisect_left(self._said, statement.sentence_start + len(statement.sentence), key=_get_start)
        return [span for one in self._said[first:last] for span in _read_span(one, "")][:MAX_SAID_SPANS]

    @lazy
    def _known_spans(self) -> list[Span]:
        """The spans of time that results, others' messages and arguments give."""
        found: dict[Span, None] = {}
        for fact in self._holdings.facts:
            for held in fact.quantities:
                found.update(dict.fromkeys(_read_span(held, fact.counted.unit)))
        for one in self._heard:
            found.update(dict.fromkeys(_read_span(one, "")))
        return [*islice(found, MAX_SPANS)]

    def _gives_time(self, statement: Statement, *, rough: bool) -> bool:
        """Whether a time is known, also by other clocks, or lies a known span of time before or after a known time."""
        said = statement.quantity
        after = statement.sentence[said.end - statement.sentence_start :][:_AFTER_CHARS]
        if self._zones.tell(said, self._holdings.facts) or self._zones.tell_there(said, after):
            return True
        here = _read_minutes(said)
        near = [(here + move) % _DAY_MIN for move in (range(-_ROUGH_MIN, _ROUGH_MIN + 1) if rough else (0,))]
        if not self._times.isdisjoint(near):
            return True
        spans = {round(seconds / 60) % _DAY_MIN for seconds, _ in self._list_said_spans(statement)} - {0}
        others = self._times | (self._said_times - {here})
        if any((minute + sign * span) % _DAY_MIN in others for minute in near for span in spans for sign in (1, -1)):
            return True
        return _leads_on(statement) and not self._moved_times.isdisjoint(near)

    @lazy
    def _times(self) -> frozenset[int]:
        """The times of day, in minutes, that results, others' messages and arguments give."""
        return frozenset(_read_minutes(one) for one in (*self._iter_held(), *self._heard) if one.kind == "time")

    @lazy
    def _said_times(self) -> frozenset[int]:
        return frozenset(_read_minutes(one) for one in self._said if one.kind == "time")

    @lazy
    def _moved_times(self) -> frozenset[int]:
        spans = {round(seconds / 60) * sign for seconds, _ in self._known_spans for sign in (1, -1)}
        times = islice(self._times | self._said_times, MAX_MOMENTS)
        return frozenset((time + span) % _DAY_MIN for time in times for span in spans if span % _DAY_MIN)

    def _lies_between(self, said: Quantity, *, rough: bool) -> bool:
        """Whether a duration lies between two moments of one record, between any two known ones, or between one and today."""
        if self._spans.give(said, (), about=rough):
            return True
        factor = float(UNITS[said.unit].factor)
        size = float(abs(said.number or 0)) * factor
        return has_near(self._gaps, size, max(_measure_tolerance(said, rough=rough) * factor, 30))

    @lazy
    def _gaps(self) -> list[float]:
        """The seconds between any two times of day and between any two days, sorted."""
        times = [*islice(self._times | self._said_times, MAX_PAIRED_MOMENTS)]
        gaps = {abs(one - other) * 60 for one in times for other in times}
        gaps |= {_DAY_S - gap for gap in gaps}
        days = [day.toordinal() for day in self._days[-MAX_PAIRED_MOMENTS:]]
        return sorted(map(float, gaps | {abs(one - other) * _DAY_S for one in days for other in days}))

    # Numbers.

    def _gives_number(self, statement: Statement, size: float, *, rough: bool) -> bool:
        said = statement.quantity
        tolerance = _measure_tolerance(said, rough=rough)
        if self._is_worked_out(statement, size, tolerance):
            return True
        if said.kind == "percent":
            return _is_of_shares(size / 100, self._shares, tolerance / 100) or any(
                self._find_numbers(one).has_share(size / 100, tolerance / 100) for one in self._list_wholes(said)
            )
        numbers = self._find_numbers(said)
        if numbers.has(size, tolerance):
            return True
        words = split_tokens(statement.sentence)
        implied = [n for word in words for n in _FACTORS.get(word, _FACTORS.get(word.rstrip("s"), ()))]
        if not implied and self._english and not asks_result(statement.sentence):
            return False
        return (
            numbers.has_pair(size, tolerance)
            or numbers.has_multiple(size, [*self._bare, *implied], self._shares, tolerance)
            or (not _SHARED.isdisjoint(words) and numbers.has_shared_pair(size, tolerance))
        )

    def give_at_once(self, statement: Statement, *, rough: bool) -> bool:
        """Whether a number is known, or follows from others of its sentence."""
        said = statement.quantity
        if not self._heard_values.isdisjoint(said.values) or self._is_held(statement, rough=rough) or said.number is None:
            return True
        return self._is_worked_out(statement, float(abs(said.number)), _measure_tolerance(said, rough=rough))

    def give_closely(self, statement: Statement, *, rough: bool) -> bool:
        """Whether a number is known, or follows from numbers that belong together: of one column, one record, or the text.

        An amount may be a multiple of any number too.
        """
        said = statement.quantity
        if self.give_at_once(statement, rough=rough) or said.number is None:
            return True
        size, tolerance = float(abs(said.number)), _measure_tolerance(said, rough=rough)
        if said.kind == "percent":
            return _is_of_shares(size / 100, self._shares, tolerance / 100) or any(
                self._find_numbers(one).has_close_share(size / 100, tolerance / 100) for one in self._list_wholes(said)
            )
        numbers = self._find_numbers(said)
        if said.kind == "money" and (
            numbers.has_multiple(size, self._factors, (), tolerance) or numbers.has_mix(size, tolerance)
        ):
            return True
        return numbers.has_close(size, tolerance)

    def find_totals(self, said: Quantity) -> list[tuple[float, Fact]]:
        """Return the totals of the columns of a quantity's kind, each with its first fact."""
        return self._find_numbers(said).totals

    def _is_worked_out(self, statement: Statement, size: float, tolerance: float) -> bool:
        """Whether a number of two or more digits follows from those that its sentence states: `$60 less 10 %, so $54`."""
        if len(list_significant_digits(statement.quantity.number or Decimal(0))) < _MIN_WORKED_OUT:
            return False
        first = bisect_left(self._said, statement.sentence_start, key=_get_start)
        last = bisect_left(self._said, statement.sentence_start + len(statement.sentence), key=_get_start)
        near = [one for one in self._said[first:last] if one.number and one.start != statement.quantity.start][:MAX_BESIDE]
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
            heard, told = ([n for one in ones if (n := _read_said(said, one))] for ones in (self._heard, self._said))
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
        return [n for n in self._bare if not log10(n).is_integer()]

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


def _is_of_shares(part: float, shares: Sequence[float], tolerance: float) -> bool:
    """Whether a share is the rest of another share, or the difference of two."""
    return any(
        _is_near(abs(1 - one), part, tolerance) or any(_is_near(abs(one - other), part, tolerance) for other in shares)
        for one in shares
    )


def _is_near(one: float, other: float, tolerance: float) -> bool:
    return abs(one - other) <= tolerance + EPSILON


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


def _measure_tolerance(said: Quantity, *, rough: bool) -> float:
    return float(abs(said.number or 0)) / 10 if rough else 10.0 ** -max(said.places, -6) / 2 * 1.001


def _read_span(one: Quantity, unit: str) -> list[Span]:
    """Return the span of time that a quantity gives; empty if it gives none. `unit`: the unit of its field."""
    unit = one.unit if one.kind == "duration" else unit if one.kind == "number" else ""
    if one.number is None or unit not in UNITS or UNITS[unit].dimension != "duration":
        return []
    return [(float(abs(one.number) * UNITS[unit].factor), UNITS[unit].name)]


def _read_minutes(one: Quantity) -> int:
    return int(str(one.value)[:2]) * 60 + int(str(one.value)[3:5])


def _leads_on(statement: Statement) -> bool:
    """Whether a statement's sentence may relate a moment to one that it does not name."""
    return not _MOVING.isdisjoint(split_tokens(statement.sentence))


def _list_moved(days: Iterable[date], spans: Iterable[Span]) -> frozenset[str]:
    """Return the days that lie a span of whole days, months or years before or after others, with and without their year."""
    spans = [*spans]
    moves = {round(seconds / _DAY_S) for seconds, unit in spans if unit not in ("month", "year")} - {0}
    months = {round(seconds / _MONTH_S) for seconds, unit in spans if unit in ("month", "year")} - {0}
    found = {
        there
        for day in days
        for sign in (1, -1)
        for there in (*(_move_days(day, n * sign) for n in moves), *(_move_months(day, n * sign) for n in months))
    }
    return frozenset([*found, *(f"-{day[4:]}" for day in found if day)])


def _move_days(day: date, days: int) -> str:
    try:
        return (day + timedelta(days=days)).isoformat()
    except OverflowError:
        return ""


def _move_months(day: date, months: int) -> str:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return f"{year:04}-{month + 1:02}-{day.day:02}" if 0 < year < 10_000 else ""


def _get_start(quantity: Quantity) -> int:
    return quantity.start
