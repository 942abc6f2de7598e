"""Account for spans of time between held moments, and for moments that a held span leads to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from itertools import combinations, product

from service.core.evidence.facts.entities import Entity, Holdings
from service.core.evidence.facts.facts import Fact
from service.core.evidence.reading.quantities import Quantity
from service.core.evidence.reading.units import UNITS

_DAY_S = 86_400
MAX_FACTS, MAX_ENTITIES = 24, 60


class Spans:
    """The spans between the moments of one entity, and between these and today."""

    def __init__(self, holdings: Holdings, today: date | None) -> None:
        self._holdings = holdings
        self._today = today

    def give(self, said: Quantity, entities: Sequence[Entity], *, about: bool) -> bool:
        """Whether `said` is a span between two moments of an entity, or a moment that one of its spans leads to from another.

        Without `entities`, the first ones of the holdings are tried. `about`: the text gives a span roughly.
        """
        for entity in entities or self._holdings.entities[:MAX_ENTITIES]:
            moments = list(_iter_moments(entity.own[:MAX_FACTS]))
            if said.kind == "duration" and said.number is not None:
                size, step = _measure(said)
                tolerance = size / 10 if about else step / 2
                if any(abs(gap - size) <= tolerance for gap in self._iter_gaps(moments)):
                    return True
            elif _is_led_to(said, moments, list(_iter_spans(entity.own[:MAX_FACTS]))):
                return True
        return False

    def _iter_gaps(self, moments: Sequence[tuple[int | None, int | None]]) -> Iterator[int]:
        """Iterate over the seconds between moments: by time of day, by whole days, and by both together."""
        for (day, time), (other_day, other_time) in combinations(moments, 2):
            if time is not None and other_time is not None:
                yield abs(time - other_time)
                yield _DAY_S - abs(time - other_time)
            if day is not None and other_day is not None:
                yield abs(day - other_day) * _DAY_S
                yield abs((day - other_day) * _DAY_S + (time or 0) - (other_time or 0))
        for day, _ in moments:
            if day is not None and self._today is not None:
                yield abs(day - self._today.toordinal()) * _DAY_S


def _is_led_to(said: Quantity, moments: Sequence[tuple[int | None, int | None]], spans: Sequence[int]) -> bool:
    for (day, time), span in product(moments, spans):
        if said.kind == "time" and time is not None and (time + span) % _DAY_S // 60 == _read_time(said) // 60:
            return True
        if said.kind == "date" and day is not None and span % _DAY_S == 0:
            day_reached = date.fromordinal(day + span // _DAY_S).isoformat()
            if any(day_reached[-5:] == str(value)[-5:] for value in said.values):
                return True
    return False


def _iter_moments(facts: Sequence[Fact]) -> Iterator[tuple[int | None, int | None]]:
    """Iterate over the moments of facts, each as a day (its ordinal, or None) and a time (seconds of the day, or None)."""
    for fact in facts:
        day = next((str(one.value) for one in fact.quantities if one.kind == "date"), "")
        time = next((_read_time(one) for one in fact.quantities if one.kind == "time"), None)
        if len(day) >= len("2026-01-01") or time is not None:
            yield date.fromisoformat(day[:10]).toordinal() if day[:2] not in ("", "--") else None, time


def _iter_spans(facts: Sequence[Fact]) -> Iterator[int]:
    for fact in facts:
        for one in fact.quantities:
            unit = one.unit or fact.counted.unit
            if one.number is not None and unit in UNITS and UNITS[unit].dimension == "duration":
                seconds = int(one.number * UNITS[unit].factor)
                yield from (seconds, -seconds)


def _measure(said: Quantity) -> tuple[float, float]:
    factor = float(UNITS[said.unit].factor)
    return abs(float(said.number or 0)) * factor, 10.0**-said.places * factor


def _read_time(one: Quantity) -> int:
    hour, minute, second = (int(part) for part in str(one.value).split(":"))
    return hour * 3600 + minute * 60 + second
