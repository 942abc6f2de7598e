"""Proof: an amount is told with the decimal point at the wrong place of a field that counts cents.

`amount_cents: 540000` told as `$54.00` or as `$540,000`. Only where the field's own name, its neighbours or the tool say that it
counts the smallest unit; where the amount stands nowhere else, is no sum, share or product of what stands there, and nobody gave
it; and where the text states the field's true amount nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from service.core.grounding.fact_index import FactIndex
from service.core.grounding.facts import Fact
from service.core.grounding.findings import TextFinding
from service.core.grounding.ground import Placed
from service.core.grounding.reading.units import may_be_same_currency

CODE = "scale_slip"
_POWERS = (100.0, 0.01, 10.0, 0.1, 1_000.0, 0.001)


def find_scale_slips(placed: Sequence[Placed], index: FactIndex) -> Iterator[TextFinding]:
    """Yield a proof for each amount that is a held one with its decimal point moved."""
    stated = {source for one in placed for source in one.grounded.sources}
    for one in placed:
        if one.grounded.origin != "nowhere" or one.mention.hedged or one.mention.dimension != "money":
            continue
        fact = _find_moved(one, index)
        if fact is not None and fact.pointer not in stated:
            note = f"the text says {one.mention.text}, and {fact.name} is {fact.text} in the smallest unit"
            yield TextFinding(CODE, note, one.mention.start, one.mention.end, proved=True, source=fact.pointer)


def _find_moved(one: Placed, index: FactIndex) -> Fact | None:
    reading = one.mention.readings[0]
    for power in _POWERS:
        for fact in index.list_around("money", abs(reading.number) * power, 2):
            moved = abs(fact.reading.number)
            same = abs(moved - abs(reading.number) * power) <= 1e-9 * moved
            if (
                fact.minor
                and fact.source == "result"
                and same
                and may_be_same_currency(reading.currency, fact.reading.currency)
            ):
                return fact
    return None
