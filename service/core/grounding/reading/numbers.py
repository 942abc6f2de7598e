"""Read numbers as people write them: with the separators of several places, as fractions and powers, or as words."""

from __future__ import annotations

import re
from typing import NamedTuple

from service.core.grounding.reading.languages import ARTICLES, MULTIPLIERS, PARTS, list_number_words

DIGITS = r"(?:\d{1,3}(?:[ \u00a0\u202f'\u2019]\d{3}){1,15}(?!\d)(?:[.,]\d++)?|\d++(?:[.,]\d++){0,15}+)"
"""A run of digits and separators; spaces and apostrophes only before groups of three. More groups are more than MAX_DIGITS."""
MAX_DIGITS = 30
"""Longer runs of digits are codes."""

_PLAIN = re.compile(r"\d++(?:\.(\d{1,2}|\d{4,}))?|\d{1,3}(?:,\d{3})+\.(\d+)")
_SPACES = re.compile(r"[ '\u2019\u00a0\u202f]")
_GROUPED = re.compile(r"\d{1,3}(?:([.,])\d{3})(?:\1\d{3})*+(?:[.,]\d++)?|\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d++)?")
FRACTION_SIGNS = {"½": 0.5, "¼": 0.25, "¾": 0.75, "⅓": 1 / 3, "⅔": 2 / 3, "⅛": 0.125}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺\u2212", "0123456789-+-")


class Number(NamedTuple):
    """A number as written: its size, and what one in the last place written is worth."""

    value: float
    last_place: float = 1.0


def read_digits(text: str) -> tuple[Number, ...]:
    """Return what digits with separators may mean, likeliest first; () if they are no number (a version, a list).

    >>> [n.value for n in read_digits("1,234.50")], [n.value for n in read_digits("5.400,00")], read_digits("4.4.2")
    ([1234.5], [5400.0], ())
    >>> [n.value for n in read_digits("1,234")], [n.value for n in read_digits("1 250")], read_digits("0,75")[0]
    ([1234.0, 1.234], [1250.0], Number(value=0.75, last_place=0.01))
    """
    if len(text) > MAX_DIGITS:
        return ()
    if plain := _PLAIN.fullmatch(text):
        return (Number(float(text.replace(",", "")), 10.0 ** -len(plain[1] or plain[2] or "")),)
    groups = _SPACES.split(text)
    if any(len(re.split("[.,]", group)[0]) != 3 for group in groups[1:]) or (groups[1:] and len(groups[0]) > 3):
        return ()
    text = "".join(groups)
    marks = [c for c in text if not c.isdigit()]
    if not marks:
        return (Number(float(text)),)
    if len(marks) == 1:
        whole, _, part = text.partition(marks[0])
        point, joined = _read(whole, part), _read(whole + part)
        if len(part) != 3 or len(whole) > 3 or whole.startswith("0") or groups[1:]:
            return (point,)
        return (joined, point) if marks[0] == "," else (point, joined)
    if not _GROUPED.fullmatch(text):
        return ()
    last = marks[-1]
    if len(set(marks)) == 1:
        return (_read(text.replace(last, "")),)
    whole, _, part = text.rpartition(last)
    return (_read("".join(c for c in whole if c.isdigit()), part),)


def _read(whole: str, part: str = "") -> Number:
    return Number(float(f"{whole}.{part or 0}"), 10.0 ** -len(part))


def read_power(text: str) -> float:
    """Return what an exponent multiplies by: `e-4`, ` x 10⁻⁴`, `*10^6`."""
    exponent = re.sub(r"^.*?(?:10\^?|[eE])", "", text).translate(_SUPERSCRIPTS)
    return 10.0 ** max(-100, min(100, int(exponent)))


def read_words(words: list[str], language: str) -> float | None:
    """Return the number that lower-case words spell; None if they spell none, or are an article.

    >>> read_words(["three", "hundred", "and", "ten"], "en"), read_words(["zweitausend"], "de")
    (310.0, 2000.0)
    >>> read_words(["two", "and", "a", "half"], "en"), read_words(["twelve", "dozen"], "en"), read_words(["una"], "es")
    (2.5, 144.0, None)
    """
    small, multipliers = list_number_words(language), MULTIPLIERS[language]
    total = group = 0.0
    numbers = 0
    for word in words:
        if word in multipliers:
            times = multipliers[word]
            group = (group or 1) * times
            if times >= 1_000:
                total, group = total + group, 0.0
        elif word in small:
            century = language == "en" and 10 <= group < 100 and small[word] >= 10  # nineteen twenty-four
            group = group * (100 if century else 1) + small[word]
        elif word in PARTS and numbers:
            group += PARTS[word]
        elif word not in _JOINTS:
            return None
        numbers += word not in _JOINTS
    if not numbers or (len(words) == 1 and words[0] in ARTICLES):
        return None
    return total + group


_JOINTS = frozenset({"and", "und", "y", "et", "a", "an"})
