"""What answers claim, held against what tools returned: each quantity bound to a field of a record, or left alone.

A claim is contradicted only where its words name a field (and the record, where there are several), that field's values
all differ from it under every transform, and nothing else accounts for the number. All else is left open.
"""

from __future__ import annotations

from collections.abc import Sequence

from service.core.evidence.binding import bind, is_about
from service.core.evidence.claims import LOOSE, MADE, Claim, claims_of
from service.core.evidence.entities import MAX_FAMILY, Narrowed, narrow
from service.core.evidence.facts import Fact
from service.core.evidence.holding import number_of, numbers_of, worked_out
from service.core.evidence.ledger import MONEY, Ledger
from service.core.evidence.quantities import Quantity, significant
from service.core.evidence.refuting import compare, is_no_end, refute
from service.core.evidence.series import check_series
from service.core.evidence.statements import statements_of
from service.core.evidence.transforms import is_minor, may_be_minor, relate
from service.core.evidence.verdicts import OPEN, ClaimVerdict, Found, Heard, contradicted
from service.core.evidence.words import listed

FEW = 2
"""Of so many values one may be taken for the one that is meant."""
COUNTS = listed("have has are is found there")
"""Words that say that this is all there is."""
_POWERS = (-3, -2, -1, 1, 2, 3, 4)


def check_text(
    text: str, path: str, ledger: Ledger, heard: Heard, quantities: Sequence[Quantity] | None = None
) -> list[ClaimVerdict]:
    """The verdict on each claim of a text, in its order. Sentences that say that something is so are claims too."""
    found: list[ClaimVerdict] = []
    for claim in claims_of(text, quantities):
        quantity = claim.quantity
        verdict = _check(claim, text, ledger, heard)
        found.append(ClaimVerdict(path, quantity.start, quantity.end, quantity.text, *verdict))
    for claim, verdict in statements_of(text, ledger, heard):
        quantity = claim.quantity
        found.append(ClaimVerdict(path, quantity.start, quantity.end, quantity.text, *verdict))
    return sorted(found, key=lambda each: (each.start, each.end))


def _check(claim: Claim, text: str, ledger: Ledger, heard: Heard) -> Found:
    quantity = claim.quantity
    if quantity.kind == "boolean" and not claim.exact:
        return OPEN  # the sentence as a whole tells
    if quantity.kind == "identifier":
        return _identified(claim, ledger, heard)
    of_series = check_series(claim, ledger, heard)
    if of_series is not None:
        return of_series
    groups = bind(claim, ledger)
    if not groups:
        return _unbound(claim, ledger, heard)
    family = ledger.family(groups)
    if len(family.facts) > MAX_FAMILY:
        return OPEN
    ledger.look(family)
    narrowed = narrow(family, claim, text)
    return (
        compare(claim, narrowed, groups)
        or is_no_end(claim, narrowed, groups, ledger, heard)
        or _supported(claim, narrowed, ledger)
        or refute(claim, narrowed, groups, ledger, heard)
    )


def _identified(claim: Claim, ledger: Ledger, heard: Heard) -> Found:
    """An identifier is in the results, or is nearly one that is, or is nobody's business."""
    held = ledger.holding(claim.quantity.value)
    if held or heard.has(claim.quantity):
        return Found("supported", held[0].pointer, "same") if held else OPEN
    slip = ledger.near(claim.quantity.text)
    return contradicted(claim, slip, "digit_flip") if slip is not None else OPEN


def _supported(claim: Claim, narrowed: Narrowed, ledger: Ledger) -> Found | None:
    """The fact that says it. Of a field with many values, any of which may be meant, one proves little: it is left open."""
    about = is_about(claim)
    for fact in narrowed.facts:
        for held in fact.quantities:
            how = relate(claim.quantity, fact, held, about=about)
            if how:
                sure = narrowed.settled or len(narrowed.facts) <= FEW or _is_end(claim, fact, narrowed)
                return Found("supported" if sure else "not_checkable", fact.pointer, how)
    return _counted(claim, ledger) or worked_out(claim, narrowed.facts)


def _is_end(claim: Claim, fact: Fact, narrowed: Narrowed) -> bool:
    """Whether a fact is the end of the range that a claim speaks of."""
    held, number = numbers_of(claim.quantity, narrowed.facts), number_of(claim.quantity, fact)
    return claim.extreme is not None and bool(held) and number == held[-1 if claim.extreme == "highest" else 0]


def _counted(claim: Claim, ledger: Ledger) -> Found | None:
    for fact in ledger.counted(claim.label):
        if claim.quantity.value == fact.value:
            return Found("supported", fact.pointer, "count")
    return None


def _miscounted(claim: Claim, ledger: Ledger, heard: Heard) -> Found | None:
    """`You have 4 reservations.` of a list of three, the only one of that name."""
    arrays = ledger.counted(claim.right[:1])
    if claim.quantity.kind != "number" or len(arrays) != 1 or len(claim.right) > 1 or claim.composite:
        return None
    if not claim.plain or not COUNTS & set(claim.left[-2:]) or (MADE | LOOSE) & claim.words:
        return None
    return None if heard.has(claim.quantity) else contradicted(claim, arrays[0], "wrong_count")


def _unbound(claim: Claim, ledger: Ledger, heard: Heard) -> Found:
    """A claim whose words name no field: money may still have slipped its point; else only its absence is told."""
    quantity = claim.quantity
    counted = _counted(claim, ledger) or _miscounted(claim, ledger, heard)
    if counted is not None:
        return counted
    minor = _in_cents(quantity, ledger)
    if minor is not None:
        return Found("supported", minor.pointer, "minor units")
    if heard.has(quantity) or any(ledger.holding(value) for value in quantity.values):
        return OPEN
    return _scale_flip(claim, ledger) or (Found("unsupported") if _is_telling(quantity) else OPEN)


def _is_telling(quantity: Quantity) -> bool:
    """Whether a quantity says so much that it must come from somewhere."""
    number = quantity.number
    return quantity.kind in ("date", "time") or (number is not None and len(significant(number)) > 2)


def _in_cents(quantity: Quantity, ledger: Ledger) -> Fact | None:
    number = quantity.number
    if number is None or quantity.kind != "money":
        return None
    return next((fact for fact in ledger.holding(number * 100) if is_minor(fact)), None)


def _scale_flip(claim: Claim, ledger: Ledger) -> Found | None:
    """An amount with the digits of one that the results hold, a power of ten apart."""
    said = claim.quantity.number
    if said is None or claim.quantity.kind != "money" or not claim.plain or LOOSE & claim.words:
        return None
    if len(significant(said)) < 2:
        return None
    for power in _POWERS:
        for fact in ledger.holding(said.scaleb(power)):
            if may_be_minor(fact, said):
                return OPEN
            if MONEY & {*fact.own, *fact.above} and number_of(claim.quantity, fact) != said:
                return contradicted(claim, fact, "scale_flip")
    return None
