"""What a field holds, in the terms of a claim."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from service.core.evidence.claims import MADE, Claim
from service.core.evidence.facts import Fact
from service.core.evidence.ledger import NUMERIC
from service.core.evidence.quantities import Quantity
from service.core.evidence.transforms import is_minor, unit_of
from service.core.evidence.units import UNITS
from service.core.evidence.verdicts import Found

EPOCH = 10**9
"""Numbers as great as this are moments in seconds, or identifiers."""
MAX_TERMS = 60
"""Of more values than these the sums are not tried."""


def number_of(said: Quantity, fact: Fact) -> Decimal | None:
    """A fact's one number in the terms of what was said: cents as whole units."""
    numbers = [held for held in fact.quantities if held.kind in NUMERIC]
    if len(numbers) != 1 or numbers[0].number is None:
        return None
    return numbers[0].number / 100 if said.kind == "money" and is_minor(fact) else numbers[0].number


def numbers_of(said: Quantity, facts: Sequence[Fact]) -> list[Decimal]:
    """The distinct numbers of facts, in order."""
    return sorted({number for fact in facts if (number := number_of(said, fact)) is not None})


def is_same_sort(said: Quantity, facts: Sequence[Fact]) -> bool:
    """Whether a field's values are of the claim's sort: money for money, a measure of that unit, and one to a value."""
    filled = [fact for fact in facts if fact.quantities]
    if any(number_of(said, fact) is None or not _is_whole(fact) for fact in filled):
        return False
    held = {(q.kind, q.unit or _unit(fact)) for fact in filled for q in fact.quantities if q.kind in NUMERIC}
    if said.kind == "duration":
        return all(unit == said.unit for _, unit in held)
    if said.kind == "measure":
        base = UNITS[said.unit].factor == 1 and not UNITS[said.unit].shift
        return all(unit == said.unit or (base and not unit) for _, unit in held)  # no unit is taken for the base unit
    if said.kind == "money":
        return all(kind in ("money", "number") and unit in ("", said.unit, "?") for kind, unit in held)
    return all(kind == said.kind and not unit for kind, unit in held)


def _unit(fact: Fact) -> str:
    unit = unit_of(fact)
    return unit.name if unit else ""


def _is_whole(fact: Fact) -> bool:
    """Whether a fact is a number and no text with one in it, nor a moment in seconds."""
    if isinstance(fact.value, str):
        return len(fact.quantities[0].text) * 2 > len(fact.value.strip())
    return not isinstance(fact.value, int | float) or abs(fact.value) < EPOCH


def worked_out(claim: Claim, facts: Sequence[Fact]) -> Found | None:
    """The sum of all, the sum or the difference of two, or a small multiple of one."""
    said = claim.quantity.number
    held = {number: fact for fact in facts if (number := number_of(claim.quantity, fact)) is not None}
    if said is None or not 0 < len(held) <= MAX_TERMS:
        return None
    if len(held) > 1 and sum(held) == said:
        return Found("supported", next(iter(held.values())).pointer, "sum")
    for one, fact in held.items():
        if MADE & claim.words and one and said and said % one == 0 and 2 <= said / one <= 9:
            return Found("supported", fact.pointer, "multiple")
        for other, name in ((said - one, "sum"), (one - said, "difference")):
            if other != one and other in held:
                return Found("supported", fact.pointer, name)
    return None
