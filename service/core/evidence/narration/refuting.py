"""Decide whether a claim that no fact of its field supports is contradicted or merely unsupported."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from service.core.evidence.arithmetic.holding import DIFFERENCE, derive_number, is_same_sort, list_numbers, read_number
from service.core.evidence.arithmetic.transforms import is_other_unit, may_be_minor, name_slip
from service.core.evidence.facts.fact_index import NUMERIC, FactGroup, FactIndex
from service.core.evidence.facts.facts import Fact
from service.core.evidence.narration.binding import find_side, is_about, is_direct, is_of_how_many
from service.core.evidence.narration.entities import READINGS, NarrowedFacts
from service.core.evidence.narration.verdicts import OPEN, Ruling, Utterances, build_contradiction
from service.core.evidence.reading.dates import WEEKDAYS
from service.core.evidence.reading.quantities import Quantity
from service.core.evidence.reading.words import find_root, flatten_text, split_tokens, split_words
from service.core.evidence.sentences.claims import (
    AT_LARGE,
    COMPARING,
    DENYING,
    LIMITED,
    LOOSE,
    MADE,
    Claim,
    sets_aside,
)
from service.core.evidence.sentences.occasions import is_in_course

MAX_NAMED = 100
"""Records of a field that are examined once more before a contradiction; more are not."""
DISTANCE = DIFFERENCE | split_words("between ahead behind lead")
"""Words for the difference between two values."""
_SAYING = split_words(
    "is was are were cost costs exceed exceeds reached reaches hit hits stand stands be being come comes"
)
_BOUND = split_words("threshold limit mark exceed exceeds exceeding")
_PICKING = split_words("among with without that which who for")
MAX_BESIDE = 8
"""With more numbers in a record than this, a matching difference may be chance."""
_PARTS = LIMITED - frozenset(WEEKDAYS)
"""Words for a part of a day."""


def compare(claim: Claim, narrowed: NarrowedFacts, groups: Sequence[FactGroup]) -> Ruling | None:
    """Rule on a comparison with a single value, like `above $200`; None if the claim is not one."""
    side, said, fact = find_side(claim), claim.quantity.number, narrowed.facts[0]
    if side is None or said is None or not is_direct(claim, groups):
        return None
    held = list_numbers(claim.quantity, narrowed.facts)
    same = is_same_sort(claim.quantity, narrowed.facts)
    if narrowed.missing or len(held) != 1 or not same or not claim.plain:
        return OPEN
    if LOOSE & claim.words - COMPARING or (DENYING | AT_LARGE) & set(split_tokens(claim.sentence)):
        return OPEN
    if not claim.exact and not _SAYING & {*claim.left}:
        return OPEN  # `a balance over $200 earns interest`
    if held[0] > said if side == "over" else held[0] < said:
        return Ruling("supported", fact.pointer, "comparison")
    return build_contradiction(claim, fact, "threshold", f"{side} ", COMPARING | _BOUND)


def refute(
    claim: Claim, narrowed: NarrowedFacts, groups: Sequence[FactGroup], fact_index: FactIndex, utterances: Utterances
) -> Ruling:
    """Rule on a bound claim that no fact supports.

    It is contradicted if its words are plain and beside the field's name, the field's values are of its kind, nobody
    else said the number, and no other field it touches on has it; and if, besides, the records meant hold a single other
    value, or the number is beyond every value of the field.
    """
    if claim.quantity.kind not in NUMERIC:
        return _refute_other(claim, narrowed, groups, utterances)
    said, held = claim.quantity.number, list_numbers(claim.quantity, narrowed.facts)
    if said is None or not held or claim.composite:
        return OPEN
    unsupported = Ruling("unsupported", narrowed.facts[0].pointer)
    bound = _is_bound(claim, narrowed, groups, utterances)
    if not bound:
        return unsupported
    if claim.extreme is not None and len(held) > 1:
        return _refute_range_end(claim, said, held, narrowed) or unsupported
    if (
        is_of_how_many(claim, groups)
        or _is_elsewhere(claim, groups, fact_index)
        or _is_of_others(claim, said, narrowed)
    ):
        return unsupported
    if claim.quantity.kind == "money" and any(may_be_minor(fact, said) for fact in narrowed.facts):
        return OPEN
    if len(held) == 1 and narrowed.settled:
        return build_contradiction(
            claim, _find_fact(claim, held[0], narrowed.facts), _name_slip(claim, said, held[0], narrowed)
        )
    return _refute_beyond(claim, said, narrowed) or unsupported


def _is_stated(claim: Claim) -> bool:
    """Whether a claim is a plain statement about its subject: no question, no condition, no `unlike HAT069`."""
    return claim.plain and not sets_aside(claim.sentence[: max(0, claim.quantity.start - claim.sentence_start)])


def _is_bound(claim: Claim, narrowed: NarrowedFacts, groups: Sequence[FactGroup], utterances: Utterances) -> bool:
    """Whether a claim is beside the field's name, the field's values are of its kind, and nobody else said the number."""
    if narrowed.missing or not is_direct(claim, groups) or utterances.has(claim.quantity) or not _is_stated(claim):
        return False
    return is_same_sort(claim.quantity, narrowed.facts)


def _find_fact(claim: Claim, number: Decimal, facts: Sequence[Fact]) -> Fact:
    return next(fact for fact in facts if read_number(claim.quantity, fact) == number)


def _name_slip(claim: Claim, said: Decimal, held: Decimal, narrowed: NarrowedFacts) -> str:
    if any(is_other_unit(claim.quantity, fact) for fact in narrowed.facts):
        return "wrong_unit"
    swapped = any(read_number(claim.quantity, other) == said for other in narrowed.others)
    return "swapped_entity" if swapped else name_slip(said, held)


def _is_held_beside(claim: Claim, said: Decimal, narrowed: NarrowedFacts) -> bool:
    """Whether the record named last before a claim has the number or, if none is named, whether all add up to it.

    `Budget review (room 4.12), then Dentist`, `together they have 16 rooms`.
    """
    if len(narrowed.every) > MAX_NAMED:
        return False
    before = flatten_text(claim.sentence[: max(0, claim.quantity.start - claim.sentence_start)])
    named = [(before.rfind(name), fact) for fact in narrowed.every for name in fact.record.called if name in before]
    last = max([at for at, _ in named], default=None)
    held = [read_number(claim.quantity, fact) for fact in narrowed.every]
    if last is None:
        return len(held) > 1 and sum(number for number in held if number is not None) == said
    return any(at == last and read_number(claim.quantity, fact) == said for at, fact in named)


def _is_of_others(claim: Claim, said: Decimal, narrowed: NarrowedFacts) -> bool:
    """Whether a number is computed from values, or belongs to the record named just before it."""
    if narrowed.is_far or _is_of_record(claim, said, narrowed):
        return True
    derived = claim.quantity.kind == "money" and derive_number(claim, [*narrowed.facts, *narrowed.others]) is not None
    return derived or _is_distance(claim, said, narrowed) or _is_held_beside(claim, said, narrowed)


def _is_of_record(claim: Claim, said: Decimal, narrowed: NarrowedFacts) -> bool:
    """Whether a number is a difference within the record: 19 places, where 6 of 25 are taken."""
    for fact in narrowed.facts[:MAX_NAMED]:
        mine = read_number(claim.quantity, fact)
        others = [q.number for other in fact.record.facts if other is not fact for q in other.quantities[:1]]
        beside = [number for number in others if number is not None]
        few = mine is not None and len(beside) <= MAX_BESIDE
        if mine is not None and few and any(said in (mine - n, n - mine) for n in beside):
            return not claim.exact
    return False


def _is_distance(claim: Claim, said: Decimal, narrowed: NarrowedFacts) -> bool:
    """Whether a number is given as the difference of two values: `between A and B there were 12 points`."""
    if not DISTANCE & {*split_tokens(claim.sentence)}:
        return False
    held = set(list_numbers(claim.quantity, narrowed.every[:MAX_NAMED]))
    return said != 0 and any(value + said in held for value in held)


def _is_elsewhere(claim: Claim, groups: Sequence[FactGroup], fact_index: FactIndex) -> bool:
    """Whether another field holds the number: one that the claim's words touch on, or one of the same unit."""
    mine, roots = {id(group) for group in groups}, {find_root(word) for word in claim.words}
    return any(
        id(fact_index.find_group(fact)) not in mine
        and (not roots.isdisjoint(map(find_root, (*fact.own, *fact.above))) or _has_unit(fact, claim.quantity))
        for value in claim.quantity.values
        for fact in fact_index.find_holding(value)
    )


