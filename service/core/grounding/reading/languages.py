"""The words by which values are read, in English, German, Spanish and French: `words.yaml`, read once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import cast

import yaml

Words = Mapping[str, str]
"""Words, separated by blanks, by what they have in common."""
_TEXT = files("service.core.grounding").joinpath("words.yaml").read_text("utf-8")
DATA = cast("Mapping[str, object]", yaml.load(_TEXT, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader)))  # noqa: S506 (it makes texts alone)
LANGUAGES = ("en", "de", "es", "fr")


def list_words(name: str, inner: str | None = None) -> frozenset[str]:
    """Return the words that the file has under a name, or a name within that."""
    words = DATA[name] if inner is None else cast("Words", DATA[name])[inner]
    return frozenset(cast("str", words).split())


def read_sizes(words: Words) -> dict[str, float]:
    """Return what each word stands for, of words by number."""
    return {word: float(size) for size, each in words.items() for word in each.split()}


def _read_by_language(name: str) -> dict[str, dict[str, float]]:
    return {language: read_sizes(words) for language, words in cast("Mapping[str, Words]", DATA[name]).items()}


_COMMON = {language: list_words("common", language) for language in LANGUAGES}
_WORD = re.compile(r"[^\W\d_]+")


def guess_language(text: str) -> str:
    """Guess the language of a text by its commonest words; English where nothing tells."""
    words = _WORD.findall(text[:4_000].lower())
    return max(LANGUAGES, key=lambda language: sum(map(_COMMON[language].__contains__, words)))


MONTHS = {name: n for line in cast("list[str]", DATA["months"]) for n, name in enumerate(line.split(), 1)}
NAMED_TIMES = {word: int(size) for word, size in read_sizes(cast("Words", DATA["named_times"])).items()}
MULTIPLIERS = _read_by_language("multipliers")
ARTICLES = list_words("articles")
SCALES = read_sizes(cast("Words", DATA["scales"]))
PARTS = read_sizes(cast("Words", DATA["parts"]))
HEDGES = list_words("hedges")


def _spell_small(language: str) -> Iterator[tuple[str, int]]:
    ones, tens = (cast("Words", DATA[name])[language].split() for name in ("small", "tens"))
    yield from zip(ones, range(20), strict=True)
    for n, ten in enumerate(tens, 2):
        yield ten, 10 * n
        for one in range(1, 20 if language == "fr" and n in (6, 8) else 10):
            value, word = 10 * n + one, ones[one]
            if language == "de":
                yield f"{'ein' if one == 1 else word}und{ten}", value
            elif language == "es":
                yield f"{ten} y {word}", value
            elif language == "fr":
                yield from ((f"{ten}-{word}", value), (f"{ten} {word}", value), (f"{ten} et {word}", value))
            else:
                yield from ((f"{ten}-{word}", value), (f"{ten} {word}", value), (f"{ten}{word}", value))
    yield from ((word, int(size)) for word, size in _read_by_language("numbers").get(language, {}).items())


@lru_cache(maxsize=4)
def list_number_words(language: str) -> dict[str, int]:
    """Return the words of a language for the numbers below a hundred; German ones up to 999, as one word."""
    words = dict(_spell_small(language))
    if language == "de":
        small = [*words.items(), ("ein", 1)]
        for prefix, times in [("", 1), *[(word, n) for word, n in small if n < 10]]:
            words |= {f"{prefix}hundert{word}": 100 * times + n for word, n in [("", 0), *small]}
        words |= {f"{word}tausend": 1000 * n for word, n in small if 0 < n < 100}
    return words
