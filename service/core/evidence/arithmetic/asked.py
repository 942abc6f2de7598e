"""Tell whether words call for a computed value: a total, a difference, a share."""

from __future__ import annotations

import re

from service.core.evidence.arithmetic.holding import DIFFERENCE, SUM
from service.core.evidence.reading.words import split_tokens, split_words
from service.core.evidence.sentences.claims import MADE
from service.core.evidence.sentences.mentions import Clause, ClauseMention, find_words

CHANGED = split_words("by up down rose fell grew dropped")
_ASKING = SUM | DIFFERENCE | MADE | CHANGED - {"by"} | split_words("gained lost added gains loses drops adds")
_SIGNS = re.compile(r"[=\u00d7]|[\d)] ?\+ ?[^\s\d]?\d")
_NO_COMPARATIVES = split_words(
    "after other under over per number order water either whether user offer never later member paper power center former "
    "together altogether another rather however september october november december summer winter dinner letter server "
    "printer transfer weather quarter customer player passenger folder computer"
)
"""Words that end in `er` but are not comparatives."""
_APART = split_words("more less fewer ahead apart behind below above up down short over under")
_LEADS = split_words("exceed exceeds lead leads won win beat ahead")


def asks_difference(mention: ClauseMention, clause: Clause) -> bool:
    """Whether a mention states the difference of two values: `$5 cheaper`, `exceeds it by $5`."""
    at, end = mention.start - clause.sentence_start, mention.end - clause.sentence_start
    first = next(iter(split_tokens(clause.sentence[end : end + 30])), "")
    before = split_tokens(clause.sentence[max(0, at - 25) : at])
    comparative = first.endswith("er") and first not in _NO_COMPARATIVES and len(first) > 4
    return comparative or first in _APART or (before[-1:] == ["by"] and bool(_LEADS & {*before}))


def asks_sum(clause: Clause) -> bool:
    """Whether a clause's sentence mentions a total."""
    return bool(SUM - {"all", "both", "overall"} & find_words(clause.sentence))


def is_worked_out(clause: Clause) -> bool:
    """Whether the words of the clause itself mention a computed value."""
    return bool(_ASKING & find_words(clause.text))


_WORKING = split_words(
    "half twice double doubled third quarter share average averaged averages mean per each times every left still short would "
    "come comes came make makes making leave leaves bring brings without with plus minus if since to from for need needs spare "
    "above below under over past missing remain remains unspent against worth so receive receives unused due"
)
"""Words that often accompany computed values, but have other uses too."""


def asks_result(sentence: str) -> bool:
    """Whether a sentence may state a computed value, judging by its words, a comparative or a sign."""
    words = split_tokens(sentence)
    return (
        "%" in sentence
        or not (_ASKING | _WORKING).isdisjoint(words)
        or any(len(word) > 4 and word.endswith("er") and word not in _NO_COMPARATIVES for word in words)
        or _SIGNS.search(sentence) is not None
    )


_ENGLISH = split_words("the a of and to is are in on for at with you your it that this was from has have be by")
_MIN_WORDS, _MIN_SHARE = 8, 0.12


def is_english(text: str) -> bool:
    """Whether a text may be English; one of a few words always may.

    >>> is_english("The first show is on at half past seven in the north hall."), is_english("Total: $5")
    (True, True)
    >>> is_english("Der erste Flug kostet 214,50 Euro und dauert zwei Stunden länger.")
    False
    """
    words = [word for word in split_tokens(text) if word.isalpha()]
    return len(words) < _MIN_WORDS or sum(word in _ENGLISH for word in words) >= _MIN_SHARE * len(words)
