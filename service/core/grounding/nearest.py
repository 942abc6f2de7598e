"""List the held values that come closest to one that stands nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from service.core.grounding.derive import Deriver
from service.core.grounding.fact_index import FactIndex
from service.core.grounding.facts import Fact
from service.core.grounding.reading.mentions import Mention, Reading
from service.core.grounding.reading.moments import Day, Time
from service.core.grounding.slips import count_slips, list_digits
from service.core.models.light import light

MAX_NEAREST = 3


@light
class Nearest:
    """A held value: its text and its pointer, or how it would be derived."""

    value: str
    pointer: str
    how: str | None = None


class _Candidate(NamedTuple):
    distance: float
    value: str
    pointer: str
    how: str | None = None


def list_nearest(mention: Mention, index: FactIndex, deriver: Deriver) -> tuple[Nearest, ...]:
    """Return the three held values of its kind that are closest: by their digits first, then by size."""
    reading = mention.readings[0]
    candidates = list(_list_candidates(mention, reading, index, deriver))
    candidates.sort(key=lambda one: (one.distance, one.pointer))
    kept = {one.value: one for one in reversed(candidates)}
    ordered = sorted(kept.values(), key=lambda one: (one.distance, one.pointer))[:MAX_NEAREST]
    return tuple([Nearest(one.value, one.pointer, one.how) for one in ordered])


def _list_candidates(mention: Mention, reading: Reading, index: FactIndex, deriver: Deriver) -> Iterator[_Candidate]:
    if isinstance(reading.value, Day):
        yield from (
            _Candidate(_measure_days(reading.value, fact), fact.text, fact.pointer) for fact in index.list_days()
        )
    elif isinstance(reading.value, Time):
        yield from (
            _Candidate(_measure_times(reading.value, fact), fact.text, fact.pointer) for fact in index.list_times()
        )
    elif reading.kind == "number":
        yield from _list_numbers(mention, reading, index, deriver)
    code = next((one.value for one in mention.readings if one.kind == "code"), None)
    if isinstance(code, str):
        yield from [_Candidate(0.0001, fact.text, fact.pointer) for _, fact in index.list_code_slips(code)]


def _list_numbers(mention: Mention, reading: Reading, index: FactIndex, deriver: Deriver) -> Iterator[_Candidate]:
    size = abs(reading.number)
    digits = list_digits(mention.text)
    for dimension in dict.fromkeys((reading.dimension, "", "money" if not reading.dimension else "")):
        facts = index.list_around(dimension, size)
        facts += index.list_number_slips(digits, dimension) if len(digits) > 2 else []
        for scale in (100.0, 0.01, 10.0, 0.1, 1000.0, 0.001):
            facts += [
                fact
                for fact in index.list_around(dimension, size * scale, 1)
                if _relate(fact.reading.number, size * scale) < 1e-6
            ]
        for fact in facts:
            slips = count_slips(digits, list_digits(fact.text))
            far = _relate(fact.reading.number, size)
            yield _Candidate(
                min(far, 0.0001 * slips if slips is not None and len(digits) > 2 else 9.0), fact.text, fact.pointer
            )
    for total, origin in deriver.list_totals(reading.dimension):
        yield _Candidate(_relate(total, size) + 0.001, f"{total:.10g}", origin.sources[0], origin.how)


def _relate(one: float, other: float) -> float:
    return abs(abs(one) - abs(other)) / max(abs(one), abs(other), 1e-9)


def _measure_days(day: Day, fact: Fact) -> float:
    held = fact.reading.value
    if not isinstance(held, Day):
        return 9.0
    if day.year and held.year and day.year != held.year:
        return 1.0 if (day.month, day.day) != (held.month, held.day) else 0.1
    return abs((day.month - held.month) * 30.5 + day.day - held.day) / 100


def _measure_times(time: Time, fact: Fact) -> float:
    held = fact.reading.value
    if not isinstance(held, Time):
        return 9.0
    apart = abs(time.seconds - held.seconds)
    return min(apart, abs(apart - 43_200) + 60, 86_400 - apart) / 86_400
