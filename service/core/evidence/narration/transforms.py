"""How a value of a payload may be said, each way with its name."""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, InvalidOperation

from service.core.evidence.narration.facts import Fact
from service.core.evidence.reading.dates import is_same_day
from service.core.evidence.reading.quantities import Quantity, find_minor_factor, list_significant_digits
from service.core.evidence.reading.units import UNITS, Unit, convert_to_base

HUNDRED = Decimal(100)
_MINOR = frozenset({"cent", "minor", "pence"})
_NONE = (None, "", "none", "null", "n/a", "nil")


def relate(said: Quantity, fact: Fact, held: Quantity, *, about: bool = False) -> str | None:
    """By which transform a quantity of a fact can be said as `said`; None if by none. `about`: the text says roughly.

    `same`, `rounded`, `approximate`, `minor units`, `percent`, `unit`, `sign in words`, `day`, `time`.
    """
    if said.kind == "date" or held.kind == "date":
        both = said.kind == held.kind
        return "day" if both and any(is_same_day(str(a), str(b)) for a in said.values for b in held.values) else None
    if said.kind == "time" or held.kind == "time":
        return "time" if _is_same_time(said, held) else None
    if said.kind in ("identifier", "boolean") or held.kind in ("identifier", "boolean"):
        return "same" if said.kind == held.kind and said.value == held.value else None
    for number in _list_numbers(said):
        for value, name in _list_ways(said, fact, held):
            how = _match_closely(number, value, said.places, about=about)
            if how:
                return name if how == "same" else (how if name == "same" else f"{name}, {how}")
    return None


def _list_numbers(quantity: Quantity) -> list[Decimal]:
    return [value for value in quantity.values if isinstance(value, Decimal)]


def _list_ways(said: Quantity, fact: Fact, held: Quantity) -> list[tuple[Decimal, str]]:
    """The numbers that a fact's quantity may be said as."""
    found: list[tuple[Decimal, str]] = []
    for value in _list_numbers(held):
        if said.kind == "money" and is_minor(fact):
            found.append((value / find_minor_factor(said.unit), "minor units"))
            continue
        units = UNITS.get(said.unit), UNITS.get(held.unit) or find_unit(fact)
        if units[0] and units[1] and said.kind in ("measure", "duration"):
            found += _convert(value, held.unit or units[1].name, said.unit)
            continue
        if (
            said.kind == "money"
            and held.kind == "money"
            and "?" not in (said.unit, held.unit)
            and said.unit != held.unit
        ):
            continue
        found.append((value, "same"))
        if said.kind == "percent" and abs(value) <= 1 and held.kind == "number":
            found.append((value * HUNDRED, "percent"))
        if said.kind == "measure" and said.unit == "°F" and not held.unit:
            found += _convert(value, "°C", "°F")
    return [*found, *[(-value, "sign in words") for value, name in found if value < 0 and name != "unit"]]


def _convert(value: Decimal, held: str, said: str) -> list[tuple[Decimal, str]]:
    mine, theirs = UNITS[held], UNITS[said]
    if mine.dimension != theirs.dimension:
        return []
    if mine == theirs:
        return [(value, "same")]
    return [((convert_to_base(value, mine) - theirs.shift) / theirs.factor, "unit")]


def find_unit(fact: Fact) -> Unit | None:
    """The unit that a field's name ends in: `distance_km`, `duration_minutes`."""
    return next(
        (UNITS[word] for word in fact.own[1:] if word in UNITS and word not in ("in", "t", "s", "m", "b")), None
    )


def is_minor(fact: Fact) -> bool:
    """Whether a field's name says that it counts cents."""
    return bool(_MINOR & set(fact.own))


def may_be_minor(fact: Fact, said: Decimal) -> bool:
    """Whether a whole number may count the cents of what was said: no word of its name says that, and none denies it."""
    whole = isinstance(fact.value, int) and not isinstance(fact.value, bool)
    return whole and not is_minor(fact) and fact.value == said * HUNDRED


def _match_closely(said: Decimal, held: Decimal, places: int, *, about: bool) -> str | None:
    if said == held:
        return "same"
    if about and abs(said - held) <= abs(held) / 10:
        return "approximate"
    try:
        step = Decimal(1).scaleb(-places)
        rounded = {held.quantize(step, how) for how in (ROUND_HALF_UP, ROUND_HALF_EVEN, ROUND_DOWN)}
    except InvalidOperation:
        return None
    if said in rounded and (said or abs(held) < step) and (places >= 0 or abs(said - held) <= abs(held) / 10):
        return "rounded"
    zeros = len(str(abs(said.to_integral_value()))) - len(list_significant_digits(said)) if places <= 0 else 0
    whole = Decimal(10) ** zeros if zeros > 2 and said else None  # 1.2 million for 1,204,311
    return "rounded" if whole and abs(said - held) <= min(whole / 2, abs(held) / 50) else None


def _is_same_time(said: Quantity, held: Quantity) -> bool:
    if held.kind == "date":
        return False
    one, two = (str(quantity.value) for quantity in (said, held))
    return said.kind == held.kind and one[:5] == two[:5]


def is_none(fact: Fact) -> bool:
    """Whether a field holds nothing, which prose calls no or none."""
    value = fact.value
    return (
        value is None
        or value is False
        or value == 0
        or (isinstance(value, str) and value.strip().lower() in (*_NONE, "no"))
    )


def name_slip(said: Decimal, held: Decimal) -> str:
    """What kind of slip leads from one number to another: `scale_flip`, `sign_flip`, `digit_flip` or `wrong_value`.

    >>> (
    ...     name_slip(Decimal("54"), Decimal("5400")),
    ...     name_slip(Decimal("12"), Decimal("21")),
    ...     name_slip(Decimal(7), Decimal(30)),
    ... )
    ('scale_flip', 'digit_flip', 'wrong_value')
    """
    if said == -held:
        return "sign_flip"
    one, two = list_significant_digits(said), list_significant_digits(held)
    if one == two:
        return "scale_flip"
    if len(one) == len(two) > 1 and _is_one_slip(one, two):
        return "digit_flip"
    return "wrong_value"


def _is_one_slip(one: str, two: str) -> bool:
    apart = [n for n, (a, b) in enumerate(zip(one, two, strict=True)) if a != b]
    if len(apart) == 1:
        return True
    return (
        len(apart) == 2
        and apart[1] - apart[0] == 1
        and one[apart[0]] == two[apart[1]]
        and one[apart[1]] == two[apart[0]]
    )