def _has_unit(fact: Fact, said: Quantity) -> bool:
    if said.kind not in ("measure", "duration"):
        return False
    return any(held.unit == said.unit and held.value == said.value for held in fact.quantities)


def refute_end(
    claim: Claim, narrowed: NarrowedFacts, groups: Sequence[FactGroup], utterances: Utterances
) -> Ruling | None:
    """Contradict a claim that gives a value as the least or the greatest where results hold a more extreme one."""
    said, held = claim.quantity.number, list_numbers(claim.quantity, narrowed.facts)
    if claim.extreme is None or said is None or len(held) < 2 or claim.composite:
        return None
    if not _is_bound(claim, narrowed, groups, utterances):
        return None
    return _refute_range_end(claim, said, held, narrowed)


def _refute_range_end(claim: Claim, said: Decimal, held: Sequence[Decimal], narrowed: NarrowedFacts) -> Ruling | None:
    """Contradict an end of a range, `from 3 to 9`, that is not the least or the greatest value."""
    if not claim.plain or (MADE | DENYING) & claim.words or AT_LARGE & {*split_tokens(claim.sentence)}:
        return None
    picked = claim.quantity.kind not in READINGS and _PICKING & {*claim.left, *claim.right[:2]}
    if picked:
        return None
    if _is_of_a_part(claim, narrowed):
        return _refute_beyond(claim, said, narrowed)
    end = held[-1] if claim.extreme == "highest" else held[0]
    if abs(said - end) <= _measure_room(claim, end) or _is_distance(claim, said, narrowed):
        return None
    return build_contradiction(
        claim, _find_fact(claim, end, narrowed.facts), _name_range_slip(said, end, "wrong_extreme")
    )


