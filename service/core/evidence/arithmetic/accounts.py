"""Whether anything accounts for a value: a result, what was said before, or one step of arithmetic over these.

A value that nothing accounts for came from nowhere. Any number of any record may account for one that is said, so that
what is not found is worth a suspicion, whatever the words around it say. Arithmetic is bounded by what belongs
together: numbers of one column or one record, and numbers that somebody said with any other.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date, timedelta
from itertools import accumulate, islice

from service.core.evidence.arithmetic.asked import asks_result
from service.core.evidence.arithmetic.holding import read_number
from service.core.evidence.arithmetic.spans import Spans
from service.core.evidence.arithmetic.transforms import relate
from service.core.evidence.arithmetic.zones import Zones
from service.core.evidence.facts.facts import Fact
from service.core.evidence.facts.held import Holdings
from service.core.evidence.narration.fitting import is_of_kind
from service.core.evidence.reading.dates import is_same_day
from service.core.evidence.reading.quantities import Quantity, Value, list_significant_digits
from service.core.evidence.reading.stated import find_stated
from service.core.evidence.reading.units import UNITS, convert_to_base
from service.core.evidence.reading.words import split_tokens, split_words
from service.core.evidence.sentences.claims import Claim
from service.core.models.lazy import lazy

MAX_NUMBERS, MAX_BARE, MAX_GROUPS = 600, 120, 60
"""Numbers of one sort, numbers by which others are multiplied, and columns or records that are looked through."""
MAX_PAIRED = 40
"""Numbers of one column or record of which each two are added and subtracted."""
MAX_MOMENTS, MAX_SPANS = 200, 120
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
"""Numbers that words stand for where something is multiplied or shared out."""
_MOVING = split_words("by until till end ends done finish finishes finished over before after later earlier ready due")
"""Words that lead from one moment to another."""
_DAY_MIN, _DAY_S, _ROUGH_MIN = 1440, 86_400, 15
_MONTH_S = float(UNITS["month"].factor)
_AFTER_CHARS = 40
_DIGITS = re.compile(r"\d{4,40}")
_TELLING = 2
"""A number of more digits that results hold in another unit is no number from nowhere."""
_MIN_BARE = 10
"""Smaller bare numbers count things, and are added to no amounts."""
_FUZZ = 1e-6
_SIGNED = frozenset({"minus"})
Span = tuple[float, str]
"""Seconds, and the name of the unit they are given in."""


class Accounts:
    """What may account for the values of one text."""

    def __init__(
        self, holdings: Holdings, heard: Sequence[Quantity], said: Sequence[Quantity], today: date | None
    ) -> None:
        """`heard`: quantities that others said or that calls were made with. `said`: those of the text itself."""
        self._holdings = holdings
        self._heard = heard
        self._others = [*heard, *said]
        self._said = said
        self._today = today
        self._zones = Zones(holdings, said)
        self._spans = Spans(holdings, today)

    def give(self, claim: Claim, *, rough: bool) -> bool:
        """Whether something accounts for the quantity of a claim. `rough`: it is said roughly."""
        said = claim.quantity
        if self._is_held(said, rough=rough):
            return True
        if said.kind == "date":
            return self._gives_date(said, self._list_spans(claim))
        if said.kind == "time":
            return self._gives_time(claim, rough=rough)
        if said.kind == "duration" and self._lies_between(said, rough=rough):
            return True
        return said.number is None or self._gives_number(claim, float(abs(said.number)), rough=rough)

    def _is_held(self, said: Quantity, *, rough: bool) -> bool:
        values = {*said.values}
        if not values.isdisjoint(self._heard_values) or (
            said.number is not None
            and len(list_significant_digits(said.number)) > _TELLING
            and any(value in self._holdings.by_value for value in values)
        ):
            return True
        if said.kind == "number" and said.text.isdigit() and any(run.endswith(said.text) for run in self._digit_runs):
            return True
        facts: Iterable[Fact] = self._holdings.facts
        if said.number is not None:
            facts = self._holdings.scale.find_near(said, about=rough)
        return any(relate(said, fact, held, about=rough, words=_SIGNED) for fact in facts for held in fact.quantities)

    @lazy
    def _heard_values(self) -> frozenset[Value]:
        """Values that others said, and those in the names of fields: `3.5mm jack`."""
        names = {name for path in self._holdings.by_path for name in path if any(c.isdigit() for c in name)}
        told = (one for name in islice(names, MAX_NUMBERS) for one in find_stated(name))
        return frozenset(value for one in (*self._heard, *told) for value in one.values)

    @lazy
    def _digit_runs(self) -> frozenset[str]:
        """Digits inside the texts of results: `certificate_7504069`, of which `ending in 4069` may be said."""
        texts = (fact.value for fact in self._holdings.facts if isinstance(fact.value, str))
        return frozenset(run for text in texts for run in _DIGITS.findall(text))

    def _gives_date(self, said: Quantity, spans: Collection[Span]) -> bool:
        """Whether a day is another one by other clocks, or so many days, weeks, months or years later or earlier."""
        if self._zones.tell(said, self._holdings.facts):
            return True
        days = {round(seconds / _DAY_S) for seconds, unit in spans if unit not in ("month", "year")}
        months = {round(seconds / _MONTH_S) for seconds, unit in spans if unit in ("month", "year")}
        moved = {
            there
            for day in self._days
            for sign in (1, -1)
            for there in (*(_move_days(day, n * sign) for n in days), *(_move_months(day, n * sign) for n in months))
        }
        return any(is_same_day(str(value), there) for there in moved for value in said.values)

    @lazy
    def _days(self) -> list[date]:
        """Days with their year that results or words give, and today."""
        found = dict.fromkeys(
            str(one.value)[:10]
            for one in (*self._iter_held(), *self._others)
            if one.kind == "date" and str(one.value)[0] != "-"
        )
        days = [date.fromisoformat(day) for day in islice(found, MAX_MOMENTS)]
        return [*days, *([self._today] if self._today else [])]

    def _iter_held(self) -> Iterator[Quantity]:
        return (held for fact in self._holdings.facts for held in fact.quantities)

    def _list_spans(self, claim: Claim) -> list[Span]:
        """The spans of time that the sentence of a claim tells; where it leads from one moment to another, of results too."""
        end = claim.sentence_start + len(claim.sentence)
        beside = [one for one in self._said if claim.sentence_start <= one.start < end]
        found = [span for one in beside for span in _read_span(one, "")]
        return found if _MOVING.isdisjoint(split_tokens(claim.sentence)) else [*found, *self._known_spans]

    @lazy
    def _known_spans(self) -> list[Span]:
        """The spans of time that results and others give."""
        found: dict[Span, None] = {}
        for fact in self._holdings.facts:
            for held in fact.quantities:
                found.update(dict.fromkeys(_read_span(held, fact.counted.unit)))
        for one in self._heard:
            found.update(dict.fromkeys(_read_span(one, "")))
        return [*islice(found, MAX_SPANS)]

    def _gives_time(self, claim: Claim, *, rough: bool) -> bool:
        """Whether a time is another one by other clocks, or a span of time later or earlier."""
        said = claim.quantity
        after = claim.sentence[said.end - claim.sentence_start :][:_AFTER_CHARS]
        if self._zones.tell(said, self._holdings.facts) or self._zones.tell_there(said, after):
            return True
        here, room = _read_minutes(said), _ROUGH_MIN if rough else 0
        times = {_read_minutes(one) for one in (*self._iter_held(), *self._others) if one.kind == "time"} - {here}
        spans = {0, *(round(seconds / 60) * sign for seconds, _ in self._list_spans(claim) for sign in (1, -1))}
        return any((here - time - span + room) % _DAY_MIN <= 2 * room for time in times for span in spans)

    def _lies_between(self, said: Quantity, *, rough: bool) -> bool:
        """Whether a duration lies between two moments of one record, two that the text tells, or one and today."""
        if self._spans.give(said, (), about=rough):
            return True
        size = float(abs(said.number or 0) * UNITS[said.unit].factor)
        room = size / 10 if rough else max(_measure_room(said, rough=False) * float(UNITS[said.unit].factor), 30)
        told = {_read_minutes(one) * 60 for one in self._others if one.kind == "time"}
        times = [*islice(told | {_read_minutes(one) * 60 for one in self._iter_held() if one.kind == "time"}, MAX_BARE)]
        gaps = {abs(one - other) for one in times for other in times}
        days = [day.toordinal() * _DAY_S for day in self._days]
        gaps |= {abs(one - other) for one in days for other in days}
        return any(_is_near(gap, size, room) or _is_near(_DAY_S - gap, size, room) for gap in gaps)

    def _gives_number(self, claim: Claim, size: float, *, rough: bool) -> bool:
        said = claim.quantity
        room, shares = _measure_room(said, rough=rough), self._shares
        if said.kind == "percent":
            like = [said._replace(kind="number", unit=""), said._replace(kind="money", unit="?"), *self._measured]
            return _is_of_shares(size / 100, shares, room / 100) or any(
                self._build_numbers(one).has_share(size / 100, room / 100) for one in like
            )
        numbers = self._build_numbers(said)
        if numbers.has(size, room):
            return True
        implied = [
            n for word in split_tokens(claim.sentence) for n in _FACTORS.get(word, _FACTORS.get(word.rstrip("s"), ()))
        ]
        factors = [*self._bare, *implied]
        return (bool(implied) or asks_result(claim.sentence)) and (
            numbers.has_pair(size, room) or numbers.has_multiple(size, factors, shares, room)
        )

    def _build_numbers(self, said: Quantity) -> _Numbers:
        """All numbers in the terms of a quantity: of results, of what was said, and of the text."""
        columns = self._holdings.once((_Columns, said.kind, said.unit), lambda: _Columns(said, self._holdings))
        return _Numbers(columns, [one for other in self._others if (one := _read_said(said, other)) is not None])

    @lazy
    def _bare(self) -> list[float]:
        """Numbers that somebody said, by which amounts may be multiplied or shared out."""
        found = dict.fromkeys(float(abs(one.number)) for one in self._others if one.number)
        return [n for n in islice(found, MAX_BARE) if n not in (0, 1)]

    @lazy
    def _shares(self) -> list[float]:
        """Parts of a whole that results and words give."""
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
        return [share for share in islice(found, MAX_GROUPS) if share]

    @lazy
    def _measured(self) -> list[Quantity]:
        """A quantity of each dimension that results give measures of."""
        found: dict[str, Quantity] = {}
        for fact in self._holdings.facts:
            for held in fact.quantities:
                unit = held.unit or fact.counted.unit
                if unit in UNITS and held.number is not None:
                    dimension = UNITS[unit].dimension
                    kind = "duration" if dimension == "duration" else "measure"
                    found.setdefault(dimension, held._replace(kind=kind, unit=unit, start=-1))
        return [*found.values()]


class _Columns:
    """The numbers of results in the terms of a quantity: each, by column and by record, and what these add up to."""

    def __init__(self, said: Quantity, holdings: Holdings) -> None:
        groups: dict[object, list[tuple[float, Fact]]] = {}
        found: dict[float, None] = {}
        for fact in holdings.facts:
            if is_of_kind(said, fact) and (number := read_number(said, fact)) is not None:
                found[float(abs(number))] = None
                groups.setdefault(fact.path, []).append((float(abs(number)), fact))
                groups.setdefault((id(fact.record), fact.path[:-1]), []).append((float(abs(number)), fact))
        chosen = [*islice((group for group in groups.values() if len(group) > 1), MAX_GROUPS)]
        self.values = [*islice(found, MAX_NUMBERS)]
        self.groups = [sorted({number for number, _ in group[:MAX_PAIRED]}) for group in chosen]
        self.sums = [*islice(dict.fromkeys(total for group in chosen for total in _iter_totals(group)), MAX_NUMBERS)]


class _Numbers:
    """Numbers of results and words, of which another may be worked out in one step."""

    def __init__(self, columns: _Columns, words: Sequence[float]) -> None:
        self._columns = columns
        self._words = [*dict.fromkeys(words)][:MAX_BARE]
        self._all = sorted({*columns.values, *columns.sums, *self._words})

    def has(self, size: float, room: float) -> bool:
        """Whether one of them is within reach of a number."""
        at = bisect_left(self._all, size - room - _FUZZ)
        return at < len(self._all) and self._all[at] <= size + room + _FUZZ

    def has_pair(self, size: float, room: float) -> bool:
        """Whether it is the sum or difference of two that belong together, or of one that was said and any other."""
        if any(self.has(size + part, room) or self.has(abs(size - part), room) for part in self._words if part != size):
            return True
        sums = self._columns.sums
        if any(self.has(size + total, room) for total in sums[:MAX_BARE]):
            return True
        return any(
            _is_near(abs(one - other), size, room) or _is_near(one + other, size, room)
            for group in self._columns.groups
            for n, one in enumerate(group)
            for other in group[:n]
        )

    def has_multiple(self, size: float, factors: Sequence[float], shares: Sequence[float], room: float) -> bool:
        """Whether it is a multiple, a part or a share of one of them."""
        ways = [*factors, *(1 / n for n in factors), *shares, *(1 + share for share in shares)]
        ways += [abs(1 - share) for share in shares if share != 1]
        return any(self.has(size / way, room / way) for way in ways if way)

    def has_share(self, part: float, room: float) -> bool:
        """Whether one of them is this part of another, or more or less than another by it."""
        ways = [way for way in (part, 1 + part, abs(1 - part)) if way not in (0, 1)]
        return any(self.has(whole * way, room * whole) for way in ways for whole in self._all[:MAX_NUMBERS])


def _iter_totals(group: Sequence[tuple[float, Fact]]) -> Iterator[float]:
    """What a column or a record adds up to: whole, without one, up to one, by kind, and weighed by another field."""
    numbers = [number for number, _ in group]
    total = sum(numbers)
    yield from (total, total / len(numbers))
    yield from (total - number for number in numbers[:MAX_GROUPS])
    yield from islice(accumulate(numbers), MAX_GROUPS)
    kinds: dict[tuple[object, object], list[float]] = {}
    products: dict[tuple[str, ...], list[float]] = {}
    for number, fact in group:
        for other in fact.record.facts[:MAX_PAIRED]:
            if isinstance(other.value, str | bool) and other is not fact:
                kinds.setdefault((other.path, other.value), []).append(number)
            if other is not fact and len(other.quantities) == 1 and (factor := other.quantities[0].number):
                products.setdefault(other.path, []).append(number * float(abs(factor)))
                yield from (number * float(abs(factor)), number / float(abs(factor)))
    for some in islice(kinds.values(), MAX_GROUPS):
        yield from (sum(some), sum(some) / len(some))
    for weighed in islice(products.values(), MAX_GROUPS):
        yield from (sum(weighed), sum(weighed) / 100)


def _is_of_shares(part: float, shares: Sequence[float], room: float) -> bool:
    """Whether a share is what is left of another one, or lies between two."""
    return any(
        _is_near(abs(1 - one), part, room) or any(_is_near(abs(one - other), part, room) for other in shares)
        for one in shares
    )


def _is_near(one: float, other: float, room: float) -> bool:
    return abs(one - other) <= room + _FUZZ


def _read_said(said: Quantity, other: Quantity) -> float | None:
    """The number of another quantity in the terms of one; None where the two are not of a sort, or are one."""
    if other.number is None or (other.start == said.start and other.text == said.text):
        return None
    if other.kind == said.kind and other.unit in UNITS and said.unit in UNITS:
        mine, own = UNITS[said.unit], UNITS[other.unit]
        same = mine.dimension == own.dimension
        return float((convert_to_base(abs(other.number), own) - mine.shift) / mine.factor) if same else None
    size = float(abs(other.number))
    bare = other.kind == "number" and (said.kind == "number" or size >= _MIN_BARE)
    return size if other.kind == said.kind or bare else None


def _measure_room(said: Quantity, *, rough: bool) -> float:
    return float(abs(said.number or 0)) / 10 if rough else 10.0 ** -max(said.places, -6) / 2 * 1.001


def _read_span(one: Quantity, unit: str) -> list[Span]:
    """The span of time that a quantity tells, if it does."""
    unit = one.unit if one.kind == "duration" else unit if one.kind == "number" else ""
    if one.number is None or unit not in UNITS or UNITS[unit].dimension != "duration":
        return []
    return [(float(abs(one.number) * UNITS[unit].factor), UNITS[unit].name)]


def _read_minutes(one: Quantity) -> int:
    return int(str(one.value)[:2]) * 60 + int(str(one.value)[3:5])


def _move_days(day: date, days: int) -> str:
    try:
        return (day + timedelta(days=days)).isoformat()
    except OverflowError:
        return ""


def _move_months(day: date, months: int) -> str:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return f"{year:04}-{month + 1:02}-{day.day:02}" if 0 < year < 10_000 else ""
