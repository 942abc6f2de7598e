"""List the held values that come closest to one that stands nowhere."""

from __future__ import annotations

from collections.abc import Iterator

from service.core.grounding.derive import Deriver
from service.core.grounding.fact_index import FactIndex
from service.core.grounding.facts import Fact
from service.core.grounding.reading.mentions import Mention, Reading
from service.core.grounding.reading.moments import Day, Time
from service.core.grounding.slips import is_slip, list_digits
from service.core.models.light import light

MAX_NEAREST = 3
_SLIP = 0.0001
"""How far away a value is whose digits are a slip apart."""
_SCALES = (1.0, 100.0, 0.01, 10.0, 0.1, 1000.0, 0.001)


@light
class Nearest:
    """A held value: its text and its pointer, or how it would be derived."""

    value: str
    pointer: str
    how: str | None = None


def list_nearest(mention: Mention, index: FactIndex, deriver: Deriver) -> tuple[Nearest, ...]:
    """Return the three held values of its kind that are closest: by their digits first, then by size."""
    ordered = sorted(_iter_near(mention, index, deriver), key=lambda one: (one[0], one[1].pointer))
    kept: dict[str, Nearest] = {}
    for _, near in ordered:
        kept.setdefault(near.value, near)
    return tuple(kept.values())[:MAX_NEAREST]


def _iter_near(mention: Mention, index: FactIndex, deriver: Deriver) -> Iterator[tuple[float, Nearest]]:
    """Yield held values, each with its distance."""
    reading = mention.readings[0]
    facts: list[tuple[float, Fact]] = []
    if isinstance(reading.value, Day):
        facts += [(_measure_days(reading.value, fact.reading.value), fact) for fact in index.list_days()]
    elif isinstance(reading.value, Time):
        facts += [(_measure_times(reading.value, fact.reading.value), fact) for fact in index.list_times()]
    elif reading.kind == "number":
        facts += _iter_numbers(mention, reading, index)
        for total, origin in deriver.list_totals(reading.dimension):
            far = _relate(total, reading.number) + 10 * _SLIP
            yield far, Nearest(f"{total:.10g}", origin.sources[0], origin.how)
    code = next((one.value for one in mention.readings if one.kind == "code"), None)
    facts += [(_SLIP, fact) for _, fact in index.list_code_slips(code)] if isinstance(code, str) else []
    yield from [(far, Nearest(fact.text, fact.pointer)) for far, fact in facts]


def _iter_numbers(mention: Mention, reading: Reading, index: FactIndex) -> Iterator[tuple[float, Fact]]:
    """Yield the numbers next to a number, those with its digits but for a slip, and those with its decimal point moved."""
    size, digits = abs(reading.number), list_digits(mention.text)
    for dimension in dict.fromkeys((reading.dimension, "", "money" if not reading.dimension else "")):
        facts = index.list_number_slips(digits, dimension) if len(digits) > 2 else []
        for scale in _SCALES:
            near = index.list_around(dimension, size * scale, 3 if scale == 1 else 1)
            facts += [one for one in near if scale == 1 or _relate(one.reading.number, size * scale) < 1e-6]
        for fact in facts:
            far, held = _relate(fact.reading.number, size), list_digits(fact.text)
            like = len(digits) > 2 and (held == digits or is_slip(held, digits))
            yield min(far, _SLIP * (held != digits)) if like else far, fact


def _relate(one: float, other: float) -> float:
    return abs(abs(one) - abs(other)) / max(abs(one), abs(other), 1e-9)


def _measure_days(day: Day, held: object) -> float:
    if not isinstance(held, Day):
        return 9.0
    if day.year and held.year and day.year != held.year:
        return 1.0 if (day.month, day.day) != (held.month, held.day) else 0.1
    return abs((day.month - held.month) * 30.5 + day.day - held.day) / 100


def _measure_times(time: Time, held: object) -> float:
    apart = abs(time.seconds - held.seconds) if isinstance(held, Time) else 43_199
    return min(apart, abs(apart - 43_200) + 60, 86_400 - apart) / 86_400
