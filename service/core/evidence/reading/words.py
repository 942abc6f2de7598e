"""Split text and names into words for comparison, ignoring case, punctuation and the way names are joined."""

from __future__ import annotations

import re
from functools import lru_cache

_TOKEN = re.compile(r"[^\W_]+")
_JOINT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def split_words(words: str) -> frozenset[str]:
    """Return the words of a text as a set, so that word lists can be written as text."""
    return frozenset(words.split())


def split_tokens(text: str) -> list[str]:
    """Return the words and numbers of a text, case-folded.

    >>> split_tokens("Mia_Li-3668, São Paulo!")
    ['mia', 'li', '3668', 'são', 'paulo']
    """
    return _TOKEN.findall(text.casefold())


def flatten_text(text: str) -> str:
    """Return the words with a space around each, so that one flat text matches in another only at word boundaries.

    >>> flatten_text("Flight HAT-069.")
    ' flight hat 069 '
    """
    return f" {' '.join(split_tokens(text))} "


@lru_cache(maxsize=4096)
def split_name(name: str) -> tuple[str, ...]:
    """Return the words of a key or a parameter name.

    >>> split_name("scheduledDepartureTime_est"), split_name("userID")
    (('scheduled', 'departure', 'time', 'est'), ('user', 'id'))
    """
    return tuple(split_tokens(_JOINT.sub(" ", name[:200])))


def stem_word(word: str) -> str:
    """Return a word without its plural ending.

    >>> stem_word("seats"), stem_word("prices"), stem_word("gas"), stem_word("cities"), stem_word("address")
    ('seat', 'price', 'gas', 'city', 'address')
    """
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


@lru_cache(maxsize=4096)
def find_root(word: str) -> str:
    """Return the part that the forms of a verb and its noun share.

    >>> find_root("downloaded"), find_root("downloads"), find_root("expires"), find_root("expiry"), find_root("seed")
    ('download', 'download', 'expir', 'expir', 'seed')
    """
    for end in ("ings", "ing", "ions", "ion", "ers", "ed", "er", "es", "e", "s", "y"):
        if word.endswith(end) and len(word) - len(end) > 3:
            return word[: -len(end)]
    return word


@lru_cache(maxsize=4096)
def stem_name(name: str) -> tuple[str, ...]:
    """Return the stems of a key's words."""
    return tuple(stem_word(word) for word in split_name(name))


def abbreviates(short: str, word: str) -> bool:
    """Whether a word of a key stands for a word of prose: the same, its start, or some of its letters in order (`PTS`, points).

    >>> (
    ...     abbreviates("temp", "temperature"),
    ...     abbreviates("reb", "rebound"),
    ...     abbreviates("pts", "point"),
    ...     abbreviates("to", "total"),
    ... )
    (True, True, True, False)
    """
    if short == word:
        return True
    if len(short) < 3 or len(word) <= len(short) or short[0] != word[0]:
        return False
    if word.startswith(short):
        return len(short) >= 4 or len(word) - len(short) < 9
    if len(short) > 4 or set(short[1:]) & set("aeiou") or len(word) > len(short) + 4:
        return False
    letters = iter(f"{word}s")
    return all(letter in letters for letter in short)
