"""List the ways in which a text may state a held value, each with its name."""

from __future__ import annotations

from collections.abc import Set
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, InvalidOperation

from service.core.evidence.facts.facts import Fact
from service.core.evidence.reading.dates import is_same_day
from service.core.evidence.reading.quantities import Quantity, find_minor_factor, list_significant_digits
from service.core.evidence.reading.units import UNITS, convert_to_base, is_same_currency
from service.core.evidence.reading.words import split_words

HUNDRED = Decimal(100)
BELOW = split_words(
    "negative minus below loss lost lose down decrease decreased decline declined drop dropped fell fallen debit debited "
    "owe owed owes owing deficit overdrawn discount deduction deducted withdrawal withdrawn withdrew fee off refund "
    "adjustment charge charged spent paid payment sold reduced reduction under behind less lower fall"
)
"""Words of a text or of a field's name that express the sign of a number below zero."""


def relate(
    said: Quantity, fact: Fact, held: Quantity, *, about: bool = False, words: Set[str] = frozenset()
) -> str | None:
    """Return the transform by which the quantity `held` of a fact can be stated as `said`; None if there is none.

    `about`: the text gives the value roughly. `words`: the words around it. The transforms are `same`, `rounded`,
    `approximate`, `minor units`, `percent`, `unit`, `sign in words`, `day`, `time`.
    """
    if said.kind == "date" or held.kind == "date":
        both = said.kind == held.kind
        return "day" if both and any(is_same_day(str(a), str(b)) for a in said.values for b in held.values) else None
    if said.kind == "time" or held.kind == "time":
        return "time" if said.kind == held.kind and str(said.value)[:5] == str(held.value)[:5] else None
    if said.kind in ("identifier", "boolean") or held.kind in ("identifier", "boolean"):
        return "same" if said.kind == held.kind and said.value == held.value else None
    signed = bool(BELOW & {*words, *fact.own})
    for number in _list_numbers(said):
        for value, name in list_ways(said, fact, held, signed=signed):
            how = _match_closely(number, value, said.places, about=about)
            if how:
                return name if how == "same" else (how if name == "same" else f"{name}, {how}")
    return None


def _list_numbers(quantity: Quantity) -> list[Decimal]:
    return [value for value in quantity.values if isinstance(value, Decimal)]


def list_ways(said: Quantity, fact: Fact, held: Quantity, *, signed: bool = False) -> list[tuple[Decimal, str]]:
    """Return the numbers that can state a fact's quantity, each with the name of its transform."""
    found = [way for value in _list_numbers(held) for way in _list_plain_ways(said, fact, held, value)]
    return [*found, *[(-value, "sign in words") for value, _ in found if value < 0]] if signed else found


def _list_plain_ways(said: Quantity, fact: Fact, held: Quantity, value: Decimal) -> list[tuple[Decimal, str]]:
    if said.kind == "money":
        return _list_amounts(said, fact, held, value)
    unit = held.unit if held.kind in ("measure", "duration") else fact.counted.unit
    if said.kind in ("measure", "duration"):
        return _convert(value, unit, said.unit)
    if said.kind == "percent":
        ratio = held.kind == "number" and unit != "%" and abs(value) <= 1
        return [(value * HUNDRED, "percent")] if ratio else [(value, "same")]
    if fact.counted.minor and held.kind == "number":
        return [(value, "same"), (value / find_minor_factor(fact.counted.currency), "minor units")]
    return [(value, "same")]


def _list_amounts(said: Quantity, fact: Fact, held: Quantity, value: Decimal) -> list[tuple[Decimal, str]]:
    """Return the amount in the currency of `said`; empty if the field has another currency."""
    currency = held.unit if held.kind == "money" else fact.counted.currency
    if (currency and not is_same_currency(currency, said.unit)) or held.kind not in ("money", "number"):
        return []
    if fact.counted.minor and held.kind == "number":
        return [(value / find_minor_factor(currency or said.unit), "minor units")]
    return [(value, "same")]


def _convert(value: Decimal, held: str, said: str) -> list[tuple[Decimal, str]]:
    """Convert a measure to the unit `said`. Without a unit of its own it is taken to be in that unit, or in degrees Celsius."""
    if not held:
        return [(value, "same")] + (_convert(value, "°C", "°F") if said == "°F" else [])
    if held not in UNITS or UNITS[held].dimension != UNITS[said].dimension:
        return []
    if UNITS[held] == UNITS[said]:
        return [(value, "same")]
    return [((convert_to_base(value, UNITS[held]) - UNITS[said].shift) / UNITS[said].factor, "unit")]


def is_minor(fact: Fact) -> bool:
    """Whether a fact's field counts the smallest unit of a currency."""
    return fact.counted.minor


def may_be_minor(fact: Fact, said: Decimal) -> bool:
    """Whether a whole number may be `said` in cents although nothing about its field says that it counts cents."""
    whole = isinstance(fact.value, int) and not isinstance(fact.value, bool)
    hundred = find_minor_factor(fact.counted.currency) == HUNDRED
    return whole and hundred and not is_minor(fact) and fact.value == said * HUNDRED


def is_other_unit(said: Quantity, fact: Fact) -> bool:
    """Whether a fact has the number of `said` in another unit or currency: 12 km stated as 12 miles."""
    for held in fact.quantities:
        currency = held.unit if held.kind == "money" else fact.counted.currency
        unit = currency if said.kind == "money" else held.unit or fact.counted.unit
        if unit and said.unit and not fact.counted.minor and held.value in said.values:
            if said.kind == "money":
                return not is_same_currency(unit, said.unit)
            same = unit in UNITS and said.unit in UNITS and UNITS[unit].dimension == UNITS[said.unit].dimension
            return same and UNITS[unit] != UNITS[said.unit]
    return False


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


def name_slip(said: Decimal, held: Decimal) -> str:
    """Name the kind of slip that turns `held` into `said`: `scale_flip`, `sign_flip`, `digit_flip` or `wrong_value`.

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
