"""Which record a claim speaks of: by the names and days in its sentence, its line, or the lines above."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from service.core.evidence.narration.claims import Claim, iter_lines_above
from service.core.evidence.narration.facts import Fact, FactRecord
from service.core.evidence.narration.occasions import DaySpan, find_days
from service.core.evidence.reading.words import flatten_text
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


class NarrowedFacts(NamedTuple):
    """The facts of the field in the records that are spoken of, among all. `settled`: it is clear which those are.

    `dated`: they are all that is held of the days that are spoken of. `missing`: nothing is held of these days.
    """

    facts: list[Fact]
    every: list[Fact]
    settled: bool
    dated: bool = False
    missing: bool = False

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
            for name in dict.fromkeys(_list_names(fact.record)):
                found.setdefault(name, []).append(fact)
        return {name: facts for name, facts in found.items() if len(facts) < len(self.facts)}

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
        near = [name for word in set(where.split()) for name in self._by_head.get(word, ())]
        self.tests += len(near)
        if self.tests > MAX_TESTS:
            return []
        named = {name: self.by_name[name] for name in near if name in where}
        fewest = min(map(len, named.values()), default=0)
        places = sorted((where.rfind(name), name) for name, facts in named.items() if len(facts) == fewest)
        return _join_facts(where, places, named) if places else []


def _join_facts(where: str, places: Sequence[tuple[int, str]], named: dict[str, list[Fact]]) -> list[Fact]:
    at, last = places[-1]
    chosen = list(named[last])
    for start, name in reversed(places[:-1]):
        end = start + len(name) - 1
        if end <= at and len(where[end:at].split()) <= _BESIDE:
            chosen += named[name]
            at = start
    return list({id(fact): fact for fact in chosen}.values())


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
    at = max(0, claim.quantity.start - claim.sentence_start)
    for scope in (claim.sentence[:at], claim.sentence, *iter_lines_above(text, claim.line_start)):
        named = family.find_called(scope)
        both = [fact for fact in named if fact in days] if days else named
        if both:
            return NarrowedFacts(both, facts, settled=True)
    if days:
        return NarrowedFacts(days, facts, settled=True, dated=True)
    return NarrowedFacts(facts, facts, settled=family.is_one)


def _list_names(record: FactRecord | None) -> list[str]:
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
