"""When a claim that no fact of its field supports is contradicted, and when it is only unsupported."""

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
"""Records of which the names are looked for once more."""
DISTANCE = DIFFERENCE | split_words("between ahead behind lead")
"""Words that tell how far two values are apart."""
_SAYING = split_words(
    "is was are were cost costs exceed exceeds reached reaches hit hits stand stands be being come comes"
)
_BOUND = split_words("threshold limit mark exceed exceeds exceeding")
_PICKING = split_words("among with without that which who for")
MAX_BESIDE = 8
"""Numbers of a record; of more a difference may be chance."""
_PARTS = LIMITED - frozenset(WEEKDAYS)
"""Words that speak of a part of a day."""


def compare(claim: Claim, narrowed: NarrowedFacts, groups: Sequence[FactGroup]) -> Ruling | None:
    """`above $200`, of one value: true or not. None where the claim is no comparison."""
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
    """What a bound claim is that no fact supports.

    It is contradicted where its words are plain and stand beside the field, the field's values are of its sort, nobody
    else said the number and no other field that is touched on has it; and then if the records meant hold one other value,
    or none in all holds as little or as much.
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
    """Whether it is stated as it is, and of what is spoken of: no question, no condition, no `unlike HAT069`."""
    return claim.plain and not sets_aside(claim.sentence[: max(0, claim.quantity.start - claim.sentence_start)])


def _is_bound(claim: Claim, narrowed: NarrowedFacts, groups: Sequence[FactGroup], utterances: Utterances) -> bool:
    """Whether a claim stands beside the field, the field's values are of its sort, and nobody else said the number."""
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
    """Whether the record that was named last before a claim has the number; where none was, all of them together.

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
    """Whether a number is worked out of values, or is that of the record that was named just before it."""
    if narrowed.is_far or _is_of_record(claim, said, narrowed):
        return True
    made = claim.quantity.kind == "money" and derive_number(claim, [*narrowed.facts, *narrowed.others]) is not None
    return made or _is_distance(claim, said, narrowed) or _is_held_beside(claim, said, narrowed)


def _is_of_record(claim: Claim, said: Decimal, narrowed: NarrowedFacts) -> bool:
    """Whether a number comes of the field's and another one of the record: 19 places, of 25 of which 6 are taken."""
    for fact in narrowed.facts[:MAX_NAMED]:
        mine = read_number(claim.quantity, fact)
        others = [q.number for other in fact.record.facts if other is not fact for q in other.quantities[:1]]
        beside = [number for number in others if number is not None]
        few = mine is not None and len(beside) <= MAX_BESIDE
        if mine is not None and few and any(said in (mine - n, n - mine) for n in beside):
            return not claim.exact
    return False


def _is_distance(claim: Claim, said: Decimal, narrowed: NarrowedFacts) -> bool:
    """Whether a number is told as lying between two values of the field: `between A and B there were 12 points`."""
    if not DISTANCE & {*split_tokens(claim.sentence)}:
        return False
    held = set(list_numbers(claim.quantity, narrowed.every[:MAX_NAMED]))
    return said != 0 and any(one + said in held for one in held)


def _is_elsewhere(claim: Claim, groups: Sequence[FactGroup], fact_index: FactIndex) -> bool:
    """Whether another field holds the number: one that the claim's words touch, or of the same unit."""
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
    """The contradiction where a value that is held is told as the least or the greatest, and is not."""
    said, held = claim.quantity.number, list_numbers(claim.quantity, narrowed.facts)
    if claim.extreme is None or said is None or len(held) < 2 or claim.composite:
        return None
    if not _is_bound(claim, narrowed, groups, utterances):
        return None
    return _refute_range_end(claim, said, held, narrowed)


def _refute_range_end(claim: Claim, said: Decimal, held: Sequence[Decimal], narrowed: NarrowedFacts) -> Ruling | None:
    """`from 3 to 9`, of all that is told: neither the least nor the greatest of it."""
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
    """Whether a claim may be of less than all that is told of its days, or of all days."""
    words = set(split_tokens(claim.sentence))
    if narrowed.dated:
        return bool(_PARTS & words)
    return bool(LIMITED & words or claim.dates or narrowed.others) or is_in_course(claim)


def _measure_room(claim: Claim, end: Decimal) -> Decimal:
    """How far from the end of a range a number may be that is rounded up or down, or said roughly."""
    return max(Decimal(2), abs(end) / 5) if is_about(claim) else Decimal(1)


def _refute_beyond(claim: Claim, said: Decimal, narrowed: NarrowedFacts) -> Ruling | None:
    """A measure that is less or more than any, whichever record is meant. Amounts are as often sums of some of them."""
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
    """A date, a time or a truth value that the field does not hold, by its label."""
    kind, fact = claim.quantity.kind, narrowed.facts[0]
    held = {q.value for fact in narrowed.facts for q in fact.quantities if q.kind == kind}
    open_or = OPEN if kind == "boolean" else Ruling("unsupported", fact.pointer)
    if len(held) != 1 or not narrowed.settled or not claim.exact or not is_direct(claim, groups):
        return open_or
    if utterances.has(claim.quantity) or not _is_stated(claim):
        return open_or
    return build_contradiction(claim, fact, f"wrong_{kind}")
