"""Claims whose words prove nothing: held against all fields of their kind, of the record that is spoken of.

What no fact, nobody's words and no arithmetic accounts for is suspected there; what another record holds is swapped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from service.core.evidence.narration.binding import find_side, is_about, is_direct, is_loose
from service.core.evidence.narration.claims import Claim
from service.core.evidence.narration.entities import MAX_FAMILY, Family, NarrowedFacts, narrow
from service.core.evidence.narration.fact_index import FactGroup, FactIndex
from service.core.evidence.narration.facts import Fact
from service.core.evidence.narration.holding import (
    DIFFERENCE,
    SUM,
    derive_number,
    is_derivable,
    is_same_sort,
    read_number,
)
from service.core.evidence.narration.transforms import is_other_unit, relate
from service.core.evidence.narration.verdicts import OPEN, Ruling, Utterances, build_contradiction, build_suspicion
from service.core.evidence.reading.quantities import Quantity, list_significant_digits
from service.core.evidence.reading.units import UNITS
from service.core.evidence.reading.words import split_tokens, stem_word

_TYPED = frozenset({"money", "time", "date", "percent", "measure", "duration"})
_JOINT = re.compile(r", (?:and|but|while|whereas) |; | while | whereas | and (?=\w+ \w)")
MAX_MEANT = 6
"""Fields of one record that a claim of their kind may mean."""


def find_typed(claim: Claim, fact_index: FactIndex) -> list[FactGroup]:
    """The fields whose values are of a claim's kind, whatever they are called."""
    if claim.quantity.kind not in _TYPED:
        return []
    return [group for group in fact_index.groups.values() if _is_of_kind(group, claim.quantity)]


def _is_of_kind(group: FactGroup, said: Quantity) -> bool:
    if said.kind == "money":
        return group.is_money or "money" in group.kinds
    if said.kind == "percent":
        return "percent" in group.kinds or "%" in group.units
    if said.kind in ("measure", "duration"):
        return any(UNITS[unit].dimension == UNITS[said.unit].dimension for unit in group.units if unit in UNITS)
    return said.kind in group.kinds


def check_slot(
    claim: Claim, text: str, fact_index: FactIndex, utterances: Utterances, named: Sequence[FactGroup]
) -> Ruling:
    """The verdict on a claim that its words alone neither support nor contradict. `named`: the fields that they name."""
    typed = find_typed(claim, fact_index)
    groups = list(named) or typed
    families = [fact_index.build_family(each) for each in ([named, typed] if named else [typed]) if each]
    if not _is_to_be_checked(claim) or utterances.has(claim.quantity):
        return OPEN
    if not families:
        return _note(claim, (), fact_index)
    if max(len(family.facts) for family in families) > MAX_FAMILY:
        return OPEN
    for family in families:
        fact_index.look(family)
    narrowed = narrow(families[0], claim, text)
    fitting = [fact for fact in narrowed.facts if _fits(claim, fact)]
    if fitting:
        one = narrowed.settled and len({fact.path for fact in narrowed.facts}) == 1 and not named
        one = one and claim.quantity.kind != "date"  # a day says which record is meant
        return Ruling("supported" if one else "not_checkable", fitting[0].pointer, "same")
    derived = _derive(claim, narrowed, fact_index)
    if derived is not None:
        return derived
    if any(_fits(claim, fact) for family in families for fact in _find_touched(family, claim)):
        return OPEN
    if not named and len(narrowed.every) > 1 and len(families[0].list_called(claim.sentence)) < claim.order[1]:
        narrowed = narrowed._replace(settled=False)  # there are more values than records
    every = families[-1].facts
    other = _find_other(claim, narrowed, every, named=bool(named))
    return other or _refuse(claim, narrowed, groups) or _find_nowhere(claim, narrowed, fact_index, groups, every)


def _find_touched(family: Family, claim: Claim) -> list[Fact]:
    """The facts of all that is named in a claim's clause, by anything; else in its sentence."""
    if "respectively" in claim.sentence:
        return []
    at, end = max(0, claim.quantity.start - claim.sentence_start), claim.quantity.end - claim.sentence_start
    clause = f"{_JOINT.split(claim.sentence[:at])[-1]} {_JOINT.split(claim.sentence[end:])[0]}"
    return family.find_touched(clause) or family.find_touched(claim.sentence)


def _is_to_be_checked(claim: Claim) -> bool:
    """Whether a claim states a thing as it is, and it is clear of what kind: pounds are of money or of weight."""
    return claim.plain and not claim.composite and not claim.quantity.text.lower().endswith(("pound", "pounds"))


