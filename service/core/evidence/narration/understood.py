"""Measure how much of a clause is understood: whether a finding rests on all that the clause says.

A value that differs from a field's proves nothing if other words qualify it: `the usual fee`, `$40 without the deposit`,
`4 of 9 moves`. So only a clause in which every word is read proves a contradiction, and a suspicion is dropped if too
many words are not read.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from service.core.evidence.facts.entities import MAX_INSIDE, MAX_NAME_CHARS
from service.core.evidence.facts.fact_index import FactIndex
from service.core.evidence.facts.facts import Fact, FactRecord
from service.core.evidence.narration.verdicts import OPEN, Ruling
from service.core.evidence.reading import numbers
from service.core.evidence.reading.dates import MONTHS
from service.core.evidence.reading.units import UNITS
from service.core.evidence.reading.words import abbreviates, find_root, split_tokens, split_words, stem_word
from service.core.evidence.sentences.claims import (
    ABOUT,
    AT_LARGE,
    COMPARING,
    DENYING,
    LINKS,
    LOOSE,
    MADE,
    MAYBE,
)
from service.core.evidence.sentences.mentions import Clause, find_words

MAX_UNREAD = 1
"""Most unread words of a clause that still supports a suspicion."""
MAX_WORDS = 60
"""A clause with more different words than this is not understood."""
_NUMBERS = re.compile(numbers.WORDS)
NEUTRAL = (
    LINKS
    | frozenset(MONTHS)
    | split_words(
        "a an the this that these those it its they them their he him his she her hers i me my we us our you your "
        "is are was were am be been being has have had having do does did s t re ve ll d m "
        "of in on at for from to with as into via and or so here there now currently today also just only then which who "
        "whose what where when please yes ok okay sure great good news thanks well unfortunately however "
        "comes come came coming takes take took goes go went gets get got gives gave makes made runs ran holds hold held "
        "shows show stands stood sits sat lists listed says said reads tells told keeps kept looks look found find see seen "
        "expect reported respectively "
        "adds added adding records recorded posts posted tallied scored collected registered contributed provides provided "
        "providing finishes finished ends ended "
        "cost costs costing worth priced weighs weighed lasts lasted will expected set scheduled usd eur gbp utc am pm o clock "
        "dollar dollars euro euros pound pounds percent"
    )
)
"""Words that do not change what a clause says."""
_NORMS = split_words("usual usually normal normally typical typically recommended ideal ideally")
"""Words for what holds in general rather than here."""
_CHANGING = (
    ABOUT
    | MADE
    | LOOSE
    | COMPARING
    | DENYING
    | AT_LARGE
    | MAYBE
    | _NORMS
    | split_words(
        "after before until since next ago beyond past out up down plus minus without except besides instead too enough "
        "almost already yet still"
    )
)
"""Words that turn a value into another one: beside them, a value that differs is no mistake."""


class Understanding:
    """The clauses of one text, and which words of each are read."""

    def __init__(self, text: str, clauses: Sequence[Clause], fact_index: FactIndex) -> None:
        self._text = text
        self._clauses = clauses
        self._starts = [clause.start for clause in clauses]
        self._index = fact_index

    def weigh(self, start: int, end: int, ruling: Ruling) -> Ruling:
        """Refine the ruling on a place: unread words beside it turn a contradiction into a suspicion or leave it open."""
        if ruling.verdict not in ("contradicted", "suspected", "unsupported") or ruling.words is None:
            return ruling
        holdings = self._index.holdings
        facts = holdings.once(Understanding, lambda: {fact.pointer: fact for fact in holdings.facts})
        unread = self._list_unread(start, end, facts.get(ruling.source or "")) - ruling.words
        if ruling.verdict == "unsupported":
            return OPEN._replace(source=ruling.source) if unread & (_NORMS | COMPARING) else ruling
        if unread & _CHANGING or (len(unread) > MAX_UNREAD and not self._names_subject(start)):
            return OPEN._replace(source=ruling.source)
        return ruling._replace(verdict="suspected") if unread else ruling

    def _names_subject(self, start: int) -> bool:
        """Whether the clause of a claim names the entity that it is about, so that a suspicion needs no further words."""
        at = bisect_right(self._starts, start) - 1
        return at >= 0 and self._clauses[at].sight == "here"

    def _list_unread(self, start: int, end: int, fact: Fact | None) -> set[str]:
        """Return the words around a claim that are not neutral and do not name the fact or its record."""
        at = bisect_right(self._starts, start) - 1
        if at < 0:
            return set()
        clause = self._clauses[at]
        known = {*self._iter_known(clause, fact)}
        field = {*fact.own, *fact.above, *self._index.tools.get(fact.step, ())} if fact is not None else set[str]()
        roots = {find_root(word) for word in field}
        words = self._find_words(at) - {*split_tokens(self._text[start:end])}
        if len(words) > MAX_WORDS:
            return {*words}
        unread = {word for word in words if not _is_read(word, known, field, roots)}
        return unread | _list_strange_heads(clause, start, field, roots)

    def _find_words(self, at: int) -> frozenset[str]:
        """Return the words of a clause and of the label before it."""
        words = find_words(self._clauses[at].text)
        return words | find_words(self._clauses[at - 1].text) if self._follows_label(at) else words

    def _follows_label(self, at: int) -> bool:
        if not at:
            return False
        before, clause = self._clauses[at - 1], self._clauses[at]
        return ":" in self._text[before.end : clause.start] and before.sentence_start == clause.sentence_start

    def _iter_known(self, clause: Clause, fact: Fact | None) -> Iterator[str]:
        """Yield the words that name the clause's subject, what else it says about it, and the captions of the fact."""
        for mention in clause.mentions:
            if mention.start in clause.named or mention.quantity is not None or mention.weekday:
                yield from {*split_tokens(mention.text)} - (_CHANGING if mention.entity is not None else frozenset())
            if mention.quantity is not None and mention.quantity.unit in UNITS:
                yield UNITS[mention.quantity.unit].dimension
        if fact is not None:
            yield from self._list_record_words(fact.record)
            yield from self._index.list_captions(fact)
            yield from self._iter_fields_said(clause, fact)

    def _list_record_words(self, record: FactRecord) -> frozenset[str]:
        """Return the words of a record and of those that contain it, computed once for all claims about it."""
        return self._index.holdings.once((Understanding, id(record)), lambda: frozenset(_iter_words_of(record)))

    def _iter_fields_said(self, clause: Clause, fact: Fact) -> Iterator[str]:
        """Yield the names of other fields, in the record or those that contain it, whose values the clause gives too."""
        chain, holdings = _list_chain(fact.record), self._index.holdings
        for mention in clause.mentions:
            values = mention.quantity.values if mention.quantity is not None else ()
            found = [one for value in values for one in holdings.by_value.get(value, ())[:MAX_INSIDE]]
            found += [name.fact for name in holdings.names.get(mention.words, ())[:MAX_INSIDE] if name.fact is not None]
            for one in found:
                if one is not fact and id(one.record) in chain:
                    yield from one.own


