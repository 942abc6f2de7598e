"""Days and times of results and messages, from which another may follow: by a clock, a span of time, or between two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from itertools import combinations, islice, product

from service.core.evidence.arithmetic.known_numbers import has_near
from service.core.evidence.arithmetic.zones import Zones
from service.core.evidence.facts.entities import Holdings
from service.core.evidence.facts.facts import Fact
from service.core.evidence.reading.quantities import Quantity
from service.core.evidence.reading.units import UNITS
from service.core.evidence.reading.words import split_tokens, split_words
from service.core.evidence.sentences.claims import Statement
from service.core.models.lazy import lazy

MAX_MOMENTS, MAX_PAIRED_MOMENTS, MAX_SPANS, MAX_SAID_SPANS = 120, 60, 80, 4
MAX_RECORDS, MAX_FIELDS = 60, 24
MAX_SPAN_S = 1e10
_MOVING = split_words("by until till end ends done finish finishes finished over before after later earlier ready due")
"""Words that relate one moment to another."""
_DAY_MIN, _DAY_S, _ROUGH_MIN = 1440, 86_400, 15
_MONTH_S = float(UNITS["month"].factor)
_AFTER_CHARS = 40
Span = tuple[float, str]
"""A length in seconds, and the name of the unit it was given in."""


class KnownMoments:
    """The days, the times and the spans of time that account for the moments of one text."""

    def __init__(
        self, holdings: Holdings, heard: Sequence[Quantity], said: Sequence[Quantity], today: date | None
    ) -> None:
        """`heard`: what others said. `said`: the quantities of the text itself."""
        self._holdings = holdings
        self._heard = heard
        self._said = said
        self._today = today
        self._zones = Zones(holdings, said)

    def _iter_held(self) -> Iterator[Quantity]:
        return (held for fact in self._holdings.facts for held in fact.quantities)

    def give(self, statement: Statement, *, rough: bool) -> bool:
        """Whether a day or time is known, or a known one is a known span of time away."""
        by_day = statement.quantity.kind == "date"
        return (self._has_day(statement) if by_day else self._has_time(statement, rough=rough)) or self.follow(
            statement
        )

    def follow(self, statement: Statement) -> bool:
        """Whether a day or time is a known one by another clock, or what a span of time in a record leads to there."""
        said = statement.quantity
        after = statement.sentence[said.end - statement.sentence_start :][:_AFTER_CHARS]
        if self._zones.tell(said, self._holdings.facts) or self._zones.tell_there(said, after):
            return True
        reached = {f"-{str(value)[4:10]}" for value in said.values} if said.kind == "date" else {_read_minutes(said)}
        return not reached.isdisjoint(self._reached)

    @lazy
    def _reached(self) -> frozenset[str | int]:
        """The days, without their year, and the minutes of the day that spans of time lead to within one record."""
        return self._holdings.once((KnownMoments, "reached"), lambda: frozenset(_iter_reached(self._holdings)))

    def _has_day(self, statement: Statement) -> bool:
        said = {str(value)[:10] for value in statement.quantity.values}
        if self._holdings.has_moment(statement.quantity):
            return True
        if not said.isdisjoint(_list_moved(self._days, self._list_said_spans(statement))):
            return True
        return _leads_on(statement) and not said.isdisjoint(self._moved_days)

    @lazy
    def _days(self) -> list[date]:
        """The days with a year that results or messages give, and today."""
        found = dict.fromkeys(
            str(one.value)[:10]
            for one in (*self._iter_held(), *self._heard, *self._said)
            if one.kind == "date" and str(one.value)[0] != "-"
        )
        days = [date.fromisoformat(day) for day in islice(found, MAX_MOMENTS)]
        return [*days, *([self._today] if self._today else [])]

    @lazy
    def _moved_days(self) -> frozenset[str]:
        return _list_moved(self._days, self._known_spans)

    def _list_said_spans(self, statement: Statement) -> list[Span]:
        """Return the spans of time that a statement's sentence states."""
        near = statement.list_beside(self._said)
        return [span for one in near for span in _read_span(one, "")][:MAX_SAID_SPANS]

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

    def _has_time(self, statement: Statement, *, rough: bool) -> bool:
        here = _read_minutes(statement.quantity)
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

    def give_duration(self, said: Quantity, tolerance: float) -> bool:
        """Whether a duration lies between two moments of one record, between any two known ones, or between one and today."""
        factor = float(UNITS[said.unit].factor)
        size = float(abs(said.number or 0)) * factor
        return self.follow_duration(said, tolerance) or has_near(self._gaps, size, max(tolerance * factor, 30))

    def lasts(self, statement: Statement, tolerance: float) -> bool:
        """Whether a duration lies between two moments of one record or, where words relate moments, between any two."""
        give = self.give_duration if _leads_on(statement) else self.follow_duration
        return give(statement.quantity, tolerance)

    def follow_duration(self, said: Quantity, tolerance: float) -> bool:
        """Whether a duration lies between two moments of one record, or between one and today."""
        factor = float(UNITS[said.unit].factor)
        return has_near(self._record_gaps, float(abs(said.number or 0)) * factor, tolerance * factor)

    @lazy
    def _record_gaps(self) -> list[float]:
        """The seconds between any two moments of one record, and between each day and today, sorted."""
        today = float(self._today.toordinal() * _DAY_S) if self._today else None
        return self._holdings.once((KnownMoments, today), lambda: sorted({*_iter_record_gaps(self._holdings, today)}))

    @lazy
    def _gaps(self) -> list[float]:
        """The seconds between any two times of day and between any two days, sorted."""
        times = [*islice(self._times | self._said_times, MAX_PAIRED_MOMENTS)]
        gaps = {abs(one - other) * 60 for one in times for other in times}
        gaps |= {_DAY_S - gap for gap in gaps}
        days = [day.toordinal() for day in self._days[-MAX_PAIRED_MOMENTS:]]
        return sorted(map(float, gaps | {abs(one - other) * _DAY_S for one in days for other in days}))


