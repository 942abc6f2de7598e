"""What a field's name, its neighbours and the tool's own words say about the unit of its numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.grounding.reading.languages import DATA, SCALES, Words, list_words
from service.core.grounding.reading.units import CURRENCIES, MINOR_WORDS, UNITS, Unit, find_unit, get_minor_factor
from service.core.trace import ToolDef

MONEY_WORDS = list_words("fields", "money")
"""Words in the names of fields that hold amounts of money."""
_MINOR = MINOR_WORDS | list_words("fields", "minor")
_MINOR_PHRASE = re.compile(cast("str", DATA["minor_phrase"]), re.IGNORECASE)
_CURRENCY_NAMES, _UNIT_NAMES, _EXPONENT_NAMES = (
    tuple(cast("Words", DATA["beside"])[name].split()) for name in ("currency", "unit", "exponent")
)
_GENERIC = list_words("fields", "generic")
_AMBIGUOUS = list_words("fields", "ambiguous")
"""Spellings of units that in the names of fields usually mean something else."""
_LAST = {name: unit for unit, names in cast("Words", DATA["last"]).items() for name in names.split()}
"""Spellings that count as units only as the last of several words."""
_SHARE = list_words("fields", "share")
_JOINT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")


BASIS_POINT = Unit("share", 0.0001)
_LETTERS = frozenset({"k", "m", "b"})
"""Scales that a field's last word means only of amounts of money."""


class FieldUnit(NamedTuple):
    """The unit of a field's numbers; `unit` is None where nothing says. `minor`: they count the smallest unit of a currency."""

    unit: Unit | None = None
    minor: bool = False


@lru_cache(maxsize=8192)
def split_name(name: str) -> tuple[str, ...]:
    """Return the words of a name in lower case."""
    return tuple(_WORD.findall(_JOINT.sub(" ", name[:200]).casefold()))


@lru_cache(maxsize=512)
def says_minor(text: str) -> bool:
    """Whether a description says that amounts count cents or the like."""
    return bool(_MINOR_PHRASE.search(text[:4_000])) and "dollars and cents" not in text


class Beside(NamedTuple):
    """What the members beside a field say of its numbers: a currency, a unit, the decimals of the smallest unit."""

    currency: str = ""
    unit: str = ""
    exponent: int = 0


def read_beside(members: Mapping[str, JsonValue]) -> Beside:
    """Return what an object says of the numbers in it."""
    if _TELLING.isdisjoint(members):
        return _NOTHING
    exponent = next((value for key in _EXPONENT_NAMES if type(value := members.get(key)) is int and 0 < value < 9), 0)
    return Beside(_find_text(members, _CURRENCY_NAMES), _find_text(members, _UNIT_NAMES), exponent)


_NOTHING = Beside()
_TELLING = frozenset({*_CURRENCY_NAMES, *_UNIT_NAMES, *_EXPONENT_NAMES})


def _find_text(members: Mapping[str, JsonValue], names: tuple[str, ...]) -> str:
    return next((value[:40] for name in names if isinstance(value := members.get(name), str)), "")


@lru_cache(maxsize=8192)  # all records of a list have the same fields
def read_field(name: str, beside: Beside, *, minor_told: bool) -> FieldUnit:
    """Return the unit of a field's numbers. `minor_told`: the tool says that amounts are in cents or the like.

    >>> read_field("fare_usd_cents", Beside(), minor_told=False).minor
    True
    >>> read_field("amount", Beside("EUR"), minor_told=True).minor
    True
    >>> read_field("value", Beside("", "hours"), minor_told=False).unit
    Unit(dimension='time', factor=3600.0, shift=0.0, currency='')
    """
    words = split_name(name)
    code = next((word.upper() for word in words if len(word) == 3 and word.upper() in CURRENCIES), "")
    is_amount = bool(MONEY_WORDS & set(words))
    if not code and (is_amount or _GENERIC & set(words)):
        code = CURRENCIES.get(beside.currency.upper(), "")
    scale = float(SCALES.get(words[-1], 1)) if words[1:] and (words[-1] not in _LETTERS or is_amount or code) else 1.0
    if scale != 1:
        measured = read_field(" ".join(words[:-1]), beside, minor_told=minor_told).unit or Unit("", 1.0)
        return FieldUnit(measured._replace(factor=measured.factor * scale))
    if beside.exponent and (is_amount or _GENERIC & set(words)):
        return FieldUnit(Unit("money", 10.0**-beside.exponent, 0.0, code), minor=True)
    minor = bool(_MINOR & set(words)) or (is_amount and (minor_told or bool(_MINOR & set(split_name(beside.unit)))))
    if minor:
        return FieldUnit(Unit("money", 1 / get_minor_factor(code), 0.0, code), minor=True)
    if code and not _SHARE & set(words):
        return FieldUnit(Unit("money", 1.0, 0.0, code))
    return FieldUnit(_find_measure(words, beside.unit))


def apply_unit(unit: Unit | None, value: float) -> tuple[str, float]:
    """Return the dimension of a number of a field with this unit, and its size in the base unit.

    >>> apply_unit(UNITS["%"], 25), apply_unit(UNITS["%"], 0.25), apply_unit(None, 3)
    (('share', 0.25), ('share', 0.25), ('', 3))
    """
    if unit is None or (unit == BASIS_POINT and abs(value) > 10_000):  # bits per second
        return "", value
    if unit == UNITS["%"] and abs(value) <= 1:  # a fraction, whatever its name says
        return "share", value
    return unit.dimension, value * unit.factor + unit.shift


def _find_measure(words: tuple[str, ...], unit_beside: str) -> Unit | None:
    if _SHARE & set(words):
        return UNITS["%"]
    if words[-1:] == ("bps",) or words[-2:] == ("basis", "points"):
        return BASIS_POINT
    counted = words[: words.index("per")] if "per" in words else words
    if words[1:] and words[-1] in _LAST and "per" not in words:
        return UNITS.get(words[-2] if words[-1] in ("l", "m3") else "") or UNITS[_LAST[words[-1]]]  # `lead_ug_l`
    for word in (*counted[1:], *counted[:1]):
        if word not in _AMBIGUOUS and len(word) > 1 and (word in UNITS or (len(word) > 2 and find_unit(word))):
            unit = UNITS.get(word)
            if unit is not None and (len(words) > 1 or word.endswith("s")):
                return unit
    if unit_beside and (words[-1:] == ("value",) or _GENERIC & set(words)):
        found = find_unit(unit_beside)
        return found if found is not None and found.dimension != "money" else None
    return None


def tells_minor(tool: ToolDef | None) -> bool:
    """Whether a tool's description, or that of a parameter or a result, says that amounts are in cents or the like."""
    if tool is None:
        return False
    found = tool.memo.get("tells_minor")
    if not isinstance(found, bool):
        found = any(says_minor(text.text) for text in tool.texts)
        tool.memo["tells_minor"] = found
    return found
