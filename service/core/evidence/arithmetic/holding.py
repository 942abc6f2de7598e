"""Read what a field holds in the terms of a claim, and what can be computed from that."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from service.core.evidence.arithmetic.transforms import list_ways
from service.core.evidence.facts.fact_index import NUMERIC
from service.core.evidence.facts.facts import Fact
from service.core.evidence.narration.verdicts import Ruling
from service.core.evidence.reading.quantities import Quantity
from service.core.evidence.reading.units import UNITS
from service.core.evidence.reading.words import split_tokens, split_words
from service.core.evidence.sentences.claims import Claim

MIN_TIMESTAMP_S = 10**9
"""Numbers from here on are Unix timestamps or identifiers."""
MAX_TERMS = 60
"""Limit on the values among which sums are tried."""
SUM = split_words("total totals totaling totalling altogether sum combined together overall all both add adds")
DIFFERENCE = split_words(
    "difference more less cheaper save saves saving savings than remaining left apart gap margin extra spare gain"
)
_MULTIPLE = split_words("each per times every apiece for x twice double")


def read_number(said: Quantity, fact: Fact) -> Decimal | None:
    """Return a fact's only number in the terms of `said`: cents as whole units, hours as minutes; None if it has none."""
    numbers = [held for held in fact.quantities if held.kind in NUMERIC]
    ways = list_ways(said, fact, numbers[0]) if len(numbers) == 1 else []
    return ways[-1 if said.kind == "number" else 0][0] if ways else None


def list_numbers(said: Quantity, facts: Sequence[Fact]) -> list[Decimal]:
    """Return the distinct numbers of facts in the terms of `said`, sorted."""
    return sorted({number for fact in facts if (number := read_number(said, fact)) is not None})


def is_same_sort(said: Quantity, facts: Sequence[Fact]) -> bool:
    """Whether a field's values are of the same sort as `said`: money for money, a measure for a measure, one to a value."""
    measured = [fact for fact in facts if fact.quantities]
    if any(read_number(said, fact) is None or not _is_number_alone(fact) for fact in measured):
        return False
    held = {(q.kind, _find_unit(q, fact)) for fact in measured for q in fact.quantities if q.kind in NUMERIC}
    if said.kind == "duration":
        return all(unit for _, unit in held)
    if said.kind == "measure":
        base = UNITS[said.unit].factor == 1 and not UNITS[said.unit].shift
        return all(unit or base for _, unit in held)  # a missing unit is read as the base unit
    if said.kind == "money":
        return all(kind in ("money", "number") for kind, _ in held)
    if said.kind == "percent":
        return all(unit == "%" for _, unit in held)
    if any(fact.counted.minor for fact in measured):
        return False  # `rated 4.9` is not a rate in cents
    return all(kind == said.kind and not unit for kind, unit in held)


def _find_unit(quantity: Quantity, fact: Fact) -> str:
    return "%" if quantity.kind == "percent" else quantity.unit or fact.counted.unit


def _is_number_alone(fact: Fact) -> bool:
    """Whether a fact is a number as a whole, not a text that contains one and not a Unix timestamp."""
    if isinstance(fact.value, str):
        return len(fact.quantities[0].text) * 2 > len(fact.value.strip())
    return not isinstance(fact.value, int | float) or abs(fact.value) < MIN_TIMESTAMP_S


def derive_number(claim: Claim, facts: Sequence[Fact]) -> Ruling | None:
    """Support a claim as a sum, difference or multiple of facts, if its sentence calls for one and gives the operands.

    A sum may be that of all facts, or of those whose numbers are stated in the sentence or shortly before. None if the claim
    is none of these.
    """
    said, words = claim.quantity.number, set(split_tokens(claim.sentence))
    held = {number: fact for fact in facts if (number := read_number(claim.quantity, fact)) is not None}
    if said is None or not 0 < len(facts) <= MAX_TERMS:
        return None
    named = {number: fact for number, fact in held.items() if number in claim.beside}
    if words & SUM and len(facts) > 1 and said in (_add(claim, facts), sum(named)):
        return Ruling("supported", facts[0].pointer, "sum")
    for one, fact in named.items():
        if words & DIFFERENCE and one + said in named:
            return Ruling("supported", fact.pointer, "difference")
        if words & _MULTIPLE and one and said != one and said / one in claim.beside:
            return Ruling("supported", fact.pointer, "multiple")
    return None


def _add(claim: Claim, facts: Sequence[Fact]) -> Decimal | None:
    numbers = [read_number(claim.quantity, fact) for fact in facts]
    return sum((number for number in numbers if number is not None), Decimal(0)) if None not in numbers else None
