"""Check how many things a text says there are: `3 of them are refundable`, `there are no flights`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from service.core.evidence.facts.entities import Entity, Holdings
from service.core.evidence.facts.facts import Collection, Fact
from service.core.evidence.narration.fitting import fit
from service.core.evidence.narration.verdicts import Ruling, Saying
from service.core.evidence.reading.words import split_tokens, split_words, stem_word
from service.core.evidence.sentences.claims import MADE, NEGATED
from service.core.evidence.sentences.mentions import Clause, ClauseMention

_NONE = re.compile(r"\b(?:no|none of|not a single|not any|zero|nothing|neither)\b", re.IGNORECASE)
_SOME = re.compile(r"\b(?:there (?:is|are|was|were)|found)\s+(?:an?|one|some|several|many)?\b", re.IGNORECASE)
_PARTS = (("of", "them"), ("of", "the"), ("of", "your"), ("of", "these"), ("of", "those"))
_OTHERWISE = split_words(
    "other more another next last first each per every up least most about extra further than under over above below "
    "after before until since between least but except besides who whose that which page top only new"
)
_BLANK = split_words(
    "the a an is are was were be been in on at to for of from your you i we there here all as found available today "
    "tomorrow currently now listed total in yes no unfortunately sorry matching results result found have has with and "
    "them these those"
)
_TELLS = split_words("are were have has found see against lists list shows made")
_PER = split_words("a an per each every")
_REACH = 3
"""How many words may separate a number from the noun it counts."""
MAX_ITEMS = 400
"""Arrays with more items, and larger numbers, are not checked."""


class _Tally(NamedTuple):
    """A number of things that a clause gives, and its place in the text."""

    start: int
    end: int
    number: int
    of_some: bool
    """Whether it is a lower bound: `there are some`."""


def check_tallies(clauses: Sequence[Clause], holdings: Holdings, arrays: Sequence[Collection]) -> Iterator[Saying]:
    """Find clauses that miscount the items of an array, or the items with some property."""
    named = [one for one in arrays if one.size <= MAX_ITEMS and (not one.items or one.items[0].facts)]
    for clause in clauses:
        for tally in _list_tallies(clause) if named else ():
            yield from _check(tally, clause, holdings, named)


def _list_tallies(clause: Clause) -> Iterator[_Tally]:
    for mention in clause.mentions:
        said = mention.quantity
        number = said.number if said is not None and said.kind == "number" else None
        if number is not None and number == number.to_integral_value() and 0 <= number <= MAX_ITEMS:
            yield _Tally(mention.start, mention.end, int(number), of_some=False)
    none = _NONE.search(clause.text)
    if none is not None:
        yield _Tally(clause.start + none.start(), clause.start + none.end(), 0, of_some=False)
    some = _SOME.search(clause.text) if none is None and not NEGATED & {*clause.words} else None
    if some is not None:
        yield _Tally(clause.start + some.start(), clause.start + some.end(), 1, of_some=True)


def _check(tally: _Tally, clause: Clause, holdings: Holdings, arrays: Sequence[Collection]) -> Iterator[Saying]:
    after = split_tokens(clause.text[tally.end - clause.start :])
    stems = [stem_word(word) for word in after]
    part = tuple(after[:2]) == ("of", "them") or (tuple(after[:2]) in _PARTS and not stems[2:3])
    if {*after[:2]} & _PER or MADE & {*clause.words}:
        return
    if tally.number == 1 and {"is", "was"} & {*split_tokens(clause.text[: tally.start - clause.start])[-1:]}:
        return
    meant = [one for one in arrays if one.own and one.own[-1] in stems[: _REACH + 1]]
    if part and not meant:
        meant = [one for one in arrays if one.items and len(one.items) > 1]
    if not meant and _tells_all(tally, clause, after):
        meant = [one for one in arrays if not one.path and not _has_field(one, stems[0])]
    if not meant and after[:1] and after[0] in ("is", "are", "were") and len(arrays) == 1:
        meant = [one for one in arrays if not one.size]
    if len({one.path for one in meant}) != 1 or len(meant) != 1 or _OTHERWISE & {*clause.words}:
        return
    one = meant[0]
    members = [entity for entity in holdings.entities if entity.collection is one and entity.group[:1] == ("array",)]
    if not members and one.size:
        return
    allowed = _list_allowed(tally, clause, one, members)
    if allowed is None or tally.number in allowed or (tally.of_some and any(n >= 1 for n in allowed)):
        return
    said = clause.text[tally.start - clause.start : tally.end - clause.start].strip()
    note = f"the text says {said}, {'.'.join(one.path) or 'the result'} has {one.size} items"
    ruling = Ruling("suspected", one.pointer, None, "wrong_count", note, None)
    yield Saying(tally.start, tally.start + len(said), said, ruling)


def _has_field(array: Collection, noun: str) -> bool:
    return any(noun in fact.own for record in array.items[:1] for fact in record.facts)


def _tells_all(tally: _Tally, clause: Clause, after: Sequence[str]) -> bool:
    """Whether a number counts everything there is, by whatever name: `there are 3 bids`."""
    before = split_tokens(clause.text[: tally.start - clause.start])[-2:]
    noun = after[:1] and after[0].endswith("s") and not after[0].endswith("ss")
    return bool(noun and _TELLS & {*before[-1:]})


def _list_allowed(tally: _Tally, clause: Clause, array: Collection, members: Sequence[Entity]) -> set[int] | None:
    """Return the numbers that fit; None if words limit what is counted in a way that code cannot check."""
    if not array.size:
        return {0}
    whole = tally.number and split_tokens(clause.text[: tally.start - clause.start])[-2:-1] == ["of"]
    if whole:
        return {array.size}
    limits = [m for m in clause.mentions if (m.columns or m.flag is not None) and m.start not in clause.named]
    limits = [m for m in limits if any(fact.path in m.columns for entity in members for fact in entity.inside)]
    unknown = _has_other_words(tally, clause, array, limits)
    ahead = split_tokens(clause.text[: tally.start - clause.start])[-1:]
    after = split_tokens(clause.text[tally.end - clause.start :])[:1]
    if unknown and (not tally.number or not ((_TELLS | {"all", "both"}) & {*ahead} or after == ["of"])):
        return None
    others = {*range(array.size + 1)} if unknown else set[int]()
    if limits:
        return {sum(all(fit(m, clause, entity).holds for m in limits) for entity in members), *others}
    return {array.size, *others, *_iter_enclosing_counts(members), *_iter_sums(members)}


def _has_other_words(tally: _Tally, clause: Clause, array: Collection, limits: Sequence[ClauseMention]) -> bool:
    """Whether words beside a number may limit what is counted by something that results do not hold."""
    known = {word for mention in limits for word in split_tokens(mention.text)} | _BLANK
    known = known - {"available"} if tally.number else known
    beside = clause.text[: tally.start - clause.start] + " " + clause.text[tally.end - clause.start :]
    return any(word not in known and stem_word(word) not in array.own for word in split_tokens(beside))


def _iter_enclosing_counts(members: Sequence[Entity]) -> Iterator[int]:
    for fact in members[0].iter_around() if members else ():
        yield from _read_count(fact)


def _iter_sums(members: Sequence[Entity]) -> Iterator[int]:
    """Yield the sum over all members of each field that counts something."""
    columns: dict[tuple[str, ...], int] = {}
    for fact in (fact for entity in members for fact in entity.own):
        for count in _read_count(fact):
            columns[fact.path] = columns.get(fact.path, 0) + count
    yield from columns.values()


def _read_count(fact: Fact) -> list[int]:
    numbers = [held.number for held in fact.quantities[:1] if held.kind == "number" and held.number is not None]
    return [int(number) for number in numbers if number == number.to_integral_value()]
