"""Find the comparable values in text: numbers, money, measures, dates, times, truth values, identifiers and names.

Each comes with its position and in a normalised form. The search is linear in the text: every pattern is possessive or
bounded.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Literal, NamedTuple

from service.core.evidence.reading import dates, numbers
from service.core.evidence.reading.units import CURRENCIES, CURRENCY_WORDS, MINOR_DIGITS, MINOR_WORDS, UNITS, find_unit

Kind = Literal["number", "money", "percent", "measure", "duration", "date", "time", "boolean", "identifier", "name"]
Value = Decimal | str | bool

MAX_TEXT = 64_000
"""Characters read of one text. Callers report a text that is longer."""
MAX_QUANTITIES = 5_000
"""Limit on the quantities found in one text."""


class Quantity(NamedTuple):
    """One quantity in a text. `value` by kind: a Decimal; an ISO date (`--05-20`: no year), `hh:mm:ss`; a truth value; text.

    `unit` is the currency code (`?` where a bare minor unit such as `cents` leaves it open), the unit of measure, or "".
    15 percent has the value 15. `places` is the number of decimals written, below 0 for `1.2k`; `others` are further
    readings of an ambiguous text (`1.234`, `05/06/2024`).
    """

    kind: Kind
    value: Value
    unit: str
    start: int
    end: int
    text: str
    places: int = 0
    others: tuple[Value, ...] = ()

    @property
    def values(self) -> tuple[Value, ...]:
        """All readings, likeliest first."""
        return (self.value, *self.others)

    @property
    def number(self) -> Decimal | None:
        """The value if it is a number, else None."""
        return self.value if isinstance(self.value, Decimal) else None


_CURRENCY = "|".join(re.escape(sign) for sign in sorted(CURRENCIES, key=len, reverse=True) if not sign.isalpha())
_CODES = "|".join(code for code in CURRENCIES if code.isalpha())
_MONEY_AFTER = "|".join([*CURRENCY_WORDS, *MINOR_WORDS])
_PLACE_WORDS = "the|an?|early|late|mid|all|total|each|its|this|that|our|your|favou?r"
_NOT_A_PLACE = rf"(?![ ](?:\d|(?i:{'|'.join(dates.MONTHS)})\b|(?:{_PLACE_WORDS})\b))"
"""Rules out inches where a place or a time follows `in`."""
_SYMBOLS = "|".join(re.escape(unit) + _NOT_A_PLACE * (unit == "in") for unit in sorted(UNITS, key=len, reverse=True))
_SIZE = r"thousand|million|billion|bn|mn"

_NUMBER = (
    rf"(?P<sign>(?<![\w.,)])[-+\u2212])?(?:(?P<before>{_CURRENCY})[ ]?|(?P<code>\b(?:{_CODES}))[ ]?)?(?P<inner>(?<=\D)[-\u2212])?"
    rf"(?P<digits>(?<![\w.,]){numbers.DIGITS}|(?<=[$€£¥₹]){numbers.DIGITS}|(?<=[A-Z]{{3}}){numbers.DIGITS}|(?<=[-+\u2212]){numbers.DIGITS})"
    rf"(?:(?:st|nd|rd|th)\b|(?:[ ]?(?P<size>(?:{_SIZE})\b)|(?P<short>[kKMB](?![\w°])))?"
    rf"(?:[ \u00a0]?(?P<after>[€£¥₹])|[ ](?P<coded>(?:{_CODES})\b)|[ ](?P<said>(?i:{_MONEY_AFTER})\b)"
    rf"|[ ]?(?P<percent>%|(?i:percent|per[ ]cent|pct)\b)|[ \u00a0-]?(?P<unit>{_SYMBOLS})(?![\w/²³]))?)"
)
_ID = r"(?<![\w.@-])(?=[\w.@:+#-]{0,63}\d)(?=[\w.@:+#-]{0,63}[A-Za-z])[A-Za-z0-9#](?:[\w-]|[.@:+](?=[A-Za-z0-9]))*+"
_MAIL = r"(?<![\w.@+-])[A-Za-z0-9][\w.+-]{0,63}+(?<=\w)@[\w-]++(?:\.[\w-]++)++"
# No quantity begins inside a word, which rules out most positions of a text at once.
_MASTER = re.compile(
    r"(?<![^\W\d_])(?=[\w$€£¥₹#+\u2212-])(?:"
    rf"(?P<url>\bhttps?://[^\s)>\]\"']++)"
    rf"|(?P<iso>{dates.ISO})"
    rf"|(?P<prose>(?i:{dates.PROSE}))"
    rf"|(?P<numeric>{dates.NUMERIC})"
    rf"|(?P<time>(?i:{dates.TIME}))"
    rf"|(?P<relative>(?i:{dates.RELATIVE}))"
    rf"|(?P<words>(?i:{numbers.WORDS}))"
    rf"(?:[ ](?P<wsaid>(?i:{_MONEY_AFTER})\b)|[ ](?P<wpercent>(?i:percent)\b)|[ -](?P<wunit>[A-Za-z]{{3,12}}\b))?"
    rf"|(?P<amount>{_NUMBER})(?![A-Za-z_\d]|[-@:](?=[A-Za-z_]))"
    rf"|(?P<id>{_ID})"
    rf"|(?P<truth>\b(?i:yes|no|true|false)\b))"
)


def find_quantities(text: str, reference: date | None = None) -> list[Quantity]:
    """Return the quantities in the first 64,000 characters of `text`, in order, without overlaps.

    Relative dates (`tomorrow`, `next Friday`) are found only with a `reference`, the date that they are relative to.

    >>> [(q.kind, str(q.value)) for q in find_quantities("HAT069 costs $1,234.50 on May 20th at 6 pm")]
    [('identifier', 'HAT069'), ('money', '1234.50'), ('date', '--05-20'), ('time', '18:00:00')]
    >>> [(q.kind, str(q.value), q.unit) for q in find_quantities("-3.5 °C, 5.400,00 €, 50 cents, two hours")]
    [('measure', '-3.5', '°C'), ('money', '5400.00', 'EUR'), ('money', '0.50', '?'), ('duration', '2', 'h')]
    """
    found: list[Quantity] = []
    for match in _MASTER.finditer(text[:MAX_TEXT]):
        quantity = _read_quantity(match, reference)
        if quantity is not None:
            found.append(quantity)
        if len(found) == MAX_QUANTITIES:
            break
    return found


def _read_quantity(match: re.Match[str], reference: date | None) -> Quantity | None:
    group, text = match.lastgroup, match.group()
    if group == "amount":
        return _read_amount(match, match.groupdict())
    if group in ("words", "wsaid", "wpercent", "wunit"):
        return _read_spelt(match, match.groupdict())
    if group == "url":
        return None
    if group == "id":
        return Quantity("identifier", text, "", match.start(), match.end(), text)
    if group == "truth":
        return Quantity("boolean", text.lower() in ("yes", "true"), "", match.start(), match.end(), text)
    if group == "time":
        time = dates.read_time(text)
        return Quantity("time", time, "", match.start(), match.end(), text) if time else None
    return _read_date(match, str(group), reference)


def _read_date(match: re.Match[str], group: str, reference: date | None) -> Quantity | None:
    text = match.group()
    if group == "relative":
        options = dates.read_relative_date(text, reference) if reference else ()
    elif group == "numeric":
        options = dates.read_numeric_date(text)
    else:
        one = dates.read_iso_date(text) if group == "iso" else dates.read_prose_date(text)
        options = (one,) if one else ()
    if not options:
        return None
    return Quantity("date", options[0], "", match.start(), match.end(), text, 0, options[1:])


def _read_amount(match: re.Match[str], groups: dict[str, str | None]) -> Quantity | None:
    digits = groups["digits"] or ""
    values = numbers.read_number(digits)
    if not values:
        return None
    negative = (groups["sign"] or groups["inner"] or "") in ("-", "\u2212") and (groups["sign"] or groups["inner"])
    currency = _find_currency(groups)
    size = _find_size(groups, money=currency is not None)
    factor = Decimal(-size if negative else size)
    kind, unit = _find_kind(groups, currency)
    if (groups["said"] or "").lower() in MINOR_WORDS:
        kind, unit, factor = "money", "?", factor / 100
    scaled = tuple([value * factor for value in values])
    places = numbers.count_places(digits, values[0]) - (len(str(size)) - 1)
    return Quantity(kind, scaled[0], unit, match.start(), match.end(), match.group(), places, scaled[1:])


def _find_currency(groups: dict[str, str | None]) -> str | None:
    for group in ("before", "code", "after", "coded"):
        sign = groups[group]
        if sign:
            return CURRENCIES[sign]
    return CURRENCY_WORDS.get((groups["said"] or "").lower())


def _find_size(groups: dict[str, str | None], *, money: bool) -> int:
    word = (groups["size"] or (groups["short"] or "")).lower()
    sure = (
        money
        or groups["short"] in (None, "k", "K")
        or (groups["short"] in ("M", "B") and "." in (groups["digits"] or ""))
    )
    if not sure:  # `5M` without a currency may be metres or a model
        return 1
    return numbers.MAGNITUDES.get(word, 1)


def _find_kind(groups: dict[str, str | None], currency: str | None) -> tuple[Kind, str]:
    if currency:
        return "money", currency
    if groups["percent"]:
        return "percent", ""
    unit = find_unit(groups["unit"]) if groups["unit"] else None
    if unit is None:
        return "number", ""
    return ("duration" if unit.dimension == "duration" else "measure"), unit.name


def _read_spelt(match: re.Match[str], groups: dict[str, str | None]) -> Quantity:
    words = groups["words"] or ""
    value, kind, unit = numbers.read_number_words(words), "number", ""
    currency_word = (groups["wsaid"] or "").lower()
    measure = find_unit(groups["wunit"]) if groups["wunit"] else None
    end = match.end("words")
    if currency_word in MINOR_WORDS:
        value, kind, unit, end = value / 100, "money", "?", match.end()
    elif currency_word:
        kind, unit, end = "money", CURRENCY_WORDS[currency_word], match.end()
    elif groups["wpercent"]:
        kind, end = "percent", match.end()
    elif measure is not None and measure.name not in ("in", "m", "s"):
        kind, unit, end = ("duration" if measure.dimension == "duration" else "measure"), measure.name, match.end()
    return Quantity(kind, value, unit, match.start(), end, match.string[match.start() : end])  # pyright: ignore[reportArgumentType]


def find_minor_factor(currency: str) -> Decimal:
    """Return how many of a currency's smallest unit make a whole one.

    >>> str(find_minor_factor("USD")), str(find_minor_factor("JPY")), str(find_minor_factor("KWD"))
    ('100', '1', '1000')
    """
    return Decimal(10) ** MINOR_DIGITS.get(currency, 2)


@lru_cache(maxsize=4096)  # every number of a text is compared with those of results
def list_significant_digits(value: Decimal) -> str:
    """Return the digits of a number without its sign, its point, and leading or trailing zeros.

    >>> list_significant_digits(Decimal("-5400.00")), list_significant_digits(Decimal("0.054"))
    ('54', '54')
    """
    return "".join(map(str, value.as_tuple().digits)).lstrip("0").rstrip("0")
