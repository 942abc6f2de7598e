"""What a text claims: its quantities, each with the words and the line it stands in."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import islice, takewhile
from typing import Literal, NamedTuple

from service.core.evidence.reading.quantities import MAX_TEXT, Quantity
from service.core.evidence.reading.stated import find_stated
from service.core.evidence.reading.words import split_tokens, split_words, stem_word
from service.core.evidence.sentences.tables import find_head, find_heads

BEFORE, AFTER = 8, 5
"""Words of a claim's surroundings that may name its field."""
REACH = 400
"""Characters of a sentence before and after a claim."""
MAX_BESIDE = 16
"""Quantities before a claim that may go into it."""
GAP = 80
"""Characters between a label and its value; more of them say something."""

_SENTENCE = re.compile(
    r"(?:(?<![ap]\.m)(?<!\bSt)(?<!\b[DM]r)(?<!\bNo)[.!?]+(?=[\s*_)\"]|$)|(?<=[ap]\.m)\.(?= [A-Z](?!\w+ time\b))|\n|;)"
)
_CLAUSE = re.compile(r"[,;:()\[\]|\u2013\u2014]|\s-\s|\b(?:while|whereas|but)\b")
PRONOUN = re.compile(r"\W*(?:it|its|he|she|his|her|this|that(?! of))\b", re.IGNORECASE)
"""How a sentence begins that speaks of what the one before it does."""
_HYPHEN = re.compile(r"^ ?- ?(?=[a-z])")
"""Of `18-point` and `18 - point`."""
_LABEL = re.compile(r"[\s>*_#`\d.)•-]*+([^:\n]{2,60})(?::|\s[-\u2013\u2014]\s)")
ABOUT = split_words("about around approximately roughly nearly almost approx circa estimated some close")
OVER = split_words("over above exceeding exceed exceeds")
UNDER = split_words("under below")
LOOSE = split_words("minimum maximum max min least most up more less fewer than within capped limit respectively")
"""Words that make of a number a bound."""
MADE = split_words(
    "average averaging averaged mean total sum difference combined overall net additional extra saved saving save remaining "
    "left increase decrease change rise drop off discount refund refunded by per each every double half twice altogether "
    "margin lead current currently deducted both summary outgoing new instead original originally previous previously fee "
    "again another other only first last rest further yesterday earlier prior formerly ago still"
)
"""Words for what is worked out, or is no longer or not yet so: no field holds it as it is said."""
NEGATED = split_words(
    "not never no non isn aren wasn weren hasn haven didn doesn neither nor without cannot missing lacks lacking"
)
DENYING = NEGATED | split_words("no none nobody nothing")
_ASIDE = re.compile(
    r"\b(?i:after|before|near|next to|besides?|unlike|except(?: for)?|instead of|than|without|against|versus|vs\.?"
    r"|following|apart from)[\s*_]+(?i:the\s)?(?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)[A-Z]"
)
"""A name by which something else is spoken of: `the flight after HAT069 costs $100`."""
AT_LARGE = split_words("whose any anything anyone whoever whichever whenever when every always")
"""Words of what holds in general, and of no record."""
COMPARING = split_words("more less than higher lower fewer greater") | OVER | UNDER
"""Words that hold a number against another."""
MAYBE = split_words(
    "if would could should might unless suppose please whether typically usually generally example assume "
    "can cannot need let want policy eligible allow allowed require requires"
)
"""Words of what is not stated as it is."""
_SUPPOSING = split_words(
    "if unless suppose please whether example assume should might let want need policy eligible require requires"
)
"""Of these those that suppose or wish; the others tell of what can be."""
FEELS = split_words("feel feels feeling looks sounds seems")
"""Before `like` words of no wish."""


LINKS = split_words(
    "is was are were of at be being stand stood stands sits currently now equal equals as a an the usd priced costs cost "
    "measured reached reaches reaching hit hits has have had with shows showing for s your its their his her will expected"
)
"""Words that may stand between a field's name and its value."""
RANGES = split_words(
    "ranging range ranges from between varying vary varies fluctuating fluctuate high low highest lowest maximum minimum "
    "max min up down peak peaking peaked to and will be expected go going dropping dipping falling rising climbing span spanning"
)
"""Words that may stand there where the value is an end of a range."""
LIMITED = split_words(
    "monday tuesday wednesday thursday friday saturday sunday morning afternoon evening night day daytime today tomorrow "
    "midday noon midnight overnight weekend early late later beginning start end mid during initially then after before "
    "until by first second third fourth fifth final half period most mostly other others some"
)
"""Words that speak of a part of what is told."""
HIGHEST = split_words("highest maximum max peak peaking warmest hottest top strongest most high")
LOWEST = split_words("lowest minimum min coldest coolest weakest least low")
ENDS = HIGHEST | LOWEST | RANGES
"""Words of what is told as the end of a range."""


