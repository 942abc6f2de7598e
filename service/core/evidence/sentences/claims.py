"""Find the claims of a text: its quantities, each with the words around it and the line it is in."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import islice, takewhile
from typing import Literal, NamedTuple

from service.core.evidence.reading.quantities import MAX_TEXT, Quantity
from service.core.evidence.reading.stated import find_stated
from service.core.evidence.reading.words import split_tokens, split_words, stem_word
from service.core.evidence.sentences.tables import find_head, find_heads

LABEL_WORDS_BEFORE, LABEL_WORDS_AFTER = 8, 5
"""Most words before and after a claim that may name its field."""
SENTENCE_SIDE_CHARS = 400
"""Most characters of a sentence kept before and after a claim."""
MAX_BESIDE = 16
"""Quantities near a claim from which it may have been computed."""
LABEL_GAP_CHARS = 80
"""Most characters between a label and its value; a longer gap carries content of its own."""

_SENTENCE = re.compile(
    r"(?:(?<![ap]\.m)(?<!\bSt)(?<!\b[DM]r)(?<!\bNo)(?<!\bv)(?<!\bvs)[.!?]+(?=[\s*_)\"]|$)"
    r"|(?<=[ap]\.m)\.(?= [A-Z](?!\w+ time\b))|\n|;)"
)
_CLAUSE = re.compile(r"[,;:()\[\]|\u2013\u2014]|\s-\s|\b(?:while|whereas|but)\b")
PRONOUN = re.compile(r"\W*(?:it|its|he|she|his|her|this|that(?! of))\b", re.IGNORECASE)
"""Start of a sentence that continues the subject of the sentence before."""
_HYPHEN = re.compile(r"^ ?- ?(?=[a-z])")
"""The hyphen of `18-point` and `18 - point`."""
_LABEL = re.compile(r"[\s>*_#`\d.)•-]*+([^:\n]{2,60})(?::|\s[-\u2013\u2014]\s)")
ABOUT = split_words("about around approximately roughly nearly almost approx circa estimated some close")
OVER = split_words("over above exceeding exceed exceeds")
UNDER = split_words("under below")
LOOSE = split_words("minimum maximum max min least most up more less fewer than within capped limit respectively")
"""Words that turn a number into a bound."""
MADE = split_words(
    "average averaging averaged mean total sum difference combined overall net additional extra saved saving save remaining "
    "left increase decrease change rise drop off discount refund refunded by per each every double half twice altogether "
    "margin lead current currently deducted both summary outgoing new instead original originally previous previously fee "
    "again another other only first last rest further yesterday earlier prior formerly ago still"
)
"""Words for values that are computed, or that no longer or do not yet hold: no field has them as stated."""
NEGATED = split_words(
    "not never no non isn aren wasn weren hasn haven didn doesn neither nor without cannot missing lacks lacking"
)
DENYING = NEGATED | split_words("no none nobody nothing")
_ASIDE = re.compile(
    r"\b(?i:after|before|near|next to|besides?|unlike|except(?: for)?|instead of|than|without|against|versus|vs\.?"
    r"|following|apart from)[\s*_]+(?i:the\s)?(?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)[A-Z]"
)
"""A name that only locates what the text is about: `the flight after HAT069 costs $100`."""
AT_LARGE = split_words("whose any anything anyone whoever whichever whenever when every always")
"""Words of general statements, which are not about a record."""
COMPARING = split_words("more less than higher lower fewer greater versus vs") | OVER | UNDER
"""Words that compare one number with another."""
MAYBE = split_words(
    "if would could should might unless suppose please whether typically usually generally example assume "
    "can cannot need let want policy eligible allow allowed require requires"
)
"""Words of sentences that do not state a fact."""
_SUPPOSING = split_words(
    "if unless suppose please whether example assume should might let want need policy eligible require requires"
)
"""The subset that supposes or wishes; the others express possibility or habit."""
_FEELING = split_words("feel feels feeling looks sounds seems")
"""Words before `like` that express no wish."""


LINKS = split_words(
    "is was are were of at be being stand stood stands sits currently now equal equals as a an the usd priced costs cost "
    "measured reached reaches reaching hit hits has have had with shows showing for s your its their his her will expected"
)
"""Words that may come between a field's name and its value."""
RANGES = split_words(
    "ranging range ranges from between varying vary varies fluctuating fluctuate high low highest lowest maximum minimum "
    "max min up down peak peaking peaked to and will be expected go going dropping dipping falling rising climbing span spanning"
)
"""Words that may come there if the value is one end of a range."""
LIMITED = split_words(
    "monday tuesday wednesday thursday friday saturday sunday morning afternoon evening night day daytime today tomorrow "
    "midday noon midnight overnight weekend early late later beginning start end mid during initially then after before "
    "until by first second third fourth fifth final half period most mostly other others some"
)
"""Words that limit a statement to a part of the whole."""
HIGHEST = split_words("highest maximum max peak peaking warmest hottest top strongest most high")
LOWEST = split_words("lowest minimum min coldest coolest weakest least low")
ENDS = HIGHEST | LOWEST | RANGES
"""Words that mark a value as one end of a range."""


