"""Units of measure and currencies: what a word after a number, or a part of a field's name, stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

from service.core.grounding.reading.languages import DATA, Words, list_words, read_sizes


class Unit(NamedTuple):
    """A unit: `value * factor + shift` is the value in the base unit of its dimension. `currency`: an ISO 4217 code, or ""."""

    dimension: str
    factor: float
    shift: float = 0.0
    currency: str = ""


def _build_units() -> dict[str, Unit]:
    found: dict[str, Unit] = {}
    for line in cast("str", DATA["units"]).splitlines():
        dimension, factor, *names = line.split()
        factor, _, shift = factor.partition("+")
        found |= dict.fromkeys(names, Unit(dimension, float(factor), float(shift or 0)))
    return found


UNITS = _build_units()
"""Units by their spellings: symbols as they are, words in lower case."""
_MONEY = cast("Mapping[str, Words]", DATA["currencies"])
CURRENCIES = {name: code for code, names in _MONEY["names"].items() for name in (code, *names.split())} | {
    code: code for code in list_words("currencies", "codes")
}
"""ISO 4217 codes by sign, code and name."""
MINOR_WORDS = list_words("currencies", "minor")
_MINOR_DIGITS = read_sizes(_MONEY["digits"])
_OPEN = {"USD": list_words("currencies", "dollars"), "NOK": list_words("currencies", "crowns")}
"""By the code of a bare `$` or `kr`, those of the countries that may write it."""


def get_minor_factor(currency: str) -> float:
    """Return how many of a currency's smallest unit make a whole one (ISO 4217); 100 where the currency is unknown.

    >>> get_minor_factor("USD"), get_minor_factor("JPY"), get_minor_factor("KWD")
    (100.0, 1.0, 1000.0)
    """
    return 10.0 ** _MINOR_DIGITS.get(currency, 2)


def may_be_same_currency(one: str, other: str) -> bool:
    """Whether two codes may mean one currency: an unknown one may be any, and a bare `$` or `kr` leaves the country open.

    >>> may_be_same_currency("USD", "EUR"), may_be_same_currency("USD", "CAD"), may_be_same_currency("", "JPY")
    (False, True, True)
    """
    if one == other or not one or not other:
        return True
    return other in _OPEN.get(one, ()) or one in _OPEN.get(other, ())


def find_unit(word: str) -> Unit | None:
    """Return the unit or currency that a word or sign stands for, or None. Cents are money by a hundredth."""
    unit = UNITS.get(word) or (UNITS.get(word.lower()) if len(word) > 2 else None)
    if unit is not None:
        return unit
    code = CURRENCIES.get(word) or CURRENCIES.get(word.lower() if len(word) > 3 else word)
    if code is not None:
        return Unit("money", 1.0, 0.0, code)
    return Unit("money", 0.01) if word.lower() in MINOR_WORDS else None
