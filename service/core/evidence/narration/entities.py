"""Find the record a claim is about, by the names and days in its sentence, its line, or the lines above."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from service.core.evidence.facts.facts import Fact, FactRecord
from service.core.evidence.reading.words import flatten_text, split_tokens, stem_word
from service.core.evidence.sentences.claims import PRONOUN, Claim, iter_lines_above
from service.core.evidence.sentences.occasions import DaySpan, find_days
from service.core.models.lazy import lazy

MAX_FAMILY = 2_000
"""A field with more values than this is left open."""
MAX_TESTS = 300_000
"""Lookups of names around the claims on one field; past this, which record is meant stays open."""
MAX_LINE = 400
"""Characters of a line that are searched for names."""
READINGS = ("measure", "percent")
"""Kinds for which the day alone picks the record: its other names are mostly readings themselves, like `clear sky`."""
_CHAIN = 6
_BESIDE = 2
"""Two names at most this many words apart are taken together."""
_BEHIND = re.compile(
    r"(?! ?[*_]*(?:[.,;:|\n]|and\b|or\b|while\b|but\b|then\b))[^\w$€£]{0,4}"
    r"((?:(?!(?:and|or|while|but|then|with|to)\b)[^\s.,;:()|]+[ ]?){1,4})"
)
"""What follows a claim and says what it is about: `$100 for HAT083`, `$100 (HAT083)`, `8 MP main camera`."""
_NEAR = 3
"""How many of the places searched for names are within the claim's sentence."""
_INLINE = re.compile(r"[,;(|] *[*_]*([A-Z][\w '&-]{1,40}?)[*_]*: *[*_]*$")
_ITEM = re.compile(r"\s+\S|\s*(?:[-*\u2022|]|\d+[.)])")
_END = re.compile(r"[.!?][\s*_)\"]+")


class NarrowedFacts(NamedTuple):
    """The facts of a field in the records a claim is about, beside `every` fact of the field.

    `settled`: it is clear which records those are. `dated`: the facts are all those of the days mentioned. `missing`: no
    fact is of those days.
    """

    facts: list[Fact]
    every: list[Fact]
    settled: bool
    dated: bool = False
    missing: bool = False
    is_far: bool = False
    """Whether only text before the sentence names the records, and no label or pronoun leads back to it."""

    @property
    def others(self) -> list[Fact]:
        """The facts of the field in all other records."""
        if len(self.facts) == len(self.every):
            return []
        own = {id(fact) for fact in self.facts}
        return [fact for fact in self.every if id(fact) not in own]


class Family:
    """The facts of one field, or of several that may be meant, indexed by the names of their records."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.facts = list(facts)
        self.tests = 0

    @property
    def is_indexed(self) -> bool:
        """Whether the index by name has been built."""
        return "by_name" in self.__dict__

    @lazy
    def by_name(self) -> dict[str, list[Fact]]:
        """The facts by every name of their records, except names that all of them share."""
        found: dict[str, list[Fact]] = {}
        for fact in self.facts:
            for name in dict.fromkeys(list_names(fact.record)):
                found.setdefault(name, []).append(fact)
        return {name: facts for name, facts in found.items() if len(facts) < len(self.facts)}

    @lazy
    def _by_last(self) -> dict[str, list[Fact]]:
        """The facts by the last word of a name, where only one name ends in it."""
        grouped = _group_by_last(self.by_name)
        return {last: self.by_name[names[0]] for last, names in grouped.items() if len(names) == 1}

    @lazy
    def _by_head(self) -> dict[str, list[str]]:
        """The names by their first word."""
        found: dict[str, list[str]] = {}
        for name in self.by_name:
            found.setdefault(name[1:].partition(" ")[0], []).append(name)
        return found

    @lazy
    def is_dated(self) -> bool:
        """Whether records have days."""
        return any(_list_days(fact) for fact in self.facts)

    @lazy
    def is_one(self) -> bool:
        """Whether all facts have the same value, so that it does not matter which record is meant."""
        return len({str(fact.value) for fact in self.facts}) == 1

    def find_called(self, scope: str) -> list[Fact]:
        """Return the facts of the record that the scope names last, by the names that the fewest records share.

        Names side by side are taken together: `HAT136 and HAT039`.
        """
        where = flatten_text(scope[-MAX_LINE:])
        every = self._find_places(where)
        fewest = min((len(facts) for _, _, facts in every), default=0)
        places = [place for place in every if len(place[2]) == fewest]
        if not places:
            return []
        at, _, last = places[-1]
        chosen = list(last)
        for start, name, facts in reversed(places[:-1]):
            end = start + len(name) - 1
            if end <= at and len(where[end:at].split()) <= _BESIDE:
                chosen += facts
                at = start
        nearest = every[-1][2]
        if not {id(fact) for fact in nearest} & {id(fact) for fact in chosen}:
            chosen += nearest  # the text may mean either
        return list({id(fact): fact for fact in chosen}.values())

    def list_called(self, scope: str) -> list[list[Fact]]:
        """Return the facts of each record that the scope names, in the order of the names."""
        found: list[list[Fact]] = []
        places = self._find_places(flatten_text(scope[-MAX_LINE:]))
        fewest = min((len(facts) for _, _, facts in places), default=0)
        for _, _, facts in places:
            if len(facts) == fewest and facts not in found:
                found.append(facts)
        return found

    def _find_places(self, where: str) -> list[tuple[int, str, list[Fact]]]:
        """Find the last position of each name in a flat text, in order, with the facts of its records."""
        words = set(where.split())
        near = [name for word in words for name in self._by_head.get(word, ())]
        self.tests += len(near)
        if self.tests > MAX_TESTS:
            return []
        named = [(name, self.by_name[name]) for name in near if name in where]
        named = named or [(f" {word} ", self._by_last[f" {word} "]) for word in words if f" {word} " in self._by_last]
        return sorted(((where.rfind(name), name, facts) for name, facts in named), key=lambda place: place[:2])


def _group_by_last(names: Iterable[str]) -> dict[str, list[str]]:
    """Group names of two or three words by the last, which may stand for them: `the Chair` for `Office Chair`."""
    found: dict[str, list[str]] = {}
    for name in names:
        words = name.split()
        if 1 < len(words) <= 3 and len(words[-1]) > 3 and words[-1].isalpha():
            found.setdefault(f" {words[-1]} ", []).append(name)
    return found


def narrow(family: Family, claim: Claim, text: str) -> NarrowedFacts:
    """Narrow a field's facts to those a claim can mean. Names that only some records have tell them apart."""
    facts = family.facts
    if len(facts) == 1:
        return NarrowedFacts(facts, facts, settled=True)
    said = find_days(claim) if family.is_dated else ()
    days = select_days(facts, said)
    if not all(_is_held(span, facts) for span in said) and claim.quantity.kind != "date":
        return NarrowedFacts(facts, facts, settled=False, missing=True)
    if days and claim.quantity.kind in READINGS:
        return NarrowedFacts(days, facts, settled=True, dated=True)
    paired = _pair_up(family, claim)
    if paired is not None:
        return NarrowedFacts(paired or facts, facts, settled=bool(paired))
    if _has_strange_label(family, claim):
        return NarrowedFacts(days or facts, facts, settled=False)
    for n, named in enumerate(_iter_named(family, claim, text)):
        both = [fact for fact in named if fact in days] if days else named
        if both:
            return NarrowedFacts(both, facts, settled=True, is_far=n >= _NEAR and not _leads_back(claim, text))
    if days:
        return NarrowedFacts(days, facts, settled=True, dated=True)
    return NarrowedFacts(facts, facts, settled=family.is_one)