def _derive(claim: Claim, narrowed: NarrowedFacts, fact_index: FactIndex) -> Ruling | None:
    """What is worked out of the records that are named, or of the fields."""
    stems = [stem_word(word) for word in split_tokens(claim.sentence)]
    named = [fact for group in fact_index.find_named(stems, claim.quantity) for fact in group.facts]
    derived = derive_number(claim, narrowed.facts) if narrowed.settled else None
    return derived or (derive_number(claim, named) if len(named) <= MAX_MEANT else None)


def _find_other(claim: Claim, narrowed: NarrowedFacts, every: Sequence[Fact], *, named: bool) -> Ruling | None:
    """The contradiction of a number that is held in another unit, and the suspicion of one with another sign."""
    if not narrowed.settled or find_side(claim) is not None:
        return None
    fact = next((fact for fact in narrowed.facts if is_other_unit(claim.quantity, fact)), None)
    if fact is not None and not any(_fits(claim, other) for other in every):
        return build_contradiction(claim, fact, "wrong_unit")
    said = claim.quantity.number
    sign = [fact for fact in narrowed.facts if named and said and read_number(claim.quantity, fact) == -said < 0]
    return build_suspicion(claim, sign[0], "sign_flip") if sign else None


def _refuse(claim: Claim, narrowed: NarrowedFacts, groups: Sequence[FactGroup]) -> Ruling | None:
    """The contradiction of a claim that fits another record than the one it speaks of."""
    meant = _list_meant(claim, narrowed, groups)
    if not meant or not any(_fits(claim, fact) for fact in narrowed.others):
        return None
    proved = len({fact.path for fact in narrowed.every}) == 1 == len(meant) and claim.quantity.kind != "date"
    return (build_contradiction if proved else build_suspicion)(claim, meant[0], "swapped_entity")


def _list_meant(claim: Claim, narrowed: NarrowedFacts, groups: Sequence[FactGroup]) -> list[Fact]:
    """The facts of which a claim must be one; none where it need not be."""
    meant = [fact for fact in narrowed.facts if fact.quantities]
    if not narrowed.settled or narrowed.is_far or narrowed.missing or narrowed.dated or len(meant) > MAX_MEANT:
        return []
    if (claim.extreme and len(meant) > 1) or find_side(claim) is not None or is_loose(claim, groups):
        return []
    if claim.quantity.kind == "number" and not is_direct(claim, groups):
        return []
    return meant if is_same_sort(claim.quantity, meant) else []


def _find_nowhere(
    claim: Claim, narrowed: NarrowedFacts, fact_index: FactIndex, groups: Sequence[FactGroup], every: Sequence[Fact]
) -> Ruling:
    """What a claim is that no fact of its kind says: suspected where it is clear which it should be."""
    if any(_fits(claim, fact) for fact in (*narrowed.others, *every)):
        return OPEN
    meant, note = _list_meant(claim, narrowed, groups), _note(claim, every, fact_index)
    if note.verdict != "unsupported" or not (meant or _is_to_be_told(claim)):
        return note
    return build_suspicion(claim, (meant or list(narrowed.every))[0], "not_found")


def _is_to_be_told(claim: Claim) -> bool:
    """Whether the results, where they tell such things at all, must tell this one: or it is said to be worked out of them."""
    return claim.quantity.kind in ("money", "time", "date", "percent", "duration") or bool(
        (SUM | DIFFERENCE) & set(split_tokens(claim.sentence)) and claim.quantity.kind == "measure"
    )


def _note(claim: Claim, facts: Sequence[Fact], fact_index: FactIndex) -> Ruling:
    """`unsupported` where a claim says so much that it must come from somewhere, and no fact and no arithmetic has it."""
    number = claim.quantity.number
    telling = claim.quantity.kind in ("date", "time") or (
        number is not None and len(list_significant_digits(number)) > 1 + (claim.quantity.kind == "number")
    )
    if not telling or fact_index.holds(claim.quantity) or is_derivable(claim, facts):
        return OPEN
    if any(_fits(claim, fact) for fact in fact_index.list_derived()):
        return OPEN
    return Ruling("unsupported", facts[0].pointer if facts else None)


def _fits(claim: Claim, fact: Fact) -> bool:
    words = _list_words(claim.sentence)
    return any(relate(claim.quantity, fact, held, about=is_about(claim), words=words) for held in fact.quantities)


@lru_cache(maxsize=16)
def _list_words(sentence: str) -> frozenset[str]:
    return frozenset(split_tokens(sentence))
