"""Suspect what a row or a list item takes from another record: all but one of its values are of one record.

A row that says `Maple (W-1203, Jersey): 46 lb` of a record that is called Juniper mixes two: every value is held somewhere,
so only the others on the row tell which record it is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from service.core.evidence.facts.entities import Entity, Holdings
from service.core.evidence.narration.fitting import Fitting, fit
from service.core.evidence.narration.verdicts import Saying, Utterances, suspect
from service.core.evidence.reading.words import split_tokens, split_words
from service.core.evidence.sentences.claims import COMPARING, DENYING, PRONOUN
from service.core.evidence.sentences.mentions import Clause, ClauseMention

MAX_CANDIDATES = 8
"""Records that a row is compared with: those that hold one of its values and few others do."""
MIN_HELD = 2
"""Fewest values of a row that must be of one record."""
_ITEM = re.compile(r"\s*(?:>\s*)?(?:[-*•]|\d+[.)])\s")
_CHANGING = COMPARING | DENYING | split_words("than ahead behind like as before after over under")
"""Words beside which a value may well be that of another record."""


def check_mixed_records(
    text: str, clauses: Sequence[Clause], holdings: Holdings, utterances: Utterances
) -> Iterator[Saying]:
    """Yield a suspicion for the one value of a row or an item that is of another record than the rest."""
    for start, group in groupby(clauses, key=lambda clause: clause.sentence_start):
        row = [*group]
        line = text.rfind("\n", 0, start + 1) + 1
        yield from _check_row(row, holdings, utterances, prose=not (row[0].row or _ITEM.match(text, line)))


def _check_row(row: Sequence[Clause], holdings: Holdings, utterances: Utterances, *, prose: bool) -> Iterator[Saying]:
    said = [
        (mention, clause)
        for clause in row
        for mention in clause.mentions
        if not mention.weekday and mention.flag is None
    ]
    for candidates in _list_candidates(said, holdings):
        fits = {id(entity): [fit(*one, entity) for one in said] for entity in candidates}
        best = max(candidates, key=lambda entity: sum(one.holds is True for one in fits[id(entity)]))
        odd = _find_odd(fits[id(best)], [fits[id(entity)] for entity in candidates if entity is not best])
        if odd is None:
            continue
        mention, clause = said[odd]
        if mention.part or _list_words([clause]) & _CHANGING:
            continue
        if prose and not _is_sole_name(mention, row):
            continue
        if mention.quantity is not None and utterances.has(mention.quantity):
            continue
        fact = fits[id(best)][odd].facts[0]
        ruling = suspect(mention.text, fact, "swapped_entity")._replace(words=None)
        yield Saying(mention.start, mention.end, mention.text, ruling, firm=True)


def _find_odd(best: Sequence[Fitting], others: Sequence[Sequence[Fitting]]) -> int | None:
    """Return the place of the only value that the record does not hold and another one does; None if there is no such."""
    odd = [n for n, one in enumerate(best) if one.holds is False and any(other[n].holds for other in others)]
    held = sum(one.holds is True for one in best)
    rival = max((sum(one.holds is True for one in other) for other in others), default=0)
    return odd[0] if len(odd) == 1 and held >= MIN_HELD and held > rival else None


def _list_candidates(said: Sequence[tuple[ClauseMention, Clause]], holdings: Holdings) -> list[list[Entity]]:
    """Return the entities that hold some value of the row, by kind; only kinds of which there are two or more."""
    found: dict[object, dict[int, Entity]] = {}
    for mention, _ in said:
        owners = _list_owners(mention, holdings)
        if len(owners) <= MAX_CANDIDATES:
            for entity in owners:
                if entity.group and len(found.setdefault(entity.group, {})) < MAX_CANDIDATES:
                    found[entity.group][id(entity)] = entity
    return [[*each.values()] for each in found.values() if len(each) > 1]


def _list_owners(mention: ClauseMention, holdings: Holdings) -> list[Entity]:
    if mention.entity is not None:
        return [mention.entity]
    if mention.words:
        return [name.entity for name in holdings.names.get(mention.words, ())]
    if mention.quantity is None:
        return []
    facts = [fact for value in mention.quantity.values for fact in holdings.by_value.get(value, ())]
    return [holdings.find_owner(fact) for fact in facts[: MAX_CANDIDATES + 1]]


def _is_sole_name(mention: ClauseMention, row: Sequence[Clause]) -> bool:
    """Whether a mention alone says which record a sentence is about."""
    named = [one for clause in row for one in clause.mentions if one.start in clause.named and not one.quantity]
    return named == [mention] and not _list_words(row) & _CHANGING and not PRONOUN.match(row[0].sentence)


def _list_words(clauses: Sequence[Clause]) -> set[str]:
    """Return the words of clauses without those of what they mention."""
    known = {word for clause in clauses for one in clause.mentions for word in split_tokens(one.text)}
    return {word for clause in clauses for word in clause.words} - known
