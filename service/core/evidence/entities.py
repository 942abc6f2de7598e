"""Which record a claim speaks of: by the names and days in its sentence, its line, or the lines above."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from service.core.evidence.claims import Claim, lines_above
from service.core.evidence.facts import Fact, Record
from service.core.evidence.occasions import Span, days_of
from service.core.evidence.words import flat
from service.core.lazy import lazy

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


class Narrowed(NamedTuple):
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
            for name in dict.fromkeys(_names_of(fact.record)):
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
        return any(_days(fact) for fact in self.facts)

    @lazy
    def is_one(self) -> bool:
        """Whether all facts hold one value, so that it does not matter which record is meant."""
        return len({str(fact.value) for fact in self.facts}) == 1

    def called(self, scope: str) -> list[Fact]:
        """The facts of the record that the scope names last, going by the names that fewest records have.

        Two names side by side are taken together: `HAT136 and HAT039`.
        """
        where = flat(scope[-MAX_LINE:])
        near = [name for word in set(where.split()) for name in self._by_head.get(word, ())]
        self.tests += len(near)
        if self.tests > MAX_TESTS:
            return []
        named = {name: self.by_name[name] for name in near if name in where}
        fewest = min(map(len, named.values()), default=0)
        places = sorted((where.rfind(name), name) for name, facts in named.items() if len(facts) == fewest)
        return _together(where, places, named) if places else []


def _together(where: str, places: Sequence[tuple[int, str]], named: dict[str, list[Fact]]) -> list[Fact]:
    at, last = places[-1]
    chosen = list(named[last])
    for start, name in reversed(places[:-1]):
        end = start + len(name) - 1
        if end <= at and len(where[end:at].split()) <= _BESIDE:
            chosen += named[name]
            at = start
    return list({id(fact): fact for fact in chosen}.values())


def narrow(family: Family, claim: Claim, text: str) -> Narrowed:
    """The facts of a field that a claim can mean. Records are told apart by what only some of them are called."""
    facts = family.facts
    if len(facts) == 1:
        return Narrowed(facts, facts, settled=True)
    said = days_of(claim) if family.is_dated else ()
    days = on_days(facts, said)
    if not all(_is_held(span, facts) for span in said) and claim.quantity.kind != "date":
        return Narrowed(facts, facts, settled=False, missing=True)
    if days and claim.quantity.kind in READINGS:
        return Narrowed(days, facts, settled=True, dated=True)
    at = max(0, claim.quantity.start - claim.sentence_start)
    for scope in (claim.sentence[:at], claim.sentence, *lines_above(text, claim.line_start)):
        named = family.called(scope)
        both = [fact for fact in named if fact in days] if days else named
        if both:
            return Narrowed(both, facts, settled=True)
    if days:
        return Narrowed(days, facts, settled=True, dated=True)
    return Narrowed(facts, facts, settled=family.is_one)


def _names_of(record: Record | None) -> list[str]:
    """What a record and those it belongs to are called."""
    return [name for each in _chain(record) for name in each.called]


def _chain(record: Record | None) -> list[Record]:
    found: list[Record] = []
    while record is not None and len(found) < _CHAIN:
        found.append(record)
        record = record.above
    return found


def on_days(facts: Sequence[Fact], said: Sequence[Span]) -> list[Fact]:
    """The facts of records of these days."""
    return [fact for fact in facts if any(span.has(day) for day in _days(fact) for span in said)] if said else []


def _is_held(span: Span, facts: Sequence[Fact]) -> bool:
    """Whether anything is held of these days."""
    return any(span.has(day) for fact in facts for day in _days(fact))


def _days(fact: Fact) -> list[str]:
    return [day for each in _chain(fact.record) for day in each.days]