class Statement(NamedTuple):
    """A quantity, its sentence, and where that starts."""

    quantity: Quantity
    sentence: str
    sentence_start: int

    def list_beside(self, said: Sequence[Quantity]) -> Sequence[Quantity]:
        """Return those of a text's quantities that its sentence states, itself included."""
        first = bisect_left(said, self.sentence_start, key=_get_start)
        return said[first : bisect_left(said, self.sentence_start + len(self.sentence), key=_get_start)]


def _get_start(quantity: Quantity) -> int:
    return quantity.start


class Claim(NamedTuple):
    """A quantity that a text states, with the context that shows which field of which entity it is about."""

    quantity: Quantity
    sentence: str
    label: tuple[str, ...]
    """Stems of the words around it, up to the neighbouring quantities."""
    exact: bool
    """Whether the label is explicit: `Price: $5`, or the head of a table column."""
    plain: bool
    """Whether the sentence states a fact, and is no question, condition, wish or policy."""
    line_start: int
    sentence_start: int
    left: tuple[str, ...] = ()
    """Stems of the words of its clause before it."""
    right: tuple[str, ...] = ()
    """Stems of the words of its clause after it."""
    composite: bool = False
    """Whether it is part of a larger expression: `2-1`, `23/24`, an ordinal."""
    extreme: Literal["highest", "lowest"] | None = None
    """Which end of a range it is stated to be, if any."""
    dates: tuple[Quantity, ...] = ()
    """The dates in its sentence."""
    context: str = ""
    """Its line up to its sentence, at most the last 800 characters."""
    beside: frozenset[Decimal] = frozenset()
    """The other numbers of its sentence, and those shortly before it."""
    order: tuple[int, int] = (0, 1)
    """Its position, from 0, among the quantities of its kind in its sentence, and their number."""

    @property
    def statement(self) -> Statement:
        """The quantity in its sentence."""
        return Statement(self.quantity, self.sentence, self.sentence_start)

    @property
    def words(self) -> frozenset[str]:
        """The label's words as a set."""
        return frozenset(self.label)


def sets_aside(text: str) -> bool:
    """Whether a text contains a name that it is not about.

    >>> sets_aside("The flight after HAT069"), sets_aside("After that HAT069")
    (True, False)
    """
    return _ASIDE.search(text) is not None


def find_claims(text: str, quantities: Sequence[Quantity] | None = None) -> list[Claim]:
    """Return the quantities in the first 64,000 characters of a text as claims, in order. `quantities` saves finding them.

    >>> [(str(c.quantity.value), c.label) for c in find_claims("The balance is $124, with 3 seats left.")]
    [('124', ('the', 'balance', 'is')), ('3', ('with', 'seat', 'left'))]
    """
    found = find_stated(text) if quantities is None else quantities
    text = text[:MAX_TEXT]
    ends = [match.span() for match in _SENTENCE.finditer(text)]
    heads = find_heads(text)
    return [_build_claim(text, found, n, ends, heads) for n in range(len(found))]


