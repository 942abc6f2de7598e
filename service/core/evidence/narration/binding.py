"""Bind a claim to the fields that its words name, and tell how close the names are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from service.core.evidence.facts.fact_index import GENERIC, FactGroup, FactIndex
from service.core.evidence.reading import numbers
from service.core.evidence.reading.units import UNITS
from service.core.evidence.reading.words import abbreviates, split_tokens
from service.core.evidence.sentences.claims import (
    ABOUT,
    COMPARING,
    HIGHEST,
    LINKS,
    LOWEST,
    OVER,
    RANGES,
    UNDER,
    Claim,
)

_THAN = {"more": "over", "higher": "over", "greater": "over", "less": "under", "lower": "under", "fewer": "under"}

_DIMENSIONS = {
    unit.name: (unit.dimension,) for unit in UNITS.values() if unit.dimension in ("temperature", "pressure", "mass")
}
"""What each unit measures, where that can stand in for a field name: `a high of 9 °C`."""

_PART_OF = re.compile(rf"(?:\d+|{numbers.WORDS}) (?:out )?of")
_ENDS = HIGHEST | LOWEST
_BETWEEN = (LINKS | RANGES | ABOUT) - _ENDS


def bind(claim: Claim, fact_index: FactIndex) -> list[FactGroup]:
    """Return the fields whose whole name is among a claim's words.

    Of these it keeps the ones named right beside the number, if any, and then the best match: the most words of its own
    name and of the enclosing names.
    """
    unit = claim.quantity.unit
    groups = fact_index.find_named(claim.label, claim.quantity) or fact_index.find_named(
        _find_dimension(claim), claim.quantity
    )
    if claim.quantity.kind in ("measure", "duration"):
        groups = [group for group in groups if unit in group.units] or groups
    if claim.quantity.kind == "money":
        groups = [group for group in groups if group.is_money or "money" in group.kinds]
    groups = _pick_compound(claim, groups) or [group for group in groups if is_direct(claim, [group])] or groups
    best = max((_score_fit(group, claim) for group in groups), default=0)
    return [group for group in groups if _score_fit(group, claim) == best]


def _find_dimension(claim: Claim) -> tuple[str, ...]:
    """Return what a number's unit measures if nothing but `a high of` or the like precedes it, else ()."""
    last = [word for word in claim.left[-6:] if word not in _BETWEEN][-1:]
    return _DIMENSIONS.get(claim.quantity.unit, ()) if _ENDS.intersection(last) else ()


def _pick_compound(claim: Claim, groups: Sequence[FactGroup]) -> list[FactGroup]:
    """Prefer a field with a compound name: `a feels-like temperature of 5` is not about the plain temperature."""
    left = _drop_links(claim) if not claim.exact and any(len(group.own) > 1 for group in groups) else []
    return [g for g in groups if len(g.own) > 1 and g.is_named_in(left[-len(g.own) - 1 : -1])]


def _score_fit(group: FactGroup, claim: Claim) -> int:
    return len(group.own) + len(group.above & claim.words)


def is_direct(claim: Claim, groups: Sequence[FactGroup]) -> bool:
    """Whether the field's name is right beside the number: `price: 5`, `the price of it is 5`, `5 seats`.

    In a label it must be the whole label: `amount deducted` is not `amount`.
    """
    if claim.exact:
        named = {word for group in groups for word in (*group.own, *group.above)}
        return all(word in LINKS | GENERIC or any(abbreviates(short, word) for short in named) for word in claim.label)
    left = _drop_links(claim)
    if _pick_compound(claim, groups) or any(
        group.own and group.is_named_in(_find_dimension(claim)) for group in groups
    ):
        return True
    return any(
        group.own and (group.is_named_in(left[-len(group.own) :]) or group.is_named_in(claim.right[: len(group.own)]))
        for group in groups
    )


def _drop_links(claim: Claim) -> list[str]:
    """Return the words before a number without the ones that only link it to a name."""
    passed = LINKS | RANGES if claim.extreme is not None or claim.quantity.kind == "measure" else LINKS
    if find_side(claim) is not None:
        passed = passed | COMPARING
    left = list(claim.left)
    while left and (left[-1] in passed or any(c.isdigit() for c in left[-1])):
        left.pop()
    return left


def find_side(claim: Claim) -> Literal["over", "under"] | None:
    """Return which side of its number a claim puts the value on: `over $200`, `less than 5`."""
    near = list_words_before(claim)[-2:]
    word = _THAN.get(near[0]) if near[1:] == ["than"] else None
    if word == "over" or OVER & set(near):
        return "over"
    return "under" if word == "under" or UNDER & set(near) else None


def list_words_before(claim: Claim) -> list[str]:
    """Return the last few words of the sentence before the claim (60 characters)."""
    at = claim.quantity.start - claim.sentence_start
    return split_tokens(claim.sentence[max(0, at - 60) : at])


def is_about(claim: Claim) -> bool:
    """Whether a number is approximate: `about 5`, `~5`."""
    at = claim.quantity.start - claim.sentence_start
    return bool(ABOUT & set(list_words_before(claim)[-3:])) or claim.sentence[:at].endswith("~")


def is_of_how_many(claim: Claim, groups: Sequence[FactGroup]) -> bool:
    """Whether a bare number only tells how many things are meant: `the price for 3 is`, `Of 40 seats`, `the three of you`."""
    near = list_words_before(claim)[-2:]
    if claim.quantity.kind == "number" and (claim.right[:1] == ("of",) or _PART_OF.fullmatch(" ".join(near))):
        return True
    if claim.quantity.kind != "number" or not near or near[-1] not in {"for", "of"}:
        return False
    return near[-1] == "for" or near == ["of"] or (bool(claim.right) and any(group.is_money for group in groups))