def _leads_back(claim: Claim, text: str) -> bool:
    """Whether a claim is in a list below a name, or in a sentence that begins with a pronoun."""
    line = text[claim.line_start : claim.line_start + 8]
    return claim.exact or bool(_ITEM.match(line) or PRONOUN.match(claim.sentence))


def _iter_named(family: Family, claim: Claim, text: str) -> Iterator[list[Fact]]:
    """Yield the facts of what is named nearest: right after the claim, before it, after it, one sentence back, above."""
    at, end = max(0, claim.quantity.start - claim.sentence_start), claim.quantity.end - claim.sentence_start
    behind = _BEHIND.match(claim.sentence, end)
    yield family.find_called(behind[1]) if behind else []
    yield family.find_called(claim.sentence[:at])
    yield family.find_called(claim.sentence)
    before = family.list_called(_find_sentence_before(claim.context))
    yield before[0] if len(before) == 1 else []
    for line in iter_lines_above(text, claim.line_start) if len(before) < 2 else ():
        yield family.find_called(line)


def _has_strange_label(family: Family, claim: Claim) -> bool:
    """Whether a label within the sentence precedes a claim and names neither field nor record: `Lamp: $5, Chair: $7`."""
    label = _INLINE.search(claim.sentence, 0, max(0, claim.quantity.start - claim.sentence_start))
    if label is None or claim.exact:
        return False
    known = {word for fact in family.facts[:1] for word in (*fact.own, *fact.above)}
    return not known & {stem_word(word) for word in split_tokens(label[1])} and not family.find_called(label[1])


def _find_sentence_before(context: str) -> str:
    return _END.split(context.strip(" .!?"))[-1]


def _pair_up(family: Family, claim: Claim) -> list[Fact] | None:
    """Pair names and values of `A and B cost $5 and $7 respectively`.

    Returns the facts of the record in the claim's position, [] where it is unclear, None without `respectively`.
    """
    if "respectively" not in claim.sentence.lower():
        return None
    named, (place, count) = family.list_called(claim.sentence), claim.order
    return named[place] if count == len(named) else []


def list_names(record: FactRecord | None) -> list[str]:
    """List the names of a record and of the records that contain it."""
    return [name for each in _list_chain(record) for name in each.called]


def _list_chain(record: FactRecord | None) -> list[FactRecord]:
    found: list[FactRecord] = []
    while record is not None and len(found) < _CHAIN:
        found.append(record)
        record = record.above
    return found


def select_days(facts: Sequence[Fact], said: Sequence[DaySpan]) -> list[Fact]:
    """Return the facts whose records are of one of these days."""
    return [fact for fact in facts if any(span.has(day) for day in _list_days(fact) for span in said)] if said else []


def _is_held(span: DaySpan, facts: Sequence[Fact]) -> bool:
    """Whether any fact is of one of these days."""
    return any(span.has(day) for fact in facts for day in _list_days(fact))


def _list_days(fact: Fact) -> list[str]:
    return [day for each in _list_chain(fact.record) for day in each.days]