def split_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Iterate over the start and end of each sentence; a line end or a semicolon ends one too."""
    at = 0
    for match in _SENTENCE.finditer(text):
        if match.group() != "\n" and text.startswith("|", text.rfind("\n", 0, match.start()) + 1):
            continue  # a row of a table is one sentence
        if match.start() > at:
            yield at, match.start() + (match.group()[:1] == "?")
        at = match.end()
    if at < len(text):
        yield at, len(text)


def _build_claim(
    text: str, quantities: Sequence[Quantity], n: int, ends: Sequence[tuple[int, int]], heads: Mapping[int, list[str]]
) -> Claim:
    quantity = quantities[n]
    start, end = _find_sentence(ends, quantity, len(text))
    line = text.rfind("\n", 0, quantity.start) + 1
    sentence = text[start:end]
    head = find_head(text, line, quantity.start, heads)
    if head is not None and "%" in head and quantity.kind == "number":
        quantity = quantity._replace(kind="percent")
    label_match = _LABEL.match(text, line, quantity.start)
    exact = head is not None or (
        label_match is not None and not _has_words_between(text, quantities, n, label_match.end())
    )
    left, right = ([], []) if head is not None else _split_sides(text, quantities, n, start, end)
    label = [*left[-LABEL_WORDS_BEFORE:], *right]
    if exact:
        label = split_tokens(head if head is not None else label_match.group(1) if label_match is not None else "")
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
        _find_extreme(text, quantities, n, start),
        tuple(_iter_dates(quantities, n, start, end)),
        text[max(line, start - 800) : start],
        frozenset(_iter_beside(quantities, n, end)),
        _find_order(quantities, n, start, end),
    )


def _iter_beside(quantities: Sequence[Quantity], n: int, end: int) -> Iterator[Decimal]:
    near = [
        *quantities[max(0, n - MAX_BESIDE) : n],
        *takewhile(lambda q: q.start < end, quantities[n + 1 : n + MAX_BESIDE]),
    ]
    return (quantity.number for quantity in near if quantity.number is not None)


def _find_order(quantities: Sequence[Quantity], n: int, start: int, end: int) -> tuple[int, int]:
    kind = quantities[n].kind
    before = [q for q in quantities[max(0, n - MAX_BESIDE) : n] if q.kind == kind and q.start >= start]
    after = [q for q in quantities[n + 1 : n + MAX_BESIDE] if q.kind == kind and q.start < end]
    return len(before), len(before) + 1 + len(after)


def _iter_dates(quantities: Sequence[Quantity], n: int, start: int, end: int) -> Iterator[Quantity]:
    first = n
    while first and quantities[first - 1].start >= start:
        first -= 1
    return (q for q in takewhile(lambda q: q.start < end, islice(quantities, first, None)) if q.kind == "date")


def _is_composite(text: str, quantity: Quantity) -> bool:
    if re.search(r"\d(?:st|nd|rd|th)$", quantity.text):
        return True
    before, after = text[max(0, quantity.start - 5) : quantity.start], text[quantity.end : quantity.end + 5]
    return bool(
        re.search(r"(?:[-\u2013/x\xd7+.]|[-\u2013]\s?of[\s-]*)\s?$", before)
        or re.match(r"\s?[-\u2013/x\xd7+]\s?(?:\d|of)|'|\.\s?[a-z]|\+", after)
    )


_MINUTES = re.compile(r"(?<=\d)\s?min\b")
"""The `min` of `8 min`, which means minutes, not minimum."""


def _find_extreme(text: str, quantities: Sequence[Quantity], n: int, start: int) -> Literal["highest", "lowest"] | None:
    """Return which end of a range a quantity is: `from 3 to 9`, `a high of 9`, `the lowest price is 3`."""
    before = split_tokens(text[max(start, quantities[n].start - 60) : quantities[n].start])
    after = split_tokens(text[quantities[n].end : quantities[n].end + 8])
    if before[-1:] in (["from"], ["between"]) and after[:1] in (["to"], ["and"]):
        return None if n + 1 < len(quantities) and _falls(quantities[n], quantities[n + 1]) else "lowest"
    if n and split_tokens(text[quantities[n - 1].end : quantities[n].start]) in (["to"], ["and"]):
        first = split_tokens(text[max(start, quantities[n - 1].start - 20) : quantities[n - 1].start])
        return (
            "highest"
            if first[-1:] in (["from"], ["between"]) and not _falls(quantities[n - 1], quantities[n])
            else None
        )
    clause = _find_last_clause(text[max(start, quantities[n].start - 60) : quantities[n].start])
    near = set(split_tokens(_MINUTES.sub(" minutes", clause))[-6:])
    if near & HIGHEST and not near & LOWEST:
        return "highest"
    return "lowest" if near & LOWEST and not near & HIGHEST else None


def _falls(one: Quantity, other: Quantity) -> bool:
    """Whether the numbers describe a fall, as in `from 9 to 3`, and not a range."""
    return one.number is not None and other.number is not None and one.number > other.number


def _split_sides(
    text: str, quantities: Sequence[Quantity], n: int, start: int, end: int
) -> tuple[list[str], list[str]]:
    """Return the words before and after in the same clause, up to the nearest numbers; identifiers count as words."""
    quantity = quantities[n]
    if (
        n
        and split_tokens(text[quantities[n - 1].end : quantity.start]) in (["to"], ["and"])
        and quantities[n - 1].start >= start
    ):
        return _split_sides(text, quantities[:n], n - 1, start, quantity.start)[0], split_tokens(
            _find_first_clause(text[quantity.end : end])
        )[:LABEL_WORDS_AFTER]
    left = max([start, *(q.end for q in quantities[max(0, n - 4) : n] if q.kind != "identifier")])
    right = min([end, *(q.start for q in quantities[n + 1 : n + 4] if q.kind != "identifier")])
    return (
        split_tokens(_find_last_clause(text[left : quantity.start]))[-12:],
        split_tokens(_find_first_clause(_drop_hyphen(text, quantity, right)))[:LABEL_WORDS_AFTER],
    )


def _drop_hyphen(text: str, quantity: Quantity, end: int) -> str:
    """Return the text after a number, without the hyphen of `18-point`; compounds such as `three-point` keep theirs."""
    after = text[quantity.end : end]
    return _HYPHEN.sub(" ", after) if quantity.text[-1:].isdigit() else after


def _has_words_between(text: str, quantities: Sequence[Quantity], n: int, label_end: int) -> bool:
    """Whether meaningful words come between a line's label and the quantity."""
    return quantities[n].start - label_end > LABEL_GAP_CHARS or bool(
        set(split_tokens(text[label_end : quantities[n].start])) - LINKS - ABOUT
    )


