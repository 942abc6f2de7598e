"""Which record a claim speaks of: by the names and days in its sentence, its line, or the lines above."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from service.core.evidence.claims import Claim, lines_above
from service.core.evidence.dates import same_day
from service.core.evidence.facts import Fact, Record
from service.core.evidence.quantities import find_quantities
from service.core.evidence.words import flat
from service.core.lazy import lazy

MAX_FAMILY = 2_000
"""Values of one field; of more it is not asked which is meant."""
MAX_TESTS = 300_000
"""Names that are looked for in the lines around the claims on one field. After that it is left open which record is meant."""
MAX_LINE = 400
"""Characters of a line that are read for names."""
_CHAIN = 6
_BESIDE = 2
"""Words between two names that are taken together."""


class Narrowed(NamedTuple):
    """The facts of the field in the records that are spoken of, and the others. `settled`: it is clear which those are."""

    facts: list[Fact]
    others: list[Fact]
    settled: bool


class Family:
    """The facts of a field, or of several that may be meant, by what their records are called."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.facts = list(facts)
        self.tests = 0

    @lazy
    def by_name(self) -> dict[str, list[Fact]]:
        """The facts under every name of their records."""
        found: dict[str, list[Fact]] = {}
        for fact in self.facts:
            for name in dict.fromkeys(_names_of(fact.record)):
                found.setdefault(name, []).append(fact)
        return {name: facts for name, facts in found.items() if len(facts) < len(self.facts)}

    @lazy
    def is_one(self) -> bool:
        """Whether all facts hold one value, so that it does not matter which record is meant."""
        return len({str(fact.value) for fact in self.facts}) == 1

    def called(self, scope: str) -> list[Fact]:
        """The facts of the record that the scope names last, going by the names that fewest records have.

        Two names side by side are taken together: `HAT136 and HAT039`.
        """
        self.tests += len(self.by_name)
        if self.tests > MAX_TESTS:
            return []
        where = flat(scope[-MAX_LINE:])
        named = {name: facts for name, facts in self.by_name.items() if name in where}
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
        return Narrowed(facts, [], settled=True)
    days = _on_days(facts, claim)
    at = max(0, claim.quantity.start - claim.sentence_start)
    for scope in (claim.sentence[:at], claim.sentence, *lines_above(text, claim.line_start)):
        named = family.called(scope)
        both = [fact for fact in named if fact in days] if days else named
        if both:
            return Narrowed(both, _rest(facts, both), settled=True)
    if days:
        return Narrowed(days, _rest(facts, days), settled=True)
    return Narrowed(facts, [], settled=family.is_one)


def _rest(facts: Sequence[Fact], chosen: Sequence[Fact]) -> list[Fact]:
    taken = {id(fact) for fact in chosen}
    return [fact for fact in facts if id(fact) not in taken]


def _names_of(record: Record | None) -> list[str]:
    """What a record and those it belongs to are called."""
    return [name for each in _chain(record) for name in each.called]


def _chain(record: Record | None) -> list[Record]:
    found: list[Record] = []
    while record is not None and len(found) < _CHAIN:
        found.append(record)
        record = record.above
    return found


def _on_days(facts: Sequence[Fact], claim: Claim) -> list[Fact]:
    said = [str(q.value) for q in find_quantities(claim.sentence) if q.kind == "date"]
    if not said:
        return []
    held = {id(fact): [day for each in _chain(fact.record) for day in each.days] for fact in facts}
    return [fact for fact in facts if any(same_day(day, one) for day in said for one in held[id(fact)])]
