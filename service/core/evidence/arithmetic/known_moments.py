"""Days and times of results and messages, from which another may follow: by a clock, a span of time, or between two."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from itertools import islice

from service.core.evidence.arithmetic.known_numbers import has_near
from service.core.evidence.arithmetic.spans import Spans
from service.core.evidence.arithmetic.zones import Zones
from service.core.evidence.facts.entities import Holdings
from service.core.evidence.reading.quantities import Quantity
from service.core.evidence.reading.units import UNITS
from service.core.evidence.reading.words import split_tokens, split_words
from service.core.evidence.sentences.claims import Statement
from service.core.models.lazy import lazy

MAX_MOMENTS, MAX_PAIRED_MOMENTS, MAX_SPANS, MAX_SAID_SPANS = 120, 60, 80, 4
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
        self._spans = Spans(holdings, today)

    def _iter_held(self) -> Iterator[Quantity]:
        return (held for fact in self._holdings.facts for held in fact.quantities)

    def give_date(self, statement: Statement) -> bool:
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
            for one in (*self._iter_held(), *(*self._heard, *self._said))
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

    def give_time(self, statement: Statement, *, rough: bool) -> bool:
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

    def give_duration(self, said: Quantity, tolerance: float, *, rough: bool) -> bool:
        """Whether a duration lies between two moments of one record, between any two known ones, or between one and today."""
        if self._spans.give(said, (), about=rough):
            return True
        factor = float(UNITS[said.unit].factor)
        size = float(abs(said.number or 0)) * factor
        return has_near(self._gaps, size, max(tolerance * factor, 30))

    @lazy
    def _gaps(self) -> list[float]:
        """The seconds between any two times of day and between any two days, sorted."""
        times = [*islice(self._times | self._said_times, MAX_PAIRED_MOMENTS)]
        gaps = {abs(one - other) * 60 for one in times for other in times}
        gaps |= {_DAY_S - gap for gap in gaps}
        days = [day.toordinal() for day in self._days[-MAX_PAIRED_MOMENTS:]]
        return sorted(map(float, gaps | {abs(one - other) * _DAY_S for one in days for other in days}))


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
