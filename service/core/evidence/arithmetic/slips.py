"""Find the held value that a wrong value is a slip of."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from decimal import Decimal

from service.core.evidence.arithmetic.holding import read_number
from service.core.evidence.arithmetic.transforms import is_other_unit, name_slip
from service.core.evidence.facts.facts import Fact
from service.core.evidence.reading.quantities import Quantity, find_minor_factor

_CLOSE = 10
"""Two numbers are near if they differ by at most the held one divided by this."""
_NEAR_DAYS, _NEAR_MIN = 31, 30


def find_kin(said: Quantity, facts: Iterable[Fact]) -> Fact | None:
    """Return the first fact that a quantity may be a slip of: in a digit, the point, the sign, half a day, some days."""
    return next((fact for fact in facts if _is_kin(said, fact)), None)


def is_near(said: Decimal, held: Decimal) -> bool:
    """Whether one number may be a slip of another, or is close to it.

    >>> (
    ...     is_near(Decimal("54"), Decimal("5400")),
    ...     is_near(Decimal("120"), Decimal("180")),
    ...     is_near(Decimal(7), Decimal(3)),
    ... )
    (True, True, False)
    """
    return name_slip(said, held) != "wrong_value" or abs(said - held) * _CLOSE <= abs(held)


def _is_kin(said: Quantity, fact: Fact) -> bool:
    if said.kind in ("time", "date"):
        near = _is_near_time if said.kind == "time" else _is_near_day
        return any(near(str(said.value), str(held.value)) for held in fact.quantities if held.kind == said.kind)
    held, number = read_number(said, fact), said.number
    if number is None:
        return False
    return _is_in_other_unit(said, number, fact) if held is None else is_near(number, held) or is_other_unit(said, fact)


def _is_in_other_unit(said: Quantity, number: Decimal, fact: Fact) -> bool:
    """Whether a fact has the number in another unit or currency, possibly counted in its smallest unit."""
    whole = number * find_minor_factor(fact.counted.currency) if fact.counted.minor else number
    return is_other_unit(said, fact) or (said.kind == "money" and any(whole == one.number for one in fact.quantities))


def _is_near_time(said: str, held: str) -> bool:
    apart = abs(_count_minutes(said) - _count_minutes(held))
    return said[3:5] == held[3:5] or said[:2] == held[:2] or apart <= _NEAR_MIN


def _count_minutes(time: str) -> int:
    return int(time[:2]) * 60 + int(time[3:5])


def _is_near_day(said: str, held: str) -> bool:
    if said[-2:] == held[-2:] or said[:2] == "--" or held[:2] == "--":
        return said[-2:] == held[-2:] or said[-5:-3] == held[-5:-3]
    return abs((date.fromisoformat(said[:10]) - date.fromisoformat(held[:10])).days) <= _NEAR_DAYS
