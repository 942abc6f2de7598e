"""Find what a text or a value states: a moment becomes a date and a time, `2h 15min` one duration."""

from __future__ import annotations

import re
from decimal import Decimal

from service.core.evidence.reading.dates import read_time
from service.core.evidence.reading.quantities import Quantity, find_quantities
from service.core.evidence.reading.units import UNITS

_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.\d+)?(Z|[+-]\d{2}:?\d{2})?")
_ISO_DURATION = re.compile(r"P(?:(\d{1,4})D)?(?:T(?:(\d{1,4})H)?(?:(\d{1,4})M)?(?:(\d{1,5})S)?)?")
_LATE = re.compile(r" (?:in the (?:afternoon|evening)|at night|tonight)\b")
"""Words after a time that put it in the second half of the day."""
_SECONDS = (86400, 3600, 60, 1)
_JOINT = frozenset({"", " ", ", ", " and ", ", and "})


def find_stated(text: str) -> list[Quantity]:
    """Return the quantities of a text, with moments split into date and time, and hours and minutes joined into minutes.

    The unit of a time taken from a moment is its zone, if it gives one.

    >>> [(q.kind, str(q.value), q.unit) for q in find_stated("2024-05-20T09:36:00Z, 2h 15m, PT1H5M")]
    [('date', '2024-05-20', ''), ('time', '09:36:00', 'Z'), ('duration', '135', 'min'), ('duration', '3900', 's')]
    """
    found: list[Quantity] = []
    for quantity in find_quantities(text):
        joined = _join_duration(found[-1], quantity, text) if found else None
        if joined is not None:
            found[-1] = joined
        elif quantity.kind == "identifier" and (seconds := _read_iso_duration(quantity.text)) is not None:
            found.append(quantity._replace(kind="duration", value=seconds, unit="s"))
        elif quantity.kind == "time" and _LATE.match(text, quantity.end) and str(quantity.value) < "12":
            late = f"{int(str(quantity.value)[:2]) + 12}{str(quantity.value)[2:]}"
            found.append(quantity._replace(value=late))
        else:
            found += _split_moment(quantity)
    return found


def _split_moment(quantity: Quantity) -> list[Quantity]:
    moment = _MOMENT.fullmatch(quantity.text) if quantity.kind == "date" else None
    time = read_time(moment[1]) if moment else None
    if moment is None or time is None:
        return [quantity]
    at = quantity.start + 10
    clock = Quantity("time", time, moment[2] or "", at + 1, quantity.end, quantity.text[11:])
    return [quantity._replace(end=at, text=quantity.text[:10]), clock]


def _join_duration(one: Quantity, other: Quantity, text: str) -> Quantity | None:
    """Join two adjacent durations if the second is in a smaller unit; else return None."""
    if (
        one.kind != "duration"
        or one.number is None
        or other.number is None
        or text[one.end : other.start] not in _JOINT
    ):
        return None
    minutes = one.unit == "h" and other.kind == "measure" and other.unit == "m"
    unit = UNITS["min"] if minutes else UNITS.get(other.unit)
    if unit is None or unit.dimension != "duration" or unit.factor >= UNITS[one.unit].factor:
        return None
    value = one.number * UNITS[one.unit].factor / unit.factor + other.number
    return Quantity("duration", value, unit.name, one.start, other.end, text[one.start : other.end])


def _read_iso_duration(text: str) -> Decimal | None:
    match = _ISO_DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        return None
    return Decimal(sum(int(n or 0) * size for n, size in zip(match.groups(), _SECONDS, strict=True)))