def _find_sentence(ends: Sequence[tuple[int, int]], quantity: Quantity, length: int) -> tuple[int, int]:
    """Return the bounds of the sentence around a quantity, at most 400 characters either side.

    `ends` are the spans of the marks that end sentences.
    """
    n = bisect_right(ends, (quantity.start, quantity.start))
    start = ends[n - 1][1] if n else 0
    after = next((end for begin, end in islice(ends, n, None) if begin >= quantity.end), length)
    return max(start, quantity.start - SENTENCE_SIDE_CHARS), min(after, quantity.end + SENTENCE_SIDE_CHARS)


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
    return bool(_SUPPOSING & words) or ("like" in words and not _FEELING & words)


@lru_cache(maxsize=64)
def is_open(sentence: str) -> bool:
    """Whether a sentence only supposes, wishes or allows.

    >>> is_open("It may rain."), is_open("It rains in May.")
    (True, False)
    """
    words = split_tokens(sentence)
    wished = "like" in words and not _FEELING & set(words)
    return wished or bool(MAYBE & set(words)) or " may " in sentence  # the month is capitalised


def _find_last_clause(text: str) -> str:
    return _CLAUSE.split(text)[-1]


def _find_first_clause(text: str) -> str:
    return _CLAUSE.split(text)[0]


def iter_lines_above(text: str, line_start: int, limit: int = 12) -> Iterator[str]:
    """Iterate over the lines before a line, nearest first."""
    end = line_start - 1
    while limit and end > 0:
        start = text.rfind("\n", 0, end) + 1
        yield text[start:end]
        end, limit = start - 1, limit - 1
