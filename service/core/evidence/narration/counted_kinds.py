"""Check how many records of a kind a text counts: `11 available shirts`, `two confirmed visits`.

The word after the number names a field that is true or false, or a value of a field. A text may count fewer than there are,
since its words may limit them further, but never more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from service.core.evidence.facts.entities import Entity, Group, Holdings, read_flag
from service.core.evidence.facts.facts import Fact
from service.core.evidence.narration.verdicts import Ruling, Saying, Utterances
from service.core.evidence.reading.words import split_tokens, stem_word
from service.core.evidence.sentences.claims import MADE
from service.core.evidence.sentences.mentions import Clause, ClauseMention

MAX_COUNTED = 400
"""Larger numbers are not checked."""
_REACH = 4
"""How many words after the kind may hold the plural that is counted."""
_Counts = dict[Group, tuple[int, Fact]]
"""For each kind of entity, how many fit, and the first fact that does."""


def check_counted_kinds(clauses: Sequence[Clause], holdings: Holdings, utterances: Utterances) -> Iterator[Saying]:
    """Suspect each number that counts more records of a kind than all results together hold."""
    for clause in clauses:
        for mention in clause.mentions:
            ruling = _check(mention, clause, holdings, utterances)
            if ruling is not None:
                yield Saying(mention.start, mention.end, mention.text, ruling)


def _check(mention: ClauseMention, clause: Clause, holdings: Holdings, utterances: Utterances) -> Ruling | None:
    said = mention.quantity
    number = said.number if said is not None and said.kind == "number" else None
    if said is None or number is None or not 1 < number <= MAX_COUNTED or utterances.has(said):
        return None
    after = split_tokens(clause.text[mention.end - clause.start :])
    if not any(word.endswith("s") for word in after[1 : 1 + _REACH]) or MADE & {*clause.words}:
        return None
    counts = holdings.once((check_counted_kinds, after[0]), lambda: _count_kind(after[0], holdings))
    most = sum(n for n, _ in counts.values())
    if not counts or number <= most or _is_held(after[0], number, holdings):
        return None
    _, fact = next(iter(counts.values()))
    note = f"the text says {mention.text} {after[0]}, and of {'.'.join(fact.path)} {most} are"
    return Ruling("suspected", fact.pointer, None, "wrong_count", note, None)


def _count_kind(word: str, holdings: Holdings) -> _Counts:
    """Count, for each kind of several entities, those for which a word holds: a flag that is true, or a value."""
    found: dict[Group, Counter[bool]] = {}
    first: dict[Group, Fact] = {}
    for entity in holdings.entities:
        fact = _find_kind(word, entity) if len(holdings.groups.get(entity.group, ())) > 1 else None
        if fact is not None:
            found.setdefault(entity.group, Counter())[read_flag(fact) is not False] += 1
            first.setdefault(entity.group, fact)
    return {group: (counter[True], first[group]) for group, counter in found.items()}


def _find_kind(word: str, entity: Entity) -> Fact | None:
    """Find the fact of an entity that tells whether a word holds for it; a text in a list of texts tells nothing."""
    listed = entity.collection.path if entity.collection is not None else None
    for fact in entity.own:
        if fact.path == listed:
            continue
        flag = read_flag(fact)
        if fact.own == (stem_word(word),) and flag is not None:
            return fact
        if flag is None and isinstance(fact.value, str) and fact.value.lower() == word:
            return fact
    return None


def _is_held(word: str, number: object, holdings: Holdings) -> bool:
    """Whether a field named by the word, or a list, has this number."""
    return any(
        stem_word(word) in {*fact.own, *fact.above} and any(held.number == number for held in fact.quantities)
        for fact in holdings.facts
        if fact.quantities
    )
