"""Read numbers as people write them: with the separators of several locales, or as words."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

DIGITS = r"\d++(?:[.,'\u2019\u00a0\u202f]\d++)*+"
"""A run of digits and separators. Possessive, so that no text causes backtracking."""

MAX_DIGITS = 40
"""Longer runs of digits are not quantities for a reader."""

_ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
SMALL = {word: n for n, word in enumerate(_ONES)} | {word: 10 * n for n, word in enumerate(_TENS, 2)} | {"dozen": 12}
"""Number words up to ninety, and `dozen`."""
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9}

_WORD = "|".join(sorted([*SMALL, *_SCALES], key=len, reverse=True))
_AND = "|".join(f"(?<={scale})" for scale in _SCALES)
WORDS = rf"\b(?:{_WORD})(?:(?:[ -]|(?:{_AND})[ ]and[ ])(?:{_WORD})\b)*+\b"
"""Number words: `twenty-five`, `three hundred and ten`."""

_GROUPED = re.compile(r"\d{1,3}(?:([.,'\u2019\u00a0\u202f])\d{3})(?:\1\d{3})*+(?:[.,]\d++)?")


def read_number(text: str) -> tuple[Decimal, ...]:
    """Return the possible values of a run of digits and separators, likeliest first; () if it is no number (a version, a list).

    >>> (
    ...     [str(n) for n in read_number("1,234.50")],
    ...     [str(n) for n in read_number("5.400,00")],
    ...     [str(n) for n in read_number("1,234")],
    ... )
    (['1234.50'], ['5400.00'], ['1234', '1.234'])
    >>> [str(n) for n in read_number("1.234")], [str(n) for n in read_number("0,75")], read_number("4.4.2")
    (['1.234', '1234'], ['0.75'], ())
    """
    if len(text) > MAX_DIGITS:
        return ()
    marks = [c for c in text if not c.isdigit()]
    if not marks:
        return _read_decimals(text)
    if len(marks) == 1 and marks[0] in ".,":
        return _read_one_mark(text, marks[0])
    if not _GROUPED.fullmatch(text):
        return ()
    last = marks[-1]
    if len(set(marks)) == 1:
        return _read_decimals(text.replace(last, ""))
    if marks.count(last) > 1 or last not in ".,":
        return ()
    whole, _, part = text.rpartition(last)
    return _read_decimals("".join(c for c in whole if c.isdigit()) + "." + part)


def _read_one_mark(text: str, mark: str) -> tuple[Decimal, ...]:
    whole, _, part = text.partition(mark)
    point, joined = f"{whole}.{part}", f"{whole}{part}"
    if len(part) != 3 or len(whole) > 3 or whole.startswith("0"):
        return _read_decimals(point)
    return _read_decimals(joined, point) if mark == "," else _read_decimals(point, joined)


def _read_decimals(*texts: str) -> tuple[Decimal, ...]:
    try:
        return tuple([Decimal(text) for text in texts])
    except InvalidOperation:
        return ()


def count_places(text: str, value: Decimal) -> int:
    """Return the number of decimal places that a number was written with; 0 for a whole number.

    >>> count_places("1,234.50", Decimal("1234.50")), count_places("12", Decimal(12))
    (2, 0)
    """
    exponent = value.as_tuple().exponent
    return -exponent if text and isinstance(exponent, int) and exponent < 0 else 0


def read_number_words(text: str) -> Decimal:
    """Return the number that words spell out.

    >>> (
    ...     str(read_number_words("three hundred and ten")),
    ...     str(read_number_words("twenty-five")),
    ...     str(read_number_words("two million")),
    ... )
    ('310', '25', '2000000')
    """
    total = group = 0
    for word in re.split(r"[ -]", text.lower()):
        if word in SMALL:
            group += SMALL[word]
        elif word == "hundred":
            group = (group or 1) * 100
        elif word in _SCALES:
            total, group = total + (group or 1) * _SCALES[word], 0
    return Decimal(total + group)


MAGNITUDES = {
    "k": 1_000,
    "thousand": 1_000,
    "m": 10**6,
    "mn": 10**6,
    "million": 10**6,
    "bn": 10**9,
    "b": 10**9,
    "billion": 10**9,
}
"""Suffixes that multiply a number. Of the single letters, `m` and `b` count only with a currency or a decimal point."""
