"""A matcher for free text that accepts what people would read as the same."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Literal

from pydantic import JsonValue

from service.core.critics.base import MATCHED, Match, ValueCritic, build_mismatch
from service.core.json.values import equals, format_value

MAX_TEXT_CHARS = 1_000
"""The longest text that is normalised; a longer one is compared as it is."""

_COUNTS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_NUMBERS = {word: str(n) for n, word in enumerate(_COUNTS.split(" "))}
_ARTICLES = frozenset({"a", "an", "the"})
_COMPANIES = frozenset({"inc", "incorporated", "corp", "corporation", "ltd", "limited", "llc", "plc", "gmbh"})
_PIECE = re.compile(r"(?<![\w.])[-+]?\d+(?:[.,:/-]\d+)*|[^\W\d_]+|\d+|[^\w\s]")
_IGNORED_MARKS = frozenset(".,;:!?()[]-\N{EN DASH}\N{EM DASH}")
"""Punctuation that does not matter. All other marks count: `C++` is not `C`, nor is `'C'`."""
_TELLING = re.compile(r"!(?=[\w=(])|(?<!\S)-(?=\w)")
"""Marks among them that deny or exclude what follows: `!=`, `-draft`."""
_BRACKETS = frozenset("()[]")
_OPERATOR = re.compile(r"[=<>+*^|~]|\w\(|\b(?:AND|OR|NOT)\b")
"""What groups what stands around it, so that brackets matter."""
_APOSTROPHE = re.compile(r"(?<=\w)['\u2019](?=\w)")
_CODE = re.compile(r"(?=\S*\d)\S+|\S*[./\\@:=]\S+|[A-Z]{1,5}")
"""A single word with a digit, a path, an address, or short capitals: an identifier or a code, where each character counts."""
_POWERS = {ord(c): f"^{n}" for n, c in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}
_TERM = re.compile(r"[0-9.,()+*/^= -]|(?<![a-z])(?:[a-z]|sin|cos|tan|log|ln|exp|sqrt|pi)(?![a-z])")
_TIMES = re.compile(r"\*(?=[a-z(])")
"""A multiplication sign that may be left out: one before a letter or a bracket."""


class SameText(ValueCritic):
    """A text that reads as the expected one, whatever its case, spaces, punctuation, articles, number words, company suffix.

    Formulas are the same up to spaces, `**` for `^`, and a `*` that may be left out. A single word with digits, a path, an
    address or short capitals may be an identifier or a code, and is compared as it is; so are numbers, dates, and texts of
    more than 1,000 characters. If the text is not identical, the note says what it was read as.

    >>> [
    ...     SameText(value="The Starry Night").match(text).passed
    ...     for text in ("starry night", "Starry  Night!", "Starry Nights")
    ... ]
    [True, True, False]
    >>> [SameText(value="2*x**2 + 1").match(text).passed for text in ("2x^2+1", "2x² + 1", "2x^3 + 1")]
    [True, True, False]
    >>> [
    ...     SameText(value=a).match(b).passed
    ...     for a, b in (("Tesla", "Tesla Inc."), ("two adults", "2 adults"), ("AB12", "ab12"))
    ... ]
    [True, True, False]
    """

    kind: Literal["same_text"] = "same_text"

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match:
        """Return 1 or 0. If the expected value is no text, only the identical value matches."""
        if equals(actual, expected):
            return MATCHED
        if isinstance(actual, str) and isinstance(expected, str) and _is_same(actual, expected):
            return Match(1.0, True, lambda: f"{format_value(actual)} reads as {format_value(expected)}")
        return build_mismatch(actual, expected)


def _is_same(one: str, other: str) -> bool:
    if max(len(one), len(other)) > MAX_TEXT_CHARS:
        return False
    formulas = _read_formula(one), _read_formula(other)
    if all(formulas):
        return formulas[0] == formulas[1]
    if _CODE.fullmatch(one.strip()) or _CODE.fullmatch(other.strip()):
        return False
    grouped = any(formulas) or any(_OPERATOR.search(text) for text in (one, other))
    return any(c.isalpha() for c in one) and _read_words(one, grouped=grouped) == _read_words(other, grouped=grouped)


@lru_cache(maxsize=4096)
def _read_formula(text: str) -> str:
    """Return a formula in the form in which it is compared; "" for a text that is none."""
    plain = text.translate(_POWERS).casefold().replace("**", "^")
    if (
        not any(c.isalpha() for c in plain)
        or not any(c.isdigit() or c in "(+*^=" for c in plain)
        or _TERM.sub("", plain)
    ):
        return ""
    return _TIMES.sub("", plain.replace(" ", ""))


@lru_cache(maxsize=4096)
def _read_words(text: str, *, grouped: bool) -> str:
    """Return the words joined, without articles and idle punctuation; numbers keep spaces around them."""
    plain = unicodedata.normalize("NFKC", _APOSTROPHE.sub("", text).replace("_", " ")).casefold()
    idle = _IGNORED_MARKS - _BRACKETS if grouped else _IGNORED_MARKS
    found = _PIECE.finditer(plain)
    pieces = ["", *[one[0] for one in found if one[0] not in idle or _TELLING.match(plain, one.start())], ""]
    words: list[str] = []
    for before, piece, after in zip(pieces, pieces[1:], pieces[2:], strict=False):
        if piece in _ARTICLES and after:  # a last `A` is no article: `vitamin A`
            continue
        alone = not any(one in _NUMBERS or one[-1:].isdigit() for one in (before, after))  # `twenty five` is not 20
        word = "and" if piece == "&" else _NUMBERS.get(piece, piece) if alone else piece
        words.append(f" {word} " if word[-1].isdigit() else word)
    if len(words) > 1 and words[-1] in _COMPANIES:
        words.pop()
    return "".join(words)
