"""Check claims about a series: one value a day, from a table that names its subject (`a peak of 523 cases on May 3`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

from service.core.evidence.arithmetic.transforms import name_slip
from service.core.evidence.facts.fact_index import FactIndex
from service.core.evidence.facts.facts import Fact
from service.core.evidence.narration.binding import find_side, is_about
from service.core.evidence.narration.entities import select_days
from service.core.evidence.narration.verdicts import Ruling, Utterances, build_contradiction
from service.core.evidence.reading.dates import MONTHS
from service.core.evidence.reading.quantities import list_significant_digits
from service.core.evidence.reading.words import split_words, stem_word
from service.core.evidence.sentences.claims import ABOUT, HIGHEST, LINKS, LOOSE, LOWEST, MADE, RANGES, Claim
from service.core.evidence.sentences.occasions import find_days

_PER = frozenset({"per", "rate"})
_WORKED_OUT = MADE - _PER
_BARE = (LINKS | RANGES | ABOUT) - HIGHEST - LOWEST
_NAMES = HIGHEST | LOWEST | split_words("value figure reading")
_YEARS = range(1900, 2101)
_ELSEWHEN = re.compile(
    r"[^.,;]{0,60}?\b(?:the (?:end|start|beginning|middle|period|month|year|week)|now|today|average"
    rf"|(?:in|of|by) (?:{'|'.join(MONTHS)})\b(?!,? \d))",
    re.IGNORECASE,
)
"""What follows a number that is for another time than the day named before it."""
_NEAR = 3
"""How many words on each side of a number may say what it counts."""
_ROOM, _ROUGH = Decimal("0.1"), Decimal("0.2")
"""Largest deviation that is not a contradiction, as a share of the larger number: stated plainly, and approximately."""


def check_series(claim: Claim, fact_index: FactIndex, utterances: Utterances) -> Ruling | None:
    """Rule on a claim that gives the value of a series on a day; None if it is no such claim."""
    series = fact_index.find_series()
    if series is None or not _is_of(claim, series.told) or utterances.has(claim.quantity):
        return None
    said, facts = claim.quantity.number, select_days(series.group.facts, find_days(claim))
    held = {value: fact for fact in facts for value in _list_values(fact, claim)}
    if said is None or not held:
        return None
    for value, fact in held.items():
        if _is_near(said, value, claim.quantity.places):
            return Ruling("supported", fact.pointer, "same" if said == value else "rounded")
    return _refute(claim, said, held, series.group.facts)


def _refute(claim: Claim, said: Decimal, held: dict[Decimal, Fact], every: Sequence[Fact]) -> Ruling:
    nearest = min(held, key=lambda value: abs(value - said))
    room = (_ROUGH if is_about(claim) else _ROOM) * max(abs(nearest), abs(said))
    if min(held) <= said <= max(held) or abs(said - nearest) <= room:
        return Ruling("unsupported", held[nearest].pointer)
    if len(held) > 1:
        return build_contradiction(claim, held[nearest], "out_of_range", words=_PER)
    swapped = any(said in _list_values(fact, claim) for fact in every)
    return build_contradiction(
        claim, held[nearest], "swapped_entity" if swapped else name_slip(said, nearest), words=_PER
    )


def _is_of(claim: Claim, told: Mapping[str, frozenset[str]]) -> bool:
    """Whether a number is stated plainly and the words beside it name what the series counts. `told`: title and unit."""
    quantity, number = claim.quantity, claim.quantity.number
    if number is None or not claim.plain or claim.composite or find_side(claim) is not None:
        return False
    start, end = quantity.start - claim.sentence_start, quantity.end - claim.sentence_start
    if claim.sentence[:start].rstrip().endswith("(") or _ELSEWHEN.match(claim.sentence, end):
        return False
    names = told.get("title", frozenset()) | told.get("unit", frozenset()) | _NAMES
    if (_WORKED_OUT | LOOSE) & claim.words - names or not any(c.isdigit() for c in quantity.text):
        return False
    measured = quantity.kind in ("measure", "duration")
    if measured and stem_word(quantity.unit) not in told.get("unit", ()):
        return False
    if quantity.kind not in ("number", "percent", "measure", "duration") or claim.left[-1:] == ("per",):
        return False
    if len(list_significant_digits(number)) < 2 or (number in _YEARS and not quantity.places):
        return False
    left = [word for word in claim.left if word not in _BARE]
    return measured or bool(names & {*left[-_NEAR:], *claim.right[:_NEAR]})


def _list_values(fact: Fact, claim: Claim) -> list[Decimal]:
    """Return a fact's number; for a percentage, a ratio times a hundred too, since tables have either."""
    number = next((held.number for held in fact.quantities if held.number is not None), None)
    if number is None:
        return []
    return [number, number * 100] if claim.quantity.kind == "percent" and abs(number) <= 1 else [number]


def _is_near(said: Decimal, held: Decimal, places: int) -> bool:
    return abs(said - held) <= Decimal(1).scaleb(-places)