def _read_span(one: Quantity, unit: str) -> list[Span]:
    """Return the span of time that a quantity gives; empty if it gives none, or centuries. `unit`: the unit of its field."""
    unit = one.unit if one.kind == "duration" else unit if one.kind == "number" else ""
    if one.number is None or unit not in UNITS or UNITS[unit].dimension != "duration":
        return []
    seconds = float(abs(one.number) * UNITS[unit].factor)
    return [(seconds, UNITS[unit].name)] if seconds < MAX_SPAN_S else []


def _read_minutes(one: Quantity) -> int:
    return int(str(one.value)[:2]) * 60 + int(str(one.value)[3:5])


def _iter_record_gaps(holdings: Holdings, today: float | None) -> Iterator[float]:
    """Iterate over the seconds between moments of one record: by time of day, by whole days, and by both together."""
    for entity in holdings.entities[:MAX_RECORDS]:
        moments = [*_iter_moments(entity.own[:MAX_FIELDS])]
        for (day, time), (other_day, other_time) in combinations(moments, 2):
            if time is not None and other_time is not None:
                yield from (abs(time - other_time), _DAY_S - abs(time - other_time))
            if day is not None and other_day is not None:
                yield from (abs(day - other_day), abs(day - other_day + (time or 0) - (other_time or 0)))
        if today is not None:
            yield from (abs(day - today) for day, _ in moments if day is not None)


def _iter_moments(facts: Sequence[Fact]) -> Iterator[tuple[float | None, float | None]]:
    """Iterate over the moments of facts, each as a day and a time of day in seconds; None for what is not given."""
    for fact in facts:
        day = next((str(one.value) for one in fact.quantities if one.kind == "date"), "")
        time = next((_read_seconds(one) for one in fact.quantities if one.kind == "time"), None)
        whole = len(day) >= len("2026-01-01")
        if whole or time is not None:
            yield float(date.fromisoformat(day[:10]).toordinal() * _DAY_S) if whole else None, time


def _iter_reached(holdings: Holdings) -> Iterator[str | int]:
    for entity in holdings.entities[:MAX_RECORDS]:
        facts = entity.own[:MAX_FIELDS]
        held = ((one, fact.counted.unit) for fact in facts for one in fact.quantities)
        spans = {seconds for one, unit in held for seconds, _ in _read_span(one, unit)}
        for (day, time), span, sign in product(_iter_moments(facts), spans, (1, -1)):
            if time is not None:
                yield int(time + sign * span) // 60 % _DAY_MIN
            if day is not None and span % _DAY_S == 0:
                yield f"-{_move_days(date.fromordinal(int(day) // _DAY_S), sign * int(span // _DAY_S))[4:]}"


def _read_seconds(one: Quantity) -> float:
    hour, minute, second = (int(part) for part in str(one.value).split(":"))
    return float(hour * 3600 + minute * 60 + second)


def _leads_on(statement: Statement) -> bool:
    """Whether a statement's sentence may relate a moment to one that it does not name."""
    return not _MOVING.isdisjoint(split_tokens(statement.sentence))


def _list_moved(days: Iterable[date], spans: Iterable[Span]) -> frozenset[str]:
    """Return the days that lie a span of whole days, months or years before or after others, with and without their year."""
    spans = [*spans]
    if not spans:
        return frozenset()
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
