"""Which record a claim speaks of: by the names and days in its sentence, its line, or the lines above."""

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
"""Values of one field; of more it is not asked which is meant."""
MAX_TESTS = 300_000
"""Names that are looked for in the lines around the claims on one field. After that it is left open which record is meant."""
MAX_LINE = 400
"""Characters of a line that are read for names."""
READINGS = ("measure", "percent")
"""Of these the day tells enough: what else a record is called is mostly another reading, such as `clear sky`."""
_CHAIN = 6
_BESIDE = 2
"""Words between two names that are taken together."""


_BEHIND = re.compile(
    r"(?! ?[*_]*(?:[.,;:|\n]|and\b|or\b|while\b|but\b|then\b))[^\w$€£]{0,4}"
    r"((?:(?!(?:and|or|while|but|then|with|to)\b)[^\s.,;:()|]+[ ]?){1,4})"
)
"""After a claim, what it is of: `$100 for HAT083`, `$100 (HAT083)`, `8 MP main camera`."""
_NEAR = 3
"""So many of the places where names are looked for are in the claim's sentence."""
_INLINE = re.compile(r"[,;(|] *[*_]*([A-Z][\w '&-]{1,40}?)[*_]*: *[*_]*$")
_ITEM = re.compile(r"\s+\S|\s*(?:[-*\u2022|]|\d+[.)])")
_END = re.compile(r"[.!?][\s*_)\"]+")


class NarrowedFacts(NamedTuple):
    """The facts of the field in the records that are spoken of, among all. `settled`: it is clear which those are.

    `dated`: they are all that is held of the days that are spoken of. `missing`: nothing is held of these days.
    """

    facts: list[Fact]
    every: list[Fact]
    settled: bool
    dated: bool = False
    missing: bool = False
    is_far: bool = False
    """Whether only what stands before the sentence names them, and neither a label nor a word for them leads back there."""

    @property
    def others(self) -> list[Fact]:
        """The facts of the field in other records."""
        if len(self.facts) == len(self.every):
            return []
        taken = {id(fact) for fact in self.facts}
        return [fact for fact in self.every if id(fact) not in taken]


class Family:
    """The facts of a field, or of several that may be meant, by what their records are called."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.facts = list(facts)
        self.tests = 0

    @property
    def is_indexed(self) -> bool:
        """Whether the names of the records are at hand."""
        return "by_name" in self.__dict__

    @lazy
    def by_name(self) -> dict[str, list[Fact]]:
        """The facts under every name of their records."""
        found: dict[str, list[Fact]] = {}
        for fact in self.facts:
            for name in dict.fromkeys(list_names(fact.record)):
                found.setdefault(name, []).append(fact)
        return {name: facts for name, facts in found.items() if len(facts) < len(self.facts)}

    @lazy
    def _by_last(self) -> dict[str, list[Fact]]:
        """The facts by the last word of a name, where it may stand for one name alone."""
        grouped = _group_by_last(self.by_name)
        return {last: self.by_name[names[0]] for last, names in grouped.items() if len(names) == 1}

    @lazy
    def _by_head(self) -> dict[str, list[str]]:
        """The names by their first words."""
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
        """Whether all facts hold one value, so that it does not matter which record is meant."""
        return len({str(fact.value) for fact in self.facts}) == 1

    def find_called(self, scope: str) -> list[Fact]:
        """The facts of the record that the scope names last, going by the names that fewest records have.

        Two names side by side are taken together: `HAT136 and HAT039`.
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
            chosen += nearest  # either may be meant
        return list({id(fact): fact for fact in chosen}.values())

    def list_called(self, scope: str) -> list[list[Fact]]:
        """The facts of each record that the scope names, in the order of their names."""
        found: list[list[Fact]] = []
        places = self._find_places(flatten_text(scope[-MAX_LINE:]))
        fewest = min((len(facts) for _, _, facts in places), default=0)
        for _, _, facts in places:
            if len(facts) == fewest and facts not in found:
                found.append(facts)
        return found

    def _find_places(self, where: str) -> list[tuple[int, str, list[Fact]]]:
        """Where a flat text has names last, in this order, each with the facts of its records."""
        words = set(where.split())
        near = [name for word in words for name in self._by_head.get(word, ())]
        self.tests += len(near)
        if self.tests > MAX_TESTS:
            return []
        named = [(name, self.by_name[name]) for name in near if name in where]
        named = named or [(f" {word} ", self._by_last[f" {word} "]) for word in words if f" {word} " in self._by_last]
        return sorted(((where.rfind(name), name, facts) for name, facts in named), key=lambda place: place[:2])


def _group_by_last(names: Iterable[str]) -> dict[str, list[str]]:
    """Names of two or three words by their last, which may stand for them: `the Chair` for `Office Chair`."""
    found: dict[str, list[str]] = {}
    for name in names:
        words = name.split()
        if 1 < len(words) <= 3 and len(words[-1]) > 3 and words[-1].isalpha():
            found.setdefault(f" {words[-1]} ", []).append(name)
    return found


def narrow(family: Family, claim: Claim, text: str) -> NarrowedFacts:
    """The facts of a field that a claim can mean. Records are told apart by what only some of them are called."""
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
    """Whether a claim stands in a list below a name, or in a sentence that begins with a word for what was named."""
    line = text[claim.line_start : claim.line_start + 8]
    return claim.exact or bool(_ITEM.match(line) or PRONOUN.match(claim.sentence))


def _iter_named(family: Family, claim: Claim, text: str) -> Iterator[list[Fact]]:
    """The facts of what is named nearest: right behind the claim, before it, behind it, in the sentence before, above."""
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
    """Whether a claim stands behind a label in its sentence that names neither field nor record: `Lamp: $5, Chair: $7`."""
    label = _INLINE.search(claim.sentence, 0, max(0, claim.quantity.start - claim.sentence_start))
    if label is None or claim.exact:
        return False
    known = {word for fact in family.facts[:1] for word in (*fact.own, *fact.above)}
    return not known & {stem_word(word) for word in split_tokens(label[1])} and not family.find_called(label[1])


def _find_sentence_before(context: str) -> str:
    return _END.split(context.strip(" .!?"))[-1]


def _pair_up(family: Family, claim: Claim) -> list[Fact] | None:
    """Of `A and B cost $5 and $7 respectively` the facts of the record in the claim's place; () where it is not clear."""
    if "respectively" not in claim.sentence.lower():
        return None
    named, (place, count) = family.list_called(claim.sentence), claim.order
    return named[place] if count == len(named) else []


def list_names(record: FactRecord | None) -> list[str]:
    """What a record and those it belongs to are called."""
    return [name for each in _list_chain(record) for name in each.called]


def _list_chain(record: FactRecord | None) -> list[FactRecord]:
    found: list[FactRecord] = []
    while record is not None and len(found) < _CHAIN:
        found.append(record)
        record = record.above
    return found


def select_days(facts: Sequence[Fact], said: Sequence[DaySpan]) -> list[Fact]:
    """The facts of records of these days."""
    return [fact for fact in facts if any(span.has(day) for day in _list_days(fact) for span in said)] if said else []


def _is_held(span: DaySpan, facts: Sequence[Fact]) -> bool:
    """Whether anything is held of these days."""
    return any(span.has(day) for fact in facts for day in _list_days(fact))


def _list_days(fact: Fact) -> list[str]:
    return [day for each in _list_chain(fact.record) for day in each.days]
