"""Identifiers that were given in another form: spoken, spaced, padded with zeros, with or without a prefix."""

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
"""Words with digits that are put together."""
_MAX_JOINED = 12
"""Words with digits that may make one identifier."""
_MAX_FOUND = 64
_PHONE = 7
"""Digits at the end of which a prefix of a country may be left out."""
_MAX_PREFIX = 3
_MIN_DIGITS = 2
"""Digits of which a prefix may be left out."""
_PREFIXED = re.compile(r"(?P<letters>[^\W\d_]{0,12})0*(?P<digits>\d{1,128})")
_JOINT = re.compile(r"(?<=[^\x00-\x7f])(?=[0-9])|(?<=[0-9])(?=[^\x00-\x7f])")
"""Where a script without spaces meets digits."""
_MARKS = split_words("dot at dash hyphen underscore plus hash slash")
"""What is said for a mark between the words of an identifier."""


def spell(text: str) -> list[str]:
    """The words of a text as they are typed that were spoken.

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
    """A text as typed, without spaces; `ends` are the places where a word ends, 0 among them."""

    place: SourcePlace
    joined: str
    ends: frozenset[int]

    def holds(self, letters: str) -> bool:
        """Whether some whole words, put together, are these letters."""
        at = self.joined.find(letters)
        for _ in range(_MAX_FOUND):
            if at < 0:
                return False
            if at in self.ends and at + len(letters) in self.ends:
                return True
            at = self.joined.find(letters, at + 1)
        return False


class _Digits(NamedTuple):
    """The digits of words that stand together, without zeros before them, and the letters of these words."""

    digits: str
    letters: str
    place: SourcePlace

    def is_kin(self, digits: str, letters: str) -> bool:
        """Whether an identifier can be this one padded, or without the prefix of one of them."""
        if letters != self.letters and ((letters and self.letters) or len(digits) < _MIN_DIGITS):
            return False
        if digits == self.digits:
            return True
        short, long = sorted((digits, self.digits), key=len)
        return len(short) >= _PHONE and long.endswith(short) and len(long) - len(short) <= _MAX_PREFIX


class SpeltIndex:
    """Texts as typed. Looked at only where an identifier stands nowhere as it is."""

    def __init__(self, places: Iterable[SourcePlace]) -> None:
        """The texts of these places, whole or flat."""
        self._words = [(place, spell(place.text)) for place in places]
        self._texts = [_SpeltText(place, "".join(words), _list_ends(words)) for place, words in self._words]

    @property
    def size(self) -> int:
        """How many texts are looked at."""
        return len(self._texts)

    @lazy
    def too_long(self) -> bool:
        """Whether there are more words with digits than are put together."""
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
        """Where whole words before a message, put together, are this identifier."""
        letters = "".join(spell(value))
        return next((t.place for t in self._texts if t.place.message < before and t.holds(letters)), None)

    def find_kin(self, value: str, before: int) -> SourcePlace | None:
        """Where its digits stand before a message, padded, prefixed or bare."""
        digits, letters = _split("".join(spell(value)))
        found = self._kin.get(digits[-_PHONE:], ())
        visible = (one for one in found if one.place.message < before and one.is_kin(digits, letters))
        return next((one.place for one in visible), None)


def _list_ends(words: Iterable[str]) -> frozenset[int]:
    return frozenset(accumulate((len(word) for word in words), initial=0))


def _has_digit(word: str) -> bool:
    return any(c.isdigit() for c in word)


def _split(word: str) -> tuple[str, str]:
    """Its digits without zeros before them, and the letters before these; none where it is otherwise made."""
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
