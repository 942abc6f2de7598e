"""What a field holds, in the terms of a claim."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from service.core.evidence.narration.claims import MADE, Claim
from service.core.evidence.narration.fact_index import NUMERIC
from service.core.evidence.narration.facts import Fact
from service.core.evidence.narration.transforms import find_unit, is_minor
from service.core.evidence.narration.verdicts import Ruling
from service.core.evidence.reading.quantities import Quantity
from service.core.evidence.reading.units import UNITS

EPOCH = 10**9
"""Numbers as great as this are moments in seconds, or identifiers."""
MAX_TERMS = 60
"""Of more values than these the sums are not tried."""


def read_number(said: Quantity, fact: Fact) -> Decimal | None:
    """A fact's one number in the terms of what was said: cents as whole units."""
    numbers = [held for held in fact.quantities if held.kind in NUMERIC]
    if len(numbers) != 1 or numbers[0].number is None:
        return None
    return numbers[0].number / 100 if said.kind == "money" and is_minor(fact) else numbers[0].number


def list_numbers(said: Quantity, facts: Sequence[Fact]) -> list[Decimal]:
    """The distinct numbers of facts, in order."""
    return sorted({number for fact in facts if (number := read_number(said, fact)) is not None})


def is_same_sort(said: Quantity, facts: Sequence[Fact]) -> bool:
    """Whether a field's values are of the claim's sort: money for money, a measure of that unit, and one to a value."""
    measured = [fact for fact in facts if fact.quantities]
    if any(read_number(said, fact) is None or not _is_whole(fact) for fact in measured):
        return False
    held = {(q.kind, q.unit or _find_unit(fact)) for fact in measured for q in fact.quantities if q.kind in NUMERIC}
    if said.kind == "duration":
        return all(unit == said.unit for _, unit in held)
    if said.kind == "measure":
        base = UNITS[said.unit].factor == 1 and not UNITS[said.unit].shift
        return all(unit == said.unit or (base and not unit) for _, unit in held)  # no unit is taken for the base unit
    if said.kind == "money":
        return all(kind in ("money", "number") and unit in ("", said.unit, "?") for kind, unit in held)
    return all(kind == said.kind and not unit for kind, unit in held)


def _find_unit(fact: Fact) -> str:
    unit = find_unit(fact)
    return unit.name if unit else ""


def _is_whole(fact: Fact) -> bool:
    """Whether a fact is a number and no text with one in it, nor a moment in seconds."""
    if isinstance(fact.value, str):
        return len(fact.quantities[0].text) * 2 > len(fact.value.strip())
    return not isinstance(fact.value, int | float) or abs(fact.value) < EPOCH


def derive_number(claim: Claim, facts: Sequence[Fact]) -> Ruling | None:
    """The sum of all, the sum or the difference of two, or a small multiple of one."""
    said = claim.quantity.number
    held = {number: fact for fact in facts if (number := read_number(claim.quantity, fact)) is not None}
    if said is None or not 0 < len(held) <= MAX_TERMS:
        return None
    if len(held) > 1 and sum(held) == said:
        return Ruling("supported", next(iter(held.values())).pointer, "sum")
    for one, fact in held.items():
        if MADE & claim.words and one and said and said % one == 0 and 2 <= said / one <= 9:
            return Ruling("supported", fact.pointer, "multiple")
        for other, name in ((said - one, "sum"), (one - said, "difference")):
            if other != one and other in held:
                return Ruling("supported", fact.pointer, name)
    return None
