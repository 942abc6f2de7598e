"""How many there are: of an array, and of its records that are so or so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal

from service.core.evidence.narration.claims import Claim
from service.core.evidence.narration.fact_index import FactIndex
from service.core.evidence.narration.facts import Collection, Fact, FactRecord
from service.core.evidence.narration.verdicts import Ruling
from service.core.evidence.reading.words import split_tokens, split_words, stem_word

MAX_ITEMS = 200
_OTHERWISE = split_words("other more another last next first each per every up least most about least extra further")
_PARTS = (("of", "them"), ("of", "the"), ("of", "your"), ("of", "these"))


def check_count(claim: Claim, fact_index: FactIndex) -> Ruling | None:
    """The suspicion of a number of things, told of the one array of that name, that nothing there comes to; None else."""
    said = claim.quantity.number
    arrays = [one for one in fact_index.collections if 0 < len(one.items) <= MAX_ITEMS and len(one.items[0].facts) > 1]
    if (
        claim.quantity.kind != "number"
        or said is None
        or claim.composite
        or not claim.plain
        or _OTHERWISE & claim.words
    ):
        return None
    part = claim.right[:2] in _PARTS
    named = [one for one in arrays if claim.right[:1] and one.own and claim.right[0] == one.own[-1]]
    meant = arrays if part else named
    if len(meant) != 1 or not _is_count(said):
        return None
    allowed = _list_allowed(meant[0], _list_words(claim)) if part or len(claim.right) > 1 else {meant[0].size}
    if said in {*allowed, *({meant[0].size} if not part else set[int]())}:
        return None
    note = f"the text says {claim.quantity.text}, {'.'.join(meant[0].path) or 'the result'} has {meant[0].size} items"
    return Ruling("suspected", meant[0].pointer, None, "wrong_count", note)


def _is_count(said: Decimal) -> bool:
    return said == said.to_integral_value() and 0 <= said <= MAX_ITEMS


def _list_words(claim: Claim) -> set[str]:
    at = claim.quantity.end - claim.sentence_start
    return {stem_word(word) for word in split_tokens(claim.sentence[at : at + 60])}


def _list_allowed(collection: Collection, words: set[str]) -> set[int]:
    """The numbers of records that share a value: of one that the words name only that, where they name one."""
    counts: Counter[tuple[tuple[str, ...], str]] = Counter()
    named: set[tuple[tuple[str, ...], str]] = set()
    for fact in _iter_sorts(collection.items):
        key = fact.path, str(fact.value)
        counts[key] += 1
        said = fact.own if isinstance(fact.value, bool) else tuple(map(stem_word, split_tokens(str(fact.value))))
        if said and set(said) - {"is", "has"} <= words:
            named.add(key)
    exact = {counts[key] for key in named}
    return exact or {0, collection.size, *counts.values()}


def _iter_sorts(items: Sequence[FactRecord]) -> Iterator[Fact]:
    for item in items:
        for fact in item.facts:
            if isinstance(fact.value, bool | str):
                yield fact
