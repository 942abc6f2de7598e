"""Which records a claim on a field speaks of: those of the entities of its clause, and those of its days."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from service.core.evidence.narration.claims import Claim
from service.core.evidence.narration.clauses import Clause
from service.core.evidence.narration.facts import Fact, FactRecord
from service.core.evidence.narration.occasions import DaySpan, find_days

MAX_FAMILY = 2_000
"""Values of one field; of more it is not asked which is meant."""
READINGS = ("measure", "percent")
"""Of these the day tells enough: what else a record is called is mostly another reading, such as `clear sky`."""
_CHAIN = 6


class NarrowedFacts(NamedTuple):
    """The facts of the field in the records that are spoken of, among all. `settled`: it is clear which those are.

    `dated`: they are all that is held of the days that are spoken of. `missing`: nothing is held of these days.
    """

    facts: Sequence[Fact]
    every: Sequence[Fact]
    settled: bool
    dated: bool = False
    missing: bool = False

    @property
    def others(self) -> list[Fact]:
        """The facts of the field in other records."""
        taken = {id(fact) for fact in self.facts}
        return [fact for fact in self.every if id(fact) not in taken]


def narrow(facts: Sequence[Fact], claim: Claim, clause: Clause | None) -> NarrowedFacts:
    """The facts of a field that a claim can mean."""
    if len(facts) == 1:
        return NarrowedFacts(facts, facts, settled=True)
    said = find_days(claim) if any(_list_days(fact) for fact in facts) else ()
    days = select_days(facts, said)
    if claim.quantity.kind != "date" and not all(select_days(facts, [span]) for span in said):
        return NarrowedFacts(facts, facts, settled=False, missing=True)
    if days and claim.quantity.kind in READINGS:
        return NarrowedFacts(days, facts, settled=True, dated=True)
    named = _select_named(facts, clause) if clause is not None else []
    both = [fact for fact in named if fact in days] if days else named
    if both:
        return NarrowedFacts(both, facts, settled=clause is not None and clause.sight != "loose")
    if days:
        return NarrowedFacts(days, facts, settled=not named, dated=True)
    same = len({str(fact.value) for fact in facts}) == 1
    return NarrowedFacts(facts, facts, settled=same)


def _select_named(facts: Sequence[Fact], clause: Clause) -> list[Fact]:
    """The facts that stand in the entities a clause speaks of, or, where none does, around them."""
    inside = {id(fact) for entity in clause.subjects for fact in entity.inside}
    named = [fact for fact in facts if id(fact) in inside]
    around = {id(fact) for entity in clause.subjects for fact in entity.iter_around()} if not named else set[int]()
    return named or [fact for fact in facts if id(fact) in around]


def select_days(facts: Sequence[Fact], said: Sequence[DaySpan]) -> list[Fact]:
    """The facts of records of these days."""
    return [fact for fact in facts if any(span.has(day) for day in _list_days(fact) for span in said)] if said else []


def _list_days(fact: Fact) -> list[str]:
    return [day for record in _iter_chain(fact.record) for day in record.days]


def _iter_chain(record: FactRecord | None) -> Iterator[FactRecord]:
    for _ in range(_CHAIN):
        if record is None:
            return
        yield record
        record = record.above
