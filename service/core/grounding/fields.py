"""What a field's name, its neighbours and the tool's own words say about the unit of its numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from pydantic import JsonValue

from service.core.grounding.languages import split_words
from service.core.grounding.units import CURRENCIES, MINOR_WORDS, UNITS, Unit, find_unit, get_minor_factor
from service.core.trace import ToolDef

MONEY_WORDS = split_words(
    "price amount amounts total totals balance cost costs fee fees fare fares payment charge charges refund "
    "refunded budget salary subtotal spend debit credit due paid tax taxes net gross rent deposit tip discount "
    "shipping income revenue wage"
)
"""Words in the names of fields that hold amounts of money."""
_MINOR = MINOR_WORDS | {"minor", "ct", "cts", "subunits"}
_MINOR_PHRASE = re.compile(
    r"\b(?:in|are|is|as|amounts?:?|integer|of)[ ](?:\w+[ ])?(?:cents|pence|centimes|rappen|øre)\b"
    r"|\bsmallest[ ](?:currency[ ]|monetary[ ])?units?\b"
    r"|\bminor(?:[ ]currency)?[ ]units?\b|\bcent-?beträge\b|\bin[ ]cent\b|\bcéntimos\b|\ben[ ]centimes\b|\(cents\)",
    re.IGNORECASE,
)
_CURRENCY_NAMES = ("currency", "currency_code", "currencyCode", "cur", "ccy", "waehrung", "moneda", "devise")
_UNIT_NAMES = ("unit", "units", "uom", "einheit", "unidad", "unité")
_EXPONENT_NAMES = ("exponent", "decimals", "precision", "scale", "minor_unit_exponent")
_GENERIC = split_words("value amount number quantity reading level size")
_AMBIGUOUS = split_words("in t a an d v w b l kn nm mb fl ans mes mille f fr cents m2 hp std o")
"""Spellings of units that in the names of fields usually mean something else."""
_LAST = {name: name for name in ("ms", "m", "s", "g", "h", "t", "l")} | {
    "c": "°C", "f": "°F", "kmh": "km/h", "kph": "km/h", "w": "W", "v": "V", "bytes": "B", "mb": "MB", "kb": "KB", "gb": "GB"
}  # fmt: skip
"""Spellings that count as units only as the last of several words."""
_SHARE = split_words("pct percent percentage prozent")
_JOINT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")


class FieldUnit(NamedTuple):
    """The unit of a field's numbers; `unit` is None where nothing says. `minor`: they count the smallest unit of a currency."""

    unit: Unit | None = None
    minor: bool = False


@lru_cache(maxsize=8192)
def split_name(name: str) -> tuple[str, ...]:
    """Return the words of a name in lower case.

    >>> split_name("scheduledDepartureTime_est"), split_name("userID")
    (('scheduled', 'departure', 'time', 'est'), ('user', 'id'))
    """
    return tuple(_WORD.findall(_JOINT.sub(" ", name[:200]).casefold()))


def says_minor(text: str) -> bool:
    """Whether a description says that amounts count cents or the like.

    >>> (
    ...     says_minor("Refund an order; amount is in the smallest currency unit."),
    ...     says_minor("The price in dollars and cents"),
    ... )
    (True, False)
    """
    return bool(_MINOR_PHRASE.search(text[:4_000])) and "dollars and cents" not in text


def read_field(name: str, beside: Mapping[str, JsonValue], *, minor_told: bool) -> FieldUnit:
    """Return the unit of a field's numbers. `beside`: the object it stands in; `minor_told`: the tool says amounts are cents.

    >>> read_field("fare_usd_cents", {}, minor_told=False).minor
    True
    >>> read_field("amount", {"currency": "EUR"}, minor_told=True).minor
    True
    >>> read_field("value", {"unit": "hours"}, minor_told=False).unit
    Unit(dimension='time', factor=3600.0, shift=0.0, currency='')
    """
    exponent = next((value for key in _EXPONENT_NAMES if type(value := beside.get(key)) is int and 0 < value < 9), 0)
    return _read(name, _find_text(beside, _CURRENCY_NAMES), _find_text(beside, _UNIT_NAMES), minor_told, exponent)


def _find_text(beside: Mapping[str, JsonValue], names: tuple[str, ...]) -> str:
    return next((value[:40] for name in names if isinstance(value := beside.get(name), str)), "")


@lru_cache(maxsize=8192)  # all records of a list have the same fields
def _read(name: str, currency_beside: str, unit_beside: str, minor_told: bool, exponent: int) -> FieldUnit:  # noqa: FBT001
    words = split_name(name)
    code = next((found for word in words if (found := _read_currency(word))), "")
    is_amount = bool(MONEY_WORDS & set(words))
    if not code and (is_amount or _GENERIC & set(words)):
        code = CURRENCIES.get(currency_beside.upper(), "")
    if exponent and (is_amount or _GENERIC & set(words)):
        return FieldUnit(Unit("money", 10.0**-exponent, 0.0, code), minor=True)
    minor = bool(_MINOR & set(words)) or (is_amount and (minor_told or bool(_MINOR & set(split_name(unit_beside)))))
    if minor:
        return FieldUnit(Unit("money", 1 / get_minor_factor(code), 0.0, code), minor=True)
    if code and not _SHARE & set(words):
        return FieldUnit(Unit("money", 1.0, 0.0, code))
    return FieldUnit(_find_measure(words, unit_beside))


def _read_currency(word: str) -> str:
    return word.upper() if len(word) == 3 and word.upper() in CURRENCIES else ""


def _find_measure(words: tuple[str, ...], unit_beside: str) -> Unit | None:
    if _SHARE & set(words):
        return UNITS["%"]
    if "bps" in words or words[-2:] == ("basis", "points"):
        return None
    counted = words[: words.index("per")] if "per" in words else words
    if words[1:] and words[-1] in _LAST and "per" not in words:
        return UNITS[_LAST[words[-1]]]
    for word in (*counted[1:], *counted[:1]):
        if word not in _AMBIGUOUS and len(word) > 1 and (word in UNITS or (len(word) > 2 and find_unit(word))):
            unit = UNITS.get(word)
            if unit is not None and (len(words) > 1 or word.endswith("s")):
                return unit
    if unit_beside and (words[-1:] == ("value",) or _GENERIC & set(words)):
        found = find_unit(unit_beside)
        return found if found is not None and found.dimension != "money" else None
    return None


@lru_cache(maxsize=512)
def _says_minor_of(description: str) -> bool:
    return says_minor(description)


def tells_minor(tool: ToolDef | None) -> bool:
    """Whether a tool's description, or that of a parameter or a result, says that amounts are in cents or the like."""
    if tool is None:
        return False
    found = tool.memo.get("tells_minor")
    if not isinstance(found, bool):
        found = any(_says_minor_of(text.text) for text in tool.texts)
        tool.memo["tells_minor"] = found
    return found
