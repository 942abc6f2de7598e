"""Find identifiers given in another form: spoken, spaced, padded with zeros, with or without a prefix."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from service.core.evidence.provenance.places import SourcePlace
from service.core.evidence.reading.numbers import SMALL
from service.core.evidence.reading.words import split_tokens, split_words
from service.core.models.lazy import lazy

MAX_WORDS = 10_000
"""With more words with digits than this, none are joined."""
_MAX_JOINED = 12
"""Most words with digits that are joined into one identifier."""
_MAX_FOUND = 64
_PHONE = 7
"""Fewest digits of a phone number that may lack its country prefix."""
_MAX_PREFIX = 3
_MIN_DIGITS = 2
"""Fewest digits of an identifier that may lack its prefix of letters."""
_PREFIXED = re.compile(r"(?P<letters>[^\W\d_]{0,12})0*(?P<digits>\d{1,128})")
_JOINT = re.compile(r"(?<=[^\x00-\x7f])(?=[0-9])|(?<=[0-9])(?=[^\x00-\x7f])")
"""Where a script without spaces meets digits."""
_MARKS = split_words("dot at dash hyphen underscore plus hash slash")
"""Spoken names of the marks between the words of an identifier."""


def spell(text: str) -> list[str]:
    """Split a text into words, with spoken numbers as they would be typed and spoken marks left out.

    >>> (
    ...     spell("call four one five, 555 twenty-five"),
    ...     spell("jo dot li at example dot com"),
    ...     spell("\N{ARABIC-INDIC DIGIT FOUR}2"),
    ... )
    (['call', '4', '1', '5', '555', '25'], ['jo', 'li', 'example', 'com'], ['42'])
    """
    if not text.isascii():
        text = "".join([str(unicodedata.decimal(c, c)) for c in unicodedata.normalize("NFKC", text)])
        text = _JOINT.sub(" ", text)
    found: list[str] = []
    tens = False
    for word in split_tokens(text):
        number = SMALL.get(word)
        if number is None and word in _MARKS:
            continue
        if tens and number is not None and 0 < number < 10:
            found[-1] = str(int(found[-1]) + number)
        else:
            found.append("0" if word == "oh" else word if number is None else str(number))
        tens = number is not None and number >= 20
    return found


class _SpeltText(NamedTuple):
    """A text as typed, without spaces; `ends` are the offsets where a word ends, including 0."""

    place: SourcePlace
    joined: str
    ends: frozenset[int]

    def holds(self, letters: str) -> bool:
        """Whether some whole words make up these letters when joined."""
        at = self.joined.find(letters)
        for _ in range(_MAX_FOUND):
            if at < 0:
                return False
            if at in self.ends and at + len(letters) in self.ends:
                return True
            at = self.joined.find(letters, at + 1)
        return False


class _Digits(NamedTuple):
    """The digits of adjacent words, without leading zeros, and the letters before them."""

    digits: str
    letters: str
    place: SourcePlace

    def is_kin(self, digits: str, letters: str) -> bool:
        """Whether an identifier may be this one padded with zeros, or with a prefix added or left out."""
        if letters != self.letters and ((letters and self.letters) or len(digits) < _MIN_DIGITS):
            return False
        if digits == self.digits:
            return True
        short, long = sorted((digits, self.digits), key=len)
        return len(short) >= _PHONE and long.endswith(short) and len(long) - len(short) <= _MAX_PREFIX


class SpeltIndex:
    """Texts as typed, searched only for an identifier that is found nowhere as it is."""

    def __init__(self, places: Iterable[SourcePlace]) -> None:
        """The texts of these places, whole or flat."""
        self._words = [(place, spell(place.text)) for place in places]
        self._texts = [_SpeltText(place, "".join(words), _list_ends(words)) for place, words in self._words]

    @property
    def size(self) -> int:
        """The number of texts that a search scans."""
        return len(self._texts)

    @lazy
    def too_long(self) -> bool:
        """Whether there are too many words with digits to join them."""
        return sum(_has_digit(word) for _, words in self._words for word in words) > MAX_WORDS

    @lazy
    def _kin(self) -> Mapping[str, list[_Digits]]:
        found: defaultdict[str, list[_Digits]] = defaultdict(list)
        for place, words in () if self.too_long else self._words:
            for n, word in enumerate(words):
                for one in _join_digits(words[n : n + _MAX_JOINED], place) if _has_digit(word) else ():
                    found[one.digits[-_PHONE:]].append(one)
        return found

    def find(self, value: str, before: int) -> SourcePlace | None:
        """Find whole words before a message that make up this identifier when joined."""
        letters = "".join(spell(value))
        return next((t.place for t in self._texts if t.place.message < before and t.holds(letters)), None)

    def find_kin(self, value: str, before: int) -> SourcePlace | None:
        """Find the digits of an identifier before a message: padded, prefixed or bare."""
        digits, letters = _split("".join(spell(value)))
        found = self._kin.get(digits[-_PHONE:], ())
        visible = (one for one in found if one.place.message < before and one.is_kin(digits, letters))
        return next((one.place for one in visible), None)


def _list_ends(words: Iterable[str]) -> frozenset[int]:
    return frozenset(accumulate((len(word) for word in words), initial=0))


def _has_digit(word: str) -> bool:
    return any(c.isdigit() for c in word)


def _split(word: str) -> tuple[str, str]:
    """Split a word into digits without leading zeros and the letters before them; ("", "") if it has another form."""
    match = _PREFIXED.fullmatch(word)
    return ("", "") if match is None else (match["digits"], match["letters"])


def _join_digits(words: Sequence[str], place: SourcePlace) -> Iterator[_Digits]:
    joined = ""
    for word in words:
        if not _has_digit(word) or len(joined) > 2 * _MAX_FOUND:
            break
        joined += word
        digits, letters = _split(joined)
        if digits:
            yield _Digits(digits, letters, place)
