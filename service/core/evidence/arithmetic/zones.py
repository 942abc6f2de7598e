"""Recognise times stated in another zone than the results use, given that one text keeps to one zone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from itertools import product

from service.core.evidence.facts.entities import Holdings
from service.core.evidence.facts.facts import Fact
from service.core.evidence.reading.quantities import Quantity
from service.core.models.lazy import lazy

_DAY_MIN = 1440
_PARTS_MIN = (-210, 210, 270, 330, 345, 390, 570)
OFFSETS_MIN = frozenset([*range(-660, 720, 60), *_PARTS_MIN]) - {0}
"""Offsets in minutes between the clocks of two places, without 12 hours, which would be a slip of half a day."""
MAX_MOMENTS = 400
_PLACE = re.compile(
    r"[\s(,]*(?:in [A-Z]|[A-Z]\w+(?: [A-Z]\w+)? time\b|(?!AM|PM)[A-Z]{3,4}\b|local\b|(?:your|our|my|their) time\b|there\b)"
)


class Zones:
    """The zones, one or two, in which a text states times that the results give with a zone of their own."""

    def __init__(self, holdings: Holdings, quantities: Sequence[Quantity]) -> None:
        self._holdings = holdings
        self._said = [one for one in quantities if one.kind == "time"]

    @lazy
    def _zoned(self) -> list[Fact]:
        return [fact for fact in self._holdings.facts if any(_iter_zoned(fact))][:MAX_MOMENTS]

    @lazy
    def _offsets(self) -> frozenset[int]:
        """The offsets that explain the most of the stated times that are not held as they are.

        They must explain at least half of these, and more times than are held unshifted.
        """
        held = {value for fact in self._holdings.facts for one in fact.quantities for value in _list_minutes(one)}
        zoned = {value for fact in self._zoned for value in _iter_zoned(fact)}
        said = {value for one in self._said for value in _list_minutes(one)}
        found = Counter(offset for value in said - held for offset in {*_iter_offsets(value, zoned)})
        most = max(found.values(), default=0)
        enough = max(len(said - held) / 2, len(said & zoned) + 1)
        return frozenset([offset for offset, n in found.items() if n == most >= enough])

    def tell(self, said: Quantity, facts: Iterable[Fact]) -> bool:
        """Whether a time or a day is that of a fact, by the clocks of the text's zone."""
        if not self._zoned:
            return False
        if said.kind == "date":
            moves = product(said.values, facts, self._list_day_offsets())
            return any(_moves_to(str(value), fact, offset) for value, fact, offset in moves)
        known = {value for fact in facts for value in _iter_zoned(fact)}
        return any(offset in self._offsets for value in _list_minutes(said) for offset in _iter_offsets(value, known))

    def tell_there(self, said: Quantity, after: str) -> bool:
        """Whether a time is a held one by the clocks of some zone, if the text after it names a place or a zone."""
        moments = {value for fact in self._zoned for value in _iter_zoned(fact)} if _PLACE.match(after) else set[int]()
        return any(True for value in _list_minutes(said) for _ in _iter_offsets(value, moments))

    def _list_day_offsets(self) -> Sequence[int]:
        return sorted(self._offsets) if self._offsets else () if self._said else sorted(OFFSETS_MIN)


def _iter_offsets(value: int, known: Iterable[int]) -> Iterator[int]:
    for moment in known:
        apart = (value - moment) % _DAY_MIN
        yield from (one for one in (apart, apart - _DAY_MIN) if one in OFFSETS_MIN)


def _iter_zoned(fact: Fact) -> Iterator[int]:
    for one in fact.quantities:
        if one.kind == "time" and (one.unit or "utc" in fact.own or "gmt" in fact.own):
            yield from _list_minutes(one)


def _list_minutes(one: Quantity) -> list[int]:
    """Return a time's minutes since midnight; empty if it is no time."""
    return [int(str(one.value)[:2]) * 60 + int(str(one.value)[3:5])] if one.kind == "time" else []


def _moves_to(day: str, fact: Fact, offset: int) -> bool:
    """Whether a fact's moment falls on a day by clocks `offset` minutes ahead."""
    held = next((str(one.value) for one in fact.quantities if one.kind == "date"), "")
    minutes = next(_iter_zoned(fact), None)
    if minutes is None or len(held) < len("2026-01-01"):
        return False
    try:
        there = (date.fromisoformat(held[:10]) + timedelta(days=(minutes + offset) // _DAY_MIN)).isoformat()
    except OverflowError:  # 9999-12-31T23:59:59Z, which stands for never
        return False
    return there[-5:] == day[-5:] and (day.startswith("--") or there == day[:10])