class Claim(NamedTuple):
    """A quantity that a text states, and what tells of which field of what it is meant."""

    quantity: Quantity
    sentence: str
    label: tuple[str, ...]
    """Stems of the words around it, up to the next quantities."""
    exact: bool
    """Whether the label is one: `Price: $5`."""
    plain: bool
    """Whether the sentence states a thing as it is: no question, condition, wish or policy."""
    line_start: int
    sentence_start: int
    left: tuple[str, ...] = ()
    """Stems of the clause before it."""
    right: tuple[str, ...] = ()
    """Stems of the clause after it."""
    composite: bool = False
    """Whether it is a part of something else: `2-1`, `23/24`, an ordinal."""
    extreme: Literal["highest", "lowest"] | None = None
    """Whether it is stated as the end of a range."""
    dates: tuple[Quantity, ...] = ()
    """The dates in its sentence."""
    context: str = ""
    """The line up to its sentence, the last 800 characters."""
    beside: frozenset[Decimal] = frozenset()
    """The numbers of its sentence, and those said not long before."""
    order: tuple[int, int] = (0, 1)
    """Which of how many quantities of its kind it is in its sentence."""

    @property
    def words(self) -> frozenset[str]:
        """The label's words."""
        return frozenset(self.label)


def sets_aside(text: str) -> bool:
    """Whether a text names what it does not speak of.

    >>> sets_aside("The flight after HAT069"), sets_aside("After that HAT069")
    (True, False)
    """
    return _ASIDE.search(text) is not None


def find_claims(text: str, quantities: Sequence[Quantity] | None = None) -> list[Claim]:
    """The quantities of a text as claims, in order; of its first 64,000 characters. They are found, if they are not given.

    >>> [(str(c.quantity.value), c.label) for c in find_claims("The balance is $124, with 3 seats left.")]
    [('124', ('the', 'balance', 'is')), ('3', ('with', 'seat', 'left'))]
    """
    found = find_stated(text) if quantities is None else quantities
    text = text[:MAX_TEXT]
    ends = [match.span() for match in _SENTENCE.finditer(text)]
    heads = find_heads(text)
    return [_build_claim(text, found, n, ends, heads) for n in range(len(found))]


