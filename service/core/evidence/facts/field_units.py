"""Find the unit of a field's numbers from its name, from its sibling fields, or from the tool's schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.evidence.reading.units import CURRENCIES, CURRENCY_WORDS, LOWERED, MINOR_WORDS, UNITS, find_unit
from service.core.evidence.reading.words import split_name, split_tokens, split_words, stem_word

MONEY = split_words(
    "price amount total balance cost fee fare payment charge refund budget salary subtotal spend debit credit"
)
"""Words in the names of fields that hold amounts of money."""
_MINOR = MINOR_WORDS | {"minor"}
_MINOR_PHRASE = re.compile(
    r"\bin (?:\w+ )?(?:cents|pence)\b|\bsmallest (?:currency |monetary )?unit\b|\bminor (?:currency )?units?\b",
    re.IGNORECASE,
)
_PERCENT = split_words("pct percent percentage")
_CURRENCY_KEYS = ("currency", "currency_code", "currencyCode", "cur")
_UNIT_KEYS = ("unit", "units", "uom")
_GENERIC_AMOUNTS = split_words("value amount number quantity")
_AMBIGUOUS_SYMBOLS = split_words("in t s b k l v w mb fl m pa mp ah kn year month week day hour")
"""Unit symbols that in field names usually mean something else."""
_UNIT_OF_LAST_WORD = {
    "c": "°C",
    "celsius": "°C",
    "f": "°F",
    "fahrenheit": "°F",
    "kmh": "km/h",
    "kph": "km/h",
    "sqm": "m²",
    "m2": "m²",
    "sqft": "sq ft",
    "ms": "ms",
    "m": "m",
}
_PLURALS = split_words("days hours minutes seconds weeks months years calories kcal")
"""Units that count even as the first or only word of a name: `days_to_ship`, `minutes`."""
MAX_DESCRIBED = 500


class FieldUnit(NamedTuple):
    """The unit of a field's numbers; "" and False where unknown.

    `currency` is a code, `minor` whether the numbers count its smallest unit, `unit` a unit of measure or `%`.
    """

    currency: str = ""
    minor: bool = False
    unit: str = ""


NO_UNIT = FieldUnit()


def read_field_unit(name: str, beside: Mapping[str, JsonValue], described: str = "") -> FieldUnit:
    """Find a field's unit from its name, the object around it (`beside`), and its description in the schema, or "".

    >>> read_field_unit("fare_usd_cents", {}), read_field_unit("amount", {"currency": "JPY"}, "In the smallest unit.")
    (FieldUnit(currency='USD', minor=True, unit=''), FieldUnit(currency='JPY', minor=True, unit=''))
    >>> read_field_unit("distanceKm", {}).unit, read_field_unit("value", {"unit": "hours"}).unit
    ('km', 'h')
    """
    return _read_unit(name, _find_text(beside, _CURRENCY_KEYS), _find_text(beside, _UNIT_KEYS), described)


def _find_text(beside: Mapping[str, JsonValue], keys: tuple[str, ...]) -> str:
    return next((value for key in keys if isinstance(value := beside.get(key), str)), "")


@lru_cache(maxsize=4096)  # all records of a list have the same fields
def _read_unit(name: str, currency_beside: str, unit_beside: str, described: str) -> FieldUnit:
    words = split_name(name)
    currency = next((found for word in words if (found := _read_currency(word))), "")
    amount = bool(MONEY & {stem_word(word) for word in words}) or bool(_GENERIC_AMOUNTS & set(words))
    if not currency and amount:
        currency = CURRENCIES.get(currency_beside.upper(), "") or _read_described(described)
    counts_minor = amount and bool(_MINOR & set(split_tokens(unit_beside)))
    minor = bool(_MINOR & set(words)) or bool(_MINOR_PHRASE.search(described)) or counts_minor
    return FieldUnit(currency, minor, "" if currency or minor else _find_unit(words, unit_beside, described))


def _read_currency(word: str) -> str:
    return word.upper() if len(word) == 3 and word.upper() in CURRENCIES else CURRENCY_WORDS.get(word, "")


def _read_described(described: str) -> str:
    return next((found for word in split_tokens(described) if (found := _read_currency(word))), "")


def _find_unit(words: tuple[str, ...], unit: str, described: str) -> str:
    last = words[-1] if words[1:] else ""
    if _PERCENT & set(words):
        return "%"
    if last in _UNIT_OF_LAST_WORD:
        return _UNIT_OF_LAST_WORD[last]
    counted = words[: words.index("per")] if "per" in words else words
    for word in (*counted[1:], *_PLURALS.intersection(words[:1])):
        if word in LOWERED and word not in _AMBIGUOUS_SYMBOLS:
            return UNITS[LOWERED[word]].name
    if unit and (words[-1:] == ("value",) or _GENERIC_AMOUNTS & set(words)):
        return "%" if unit in ("%", "percent") else _name_unit(unit)
    phrase = re.search(r"\bin ([a-z]{3,12})\b", described[:400])
    return _name_unit(phrase[1]) if phrase else ""


def _name_unit(text: str) -> str:
    unit = find_unit(text)
    return unit.name if unit else ""


def describe_fields(schema: object) -> dict[str, str]:
    """Return the descriptions of a schema's properties by name; where a name repeats, the first one found applies."""
    found: dict[str, str] = {}
    for name, described in _iter_described(schema):
        found.setdefault(name, described)
    return found


def _iter_described(schema: object) -> Iterator[tuple[str, str]]:
    stack: list[object] = [schema]
    for _ in range(MAX_DESCRIBED):
        if not stack:
            return
        here = stack.pop()
        if isinstance(here, list):
            stack += cast("list[object]", here)
        elif isinstance(here, dict):
            inner = cast("dict[str, object]", here)
            properties = inner.get("properties")
            if isinstance(properties, dict):
                for name, property_schema in cast("dict[str, object]", properties).items():
                    described = (
                        cast("dict[str, object]", property_schema).get("description")
                        if isinstance(property_schema, dict)
                        else None
                    )
                    if isinstance(described, str):
                        yield name, described[:1_000]
            stack += [value for value in inner.values() if isinstance(value, dict | list)]