def _list_chain(record: FactRecord | None) -> dict[int, FactRecord]:
    found: dict[int, FactRecord] = {}
    while record is not None:
        found[id(record)] = record
        record = record.above
    return found


def _iter_words_of(record: FactRecord) -> Iterator[str]:
    """Yield the words of a record's short texts and names, and the names of the fields that identify it.

    Long texts are left out, since prose names nothing, and so are words that change a value, since they do so anywhere.
    """
    for each in _list_chain(record).values():
        for one in each.facts[:MAX_INSIDE]:
            if isinstance(one.value, str) and len(one.value) <= MAX_NAME_CHARS:
                yield from {*split_tokens(one.value)} - _CHANGING
            if any(held.kind == "identifier" for held in one.quantities):
                yield from one.own
        for name in each.called:
            yield from {*name.split()} - _CHANGING
        if each.collection is not None:
            yield from each.collection.own


def _list_strange_heads(clause: Clause, start: int, field: set[str], roots: set[str]) -> set[str]:
    """Return the words of a table column's head if none belongs to the field: the cell is then another value."""
    heads = {word for mention in clause.mentions if mention.start == start for word in mention.head}
    return (
        set() if not heads or any(_is_read(word, set(), field, roots, frozenset()) for word in heads) else {*heads, ""}
    )


def _is_read(word: str, known: set[str], field: set[str], roots: set[str], neutral: frozenset[str] = NEUTRAL) -> bool:
    if word in neutral or word in known or len(word) == 1 or any(c.isdigit() for c in word) or _NUMBERS.fullmatch(word):
        return True
    stem = stem_word(word)
    return stem in known or find_root(stem) in roots or any(abbreviates(short, stem) for short in field)