def split_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where each sentence, line or part before a semicolon begins and ends."""
    at = 0
    for match in _SENTENCE.finditer(text):
        if match.start() > at:
            yield at, match.start() + (match.group()[:1] == "?")
        at = match.end()
    if at < len(text):
        yield at, len(text)


def _build_claim(
    text: str, found: Sequence[Quantity], n: int, ends: Sequence[tuple[int, int]], heads: Mapping[int, list[str]]
) -> Claim:
    quantity = found[n]
    start, end = _find_sentence(ends, quantity, len(text))
    line = text.rfind("\n", 0, quantity.start) + 1
    sentence = text[start:end]
    head = find_head(text, line, quantity.start, heads)
    if head is not None and "%" in head and quantity.kind == "number":
        quantity = quantity._replace(kind="percent")
    named = _LABEL.match(text, line, quantity.start)
    exact = head is not None or (named is not None and not _has_words_between(text, found, n, named.end()))
    left, right = ([], []) if head is not None else _split_sides(text, found, n, start, end)
    label = [*left[-BEFORE:], *right]
    if exact:
        label = split_tokens(head if head is not None else named.group(1) if named is not None else "")
    return Claim(
        quantity,
        sentence,
        tuple(stem_word(word) for word in label if word not in ("degree", "degrees")),
        exact,
        _is_plain(text, start, end),
        line,
        start,
        tuple(map(stem_word, left)),
        tuple(map(stem_word, right)),
        _is_composite(text, quantity),
        _find_extreme(text, found, n, start),
        tuple(_iter_dates(found, n, start, end)),
        text[max(line, start - 800) : start],
        frozenset(_iter_beside(found, n, end)),
        _find_order(found, n, start, end),
    )


def _iter_beside(found: Sequence[Quantity], n: int, end: int) -> Iterator[Decimal]:
    near = [*found[max(0, n - MAX_BESIDE) : n], *takewhile(lambda q: q.start < end, found[n + 1 : n + MAX_BESIDE])]
    return (quantity.number for quantity in near if quantity.number is not None)


def _find_order(found: Sequence[Quantity], n: int, start: int, end: int) -> tuple[int, int]:
    kind = found[n].kind
    before = [q for q in found[max(0, n - MAX_BESIDE) : n] if q.kind == kind and q.start >= start]
    after = [q for q in found[n + 1 : n + MAX_BESIDE] if q.kind == kind and q.start < end]
    return len(before), len(before) + 1 + len(after)


def _iter_dates(found: Sequence[Quantity], n: int, start: int, end: int) -> Iterator[Quantity]:
    first = n
    while first and found[first - 1].start >= start:
        first -= 1
    return (q for q in takewhile(lambda q: q.start < end, islice(found, first, None)) if q.kind == "date")


def _is_composite(text: str, quantity: Quantity) -> bool:
    if re.search(r"\d(?:st|nd|rd|th)$", quantity.text):
        return True
    before, after = text[max(0, quantity.start - 5) : quantity.start], text[quantity.end : quantity.end + 5]
    return bool(
        re.search(r"(?:[-\u2013/x\xd7+.]|[-\u2013]\s?of[\s-]*)\s?$", before)
        or re.match(r"\s?[-\u2013/x\xd7+]\s?(?:\d|of)|'|\.\s?[a-z]|\+", after)
    )


_MINUTES = re.compile(r"(?<=\d)\s?min\b")
"""Of `8 min`, which is no least."""


def _find_extreme(text: str, found: Sequence[Quantity], n: int, start: int) -> Literal["highest", "lowest"] | None:
    """`from 3 to 9`, `a high of 9`, `the lowest price is 3`."""
    before = split_tokens(text[max(start, found[n].start - 60) : found[n].start])
    after = split_tokens(text[found[n].end : found[n].end + 8])
    if before[-1:] in (["from"], ["between"]) and after[:1] in (["to"], ["and"]):
        return None if n + 1 < len(found) and _falls(found[n], found[n + 1]) else "lowest"
    if n and split_tokens(text[found[n - 1].end : found[n].start]) in (["to"], ["and"]):
        first = split_tokens(text[max(start, found[n - 1].start - 20) : found[n - 1].start])
        return "highest" if first[-1:] in (["from"], ["between"]) and not _falls(found[n - 1], found[n]) else None
    clause = _find_last_clause(text[max(start, found[n].start - 60) : found[n].start])
    near = set(split_tokens(_MINUTES.sub(" minutes", clause))[-6:])
    if near & HIGHEST and not near & LOWEST:
        return "highest"
    return "lowest" if near & LOWEST and not near & HIGHEST else None


def _falls(one: Quantity, other: Quantity) -> bool:
    """Whether `from 9 to 3` tells of a fall and not of a range."""
    return one.number is not None and other.number is not None and one.number > other.number


def _split_sides(text: str, found: Sequence[Quantity], n: int, start: int, end: int) -> tuple[list[str], list[str]]:
    """The words before and after in the same clause, up to the next numbers; names with digits are words."""
    quantity = found[n]
    if n and split_tokens(text[found[n - 1].end : quantity.start]) in (["to"], ["and"]) and found[n - 1].start >= start:
        return _split_sides(text, found[:n], n - 1, start, quantity.start)[0], split_tokens(
            _find_first_clause(text[quantity.end : end])
        )[:AFTER]
    left = max([start, *(q.end for q in found[max(0, n - 4) : n] if q.kind != "identifier")])
    right = min([end, *(q.start for q in found[n + 1 : n + 4] if q.kind != "identifier")])
    return (
        split_tokens(_find_last_clause(text[left : quantity.start]))[-12:],
        split_tokens(_find_first_clause(_drop_hyphen(text, quantity, right)))[:AFTER],
    )


def _drop_hyphen(text: str, quantity: Quantity, end: int) -> str:
    """What follows a number; of `18-point` the point too, but no compound such as `three-point`."""
    after = text[quantity.end : end]
    return _HYPHEN.sub(" ", after) if quantity.text[-1:].isdigit() else after


def _has_words_between(text: str, found: Sequence[Quantity], n: int, label_end: int) -> bool:
    """Whether words that say something stand between a line's label and the quantity."""
    return found[n].start - label_end > GAP or bool(set(split_tokens(text[label_end : found[n].start])) - LINKS - ABOUT)


def _find_sentence(ends: Sequence[tuple[int, int]], quantity: Quantity, length: int) -> tuple[int, int]:
    """The sentence around a quantity, at most 400 characters either side of it. `ends` are the places where one ends."""
    n = bisect_right(ends, (quantity.start, quantity.start))
    start = ends[n - 1][1] if n else 0
    after = next((end for begin, end in islice(ends, n, None) if begin >= quantity.end), length)
    return max(start, quantity.start - REACH), min(after, quantity.end + REACH)


def _is_plain(text: str, start: int, end: int) -> bool:
    sentence = text[start:end]
    return "?" not in sentence[-2:] and not is_open(sentence)


@lru_cache(maxsize=64)
def is_supposed(sentence: str) -> bool:
    """Whether a sentence only supposes or wishes.

    >>> is_supposed("If it rains, it costs $5."), is_supposed("It may cost $5.")
    (True, False)
    """
    words = set(split_tokens(sentence))
    return bool(_SUPPOSING & words) or ("like" in words and not FEELS & words)


@lru_cache(maxsize=64)
def is_open(sentence: str) -> bool:
    """Whether a sentence only supposes, wishes or allows.

    >>> is_open("It may rain."), is_open("It rains in May.")
    (True, False)
    """
    words = split_tokens(sentence)
    wished = "like" in words and not FEELS & set(words)
    return wished or bool(MAYBE & set(words)) or " may " in sentence  # the month has a capital


def _find_last_clause(text: str) -> str:
    return _CLAUSE.split(text)[-1]


def _find_first_clause(text: str) -> str:
    return _CLAUSE.split(text)[0]


def iter_lines_above(text: str, line_start: int, limit: int = 12) -> Iterator[str]:
    """The lines before a line, nearest first."""
    end = line_start - 1
    while limit and end > 0:
        start = text.rfind("\n", 0, end) + 1
        yield text[start:end]
        end, limit = start - 1, limit - 1
