"""Measure how similar two texts are, from 0 to 1."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from math import fsum, log, sqrt
from typing import Literal
from unicodedata import normalize

from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein

Metric = Literal["cosine", "arcade_cosine", "levenshtein", "token_set"]

MAX_COMPARED_CHARS = 5_000
"""The longest text compared, in characters: the time of an edit distance grows with the product of the lengths."""

MAX_CACHED_CHARS = 1_000
"""Up to this length, the tokens of a text are cached."""

# Scripts written without spaces, where a character is about a word: Han, Hiragana, Katakana.
_IDEOGRAPHS = "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af"
_TOKEN = re.compile(rf"[{_IDEOGRAPHS}]|[^\W{_IDEOGRAPHS}]+")
_ARCADE_TOKEN = re.compile(r"\b\w\w+\b")
_RARE = log(3 / 2) + 1  # the smooth inverse document frequency of a token in one of two texts; in both it is 1


def cosine(a: str, b: str) -> float:
    """Compute the cosine of the TF-IDF vectors of two texts, over these two texts alone.

    Smooth inverse document frequency ln((1 + n) / (1 + df)) + 1 with n = 2; case is ignored. Unlike in the usual tokenizer, a
    single character is a token, so "3 PM" is not "4 PM", and scripts without spaces are split into characters.

    >>> round(cosine("meeting at 3 PM", "Meeting at 4 pm"), 6), cosine("会議は三時", "会議は四時") < 1.0
    (0.602975, True)
    """
    return _compute_cosine(a, b, _count_tokens(_TOKEN, a.casefold()), _count_tokens(_TOKEN, b.casefold()))


def arcade_cosine(a: str, b: str) -> float:
    """Compute the similarity of Arcade's SimilarityCritic: the cosine of scikit-learn's default TF-IDF vectors of the two texts.

    Tokens are runs of two or more word characters, so single letters and digits do not count.

    >>> round(arcade_cosine("hello world", "hello there"), 6), arcade_cosine("meeting at 3 PM", "meeting at 4 PM")
    (0.336097, 1.0)
    """
    return _compute_cosine(a, b, _count_tokens(_ARCADE_TOKEN, a.lower()), _count_tokens(_ARCADE_TOKEN, b.lower()))


def _count_tokens(token: re.Pattern[str], text: str) -> Counter[str]:
    return _count_tokens_cached(token, text) if len(text) <= MAX_CACHED_CHARS else Counter(token.findall(text))


@lru_cache(maxsize=256)  # where many texts are compared with many, each is read many times
def _count_tokens_cached(token: re.Pattern[str], text: str) -> Counter[str]:
    return Counter(token.findall(text))


def _compute_cosine(a: str, b: str, x: Counter[str], y: Counter[str]) -> float:
    if not a.strip() or not b.strip():
        return float(a.strip() == b.strip())
    if not x and not y:
        return float(a == b)
    common = x.keys() & y.keys()
    dot = fsum(x[token] * y[token] for token in common)
    return min(1.0, dot / sqrt(_sum_squares(x, common) * _sum_squares(y, common))) if common else 0.0


def _sum_squares(counts: Counter[str], common: set[str]) -> float:
    """Return the squared length of the weighted vector; fsum ignores the order of tokens, so equal bags give exactly 1.0."""
    return fsum((n if token in common else n * _RARE) ** 2 for token, n in counts.items())


def levenshtein(a: str, b: str) -> float:
    """Compute 1 minus the edit distance as a share of the longer text; two empty texts are 1.

    >>> levenshtein("abcd", "abxd"), levenshtein("", "")
    (0.75, 1.0)
    """
    return Levenshtein.normalized_similarity(a, b)


def token_set(a: str, b: str) -> float:
    """Compute rapidfuzz's token set ratio / 100: order and repetition do not count; a text with all words of the other is 1.

    >>> token_set("new york city", "city of new york"), token_set("a", "")
    (1.0, 0.0)
    """
    return fuzz.token_set_ratio(a, b) / 100


METRICS: dict[Metric, Callable[[str, str], float]] = {
    "cosine": cosine,
    "arcade_cosine": arcade_cosine,
    "levenshtein": levenshtein,
    "token_set": token_set,
}


def measure_similarity(a: str, b: str, metric: Metric) -> float:
    """Measure the similarity by a metric. Equal texts, and two blank ones, are 1; a blank text and another are 0.

    Texts that differ only in how Unicode composes their characters are equal; Arcade's metric compares them as they are.
    """
    if metric != "arcade_cosine":
        a, b = normalize("NFC", a), normalize("NFC", b)
    if a == b:
        return 1.0
    if not a.strip() or not b.strip():
        return float(a.strip() == b.strip())
    return min(1.0, max(0.0, METRICS[metric](a, b)))