def _is_of_a_part(claim: Claim, narrowed: NarrowedFacts) -> bool:
    """Whether a claim may be about only part of the values: part of a day, or some of the days."""
    words = set(split_tokens(claim.sentence))
    if narrowed.dated:
        return bool(_PARTS & words)
    return bool(LIMITED & words or claim.dates or narrowed.others) or is_in_course(claim)


def _measure_room(claim: Claim, end: Decimal) -> Decimal:
    """Return how far a number may be from the end of a range: 1, or if approximate a fifth of the end and at least 2."""
    return max(Decimal(2), abs(end) / 5) if is_about(claim) else Decimal(1)


def _refute_beyond(claim: Claim, said: Decimal, narrowed: NarrowedFacts) -> Ruling | None:
    """Contradict a measure or percentage beyond every value, whichever record is meant.

    Amounts are exempt: they are as often sums of several values.
    """
    every = narrowed.facts if narrowed.dated else [*narrowed.facts, *narrowed.others]
    held = list_numbers(claim.quantity, every)
    if claim.quantity.kind not in ("measure", "percent") or len(held) < 2 or held[0] <= said <= held[-1]:
        return None
    end = min((held[0], held[-1]), key=lambda value: abs(value - said))
    if abs(end - said) <= _measure_room(claim, end):
        return None
    return build_contradiction(claim, _find_fact(claim, end, every), _name_range_slip(said, end, "out_of_range"))


def _name_range_slip(said: Decimal, end: Decimal, code: str) -> str:
    slip = name_slip(said, end)
    return slip if slip in ("scale_flip", "sign_flip") else code


def _refute_other(claim: Claim, narrowed: NarrowedFacts, groups: Sequence[FactGroup], utterances: Utterances) -> Ruling:
    """Rule on a labelled date, time or truth value that the field does not hold."""
    kind, fact = claim.quantity.kind, narrowed.facts[0]
    held = {q.value for fact in narrowed.facts for q in fact.quantities if q.kind == kind}
    open_or = OPEN if kind == "boolean" else Ruling("unsupported", fact.pointer)
    if len(held) != 1 or not narrowed.settled or not claim.exact or not is_direct(claim, groups):
        return open_or
    if utterances.has(claim.quantity) or not _is_stated(claim):
        return open_or
    return build_contradiction(claim, fact, f"wrong_{kind}")
