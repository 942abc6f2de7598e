"""The classes of values that code suspects: rare in true answers, frequent in wrong ones. A suspicion opens, it never fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log10

from service.core.grounding.fact_index import FactIndex
from service.core.grounding.facts import Fact
from service.core.grounding.findings import TextFinding
from service.core.grounding.ground import Placed
from service.core.grounding.reading.mentions import Mention, Reading
from service.core.grounding.slips import is_slip, list_digits

CODE = "suspected_slip"
MIN_DIGITS = 3
"""The fewest digits of a number that can be suspected: one slip away from a shorter one is every other."""
MIN_CODE_CHARS = 5
_YEARS = range(1900, 2101)


def find_slips(placed: Sequence[Placed], index: FactIndex) -> Iterator[TextFinding]:
    """Suspect the values of a text that stand nowhere, whose like stands in a result, one digit or character or one swap away.

    Not where the text states that other value too: then it is another thing.
    """
    stated = {source for one in placed for source in one.grounded.sources}
    for one in placed:
        if one.grounded.origin == "nowhere" and not one.mention.hedged:
            fact = _find_like(one.mention, index)
            if fact is not None and fact.pointer not in stated:
                note = (
                    f"the text says {one.mention.text}, which stands nowhere; {fact.name or 'a result'} is {fact.text}"
                )
                yield TextFinding(CODE, note, one.mention.start, one.mention.end, proved=False, source=fact.pointer)


def _find_like(mention: Mention, index: FactIndex) -> Fact | None:
    code = next((one.value for one in mention.readings if one.kind == "code"), None)
    if isinstance(code, str) and len(code) >= MIN_CODE_CHARS:
        for held, fact in index.list_code_slips(code):
            neighbours = code.isdecimal() and held.isdecimal() and abs(int(code) - int(held)) <= 1
            if len(code) == len(held) and not neighbours and fact.source != "assistant":
                return fact
    reading = mention.readings[0]
    if reading.number == 0 or any(one.kind in ("day", "time") for one in mention.readings):
        return None
    dimensions = (reading.dimension, "") if reading.dimension else ("", "money")
    for dimension in dimensions:
        for fact in index.list_number_slips(list_digits(mention.text), dimension):
            if fact.source == "result" and _is_number_slip(mention, reading, fact):
                return fact
    return None


def _is_number_slip(mention: Mention, reading: Reading, fact: Fact) -> bool:
    """Whether the digits of a number are one slip from a held one, with the decimal point at the same place."""
    digits = list_digits(mention.text)
    if len(digits) < MIN_DIGITS or not fact.reading.number:
        return False
    if not reading.dimension and reading.number == reading.number // 1 and int(abs(reading.number)) in _YEARS:
        return False
    unit = abs(reading.number / reading.written) if reading.written else 1.0
    places = max(0, round(-log10(2 * reading.tolerance / unit))) if reading.tolerance else 0
    held = abs(fact.reading.number) / (unit if fact.reading.dimension else 1.0)
    cents = not fact.minor and reading.dimension == "money" and held == held // 1
    return any(
        _is_aligned_slip(abs(reading.written), one, places) for one in ((held, held / 100) if cents else (held,))
    )


def _is_aligned_slip(one: float, other: float, places: int) -> bool:
    """Whether two numbers differ by a slip, written with the same decimals; not where they are neighbours."""
    digits, like = (f"{value:.{places}f}".replace(".", "") for value in (one, other))
    return len(digits) == len(like) and is_slip(digits, like) and abs(one - other) > 1.5 * 10.0**-places
