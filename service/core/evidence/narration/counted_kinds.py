"""Check how many records of a kind a text counts: `11 available shirts`, `two of the three are confirmed`.

The word after the number names a field that is true or false, or a value of a field. A text may count fewer than there are,
since its words may limit them further, but never more. Where it says of how many, and one word says which, neither.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from service.core.evidence.facts.entities import Entity, Group, Holdings, read_flag
from service.core.evidence.facts.facts import Fact
from service.core.evidence.narration.fitting import fit
from service.core.evidence.narration.verdicts import OPEN, Ruling, Saying, Utterances
from service.core.evidence.reading.words import split_tokens, split_words, stem_word
from service.core.evidence.sentences.claims import COMPARING, LOOSE, MADE, NEGATED
from service.core.evidence.sentences.mentions import Clause, ClauseMention

MAX_COUNTED = 400
"""Larger numbers are not checked."""
_REACH = 4
"""How many words after the kind may hold the plural that is counted."""
_PART = re.compile(r"\s(?:out )?of (?:the|your|our|these|those|all )?")
_LIMITING = LOOSE | MADE | COMPARING | split_words("other others another first last next more about")
_Counts = dict[Group, tuple[int, Fact]]
"""For each kind of entity, how many fit, and the first fact that does."""


def check_counted_kinds(clauses: Sequence[Clause], holdings: Holdings, utterances: Utterances) -> Iterator[Saying]:
    """Suspect each number that counts more records of a kind than all results together hold."""
    for clause in clauses:
        for mention in clause.mentions:
            ruling = _check(mention, clause, holdings, utterances)
            part = _check_part(mention, clause, holdings)
            if ruling or part:
                yield Saying(mention.start, mention.end, mention.text, part or ruling or OPEN, firm=part is not None)


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


def _check_part(mention: ClauseMention, clause: Clause, holdings: Holdings) -> Ruling | None:
    """Suspect the number of `two of the three are confirmed` if it is not how many of a kind of three are."""
    number = mention.quantity.number if mention.quantity is not None and mention.quantity.kind == "number" else None
    part = _PART.match(clause.text, mention.end - clause.start)
    after = [one for one in clause.mentions if one.start >= mention.end]
    whole = after[0].quantity if after else None
    if part is None or number is None or whole is None or whole.number is None or _LIMITING & {*clause.words}:
        return None
    groups = [group for group, members in holdings.groups.items() if len(members) == whole.number <= MAX_COUNTED]
    said = [one for one in after[1:] if one.columns]
    if said:
        counts = [_count_mention(one, clause, holdings, groups) for one in said[:1] if len(said) == 1]
    else:
        words = split_tokens(clause.text[after[0].end - clause.start :])
        denied = bool(NEGATED & {*words})
        counts = [_count_word(word, holdings, groups, denied=denied) for word in words if word.isalpha()]
    found = [count for each in counts for count in each]
    if not found or any(n == number for n, _ in found):
        return None
    most, fact = found[0]
    note = f"the text says {mention.text} of {whole.text}, and of {'.'.join(fact.path)} {most} are"
    return Ruling("suspected", fact.pointer, None, "wrong_count", note, None)


def _count_mention(
    mention: ClauseMention, clause: Clause, holdings: Holdings, groups: Sequence[Group]
) -> list[tuple[int, Fact]]:
    """Count, in each of some kinds, the entities that hold what is mentioned."""
    found: list[tuple[int, Fact]] = []
    for group in groups:
        key = check_counted_kinds, group, mention.words, mention.flag, mention.columns
        fits = holdings.once(key, lambda group=group: [fit(mention, clause, one) for one in holdings.groups[group]])
        if all(one.holds is not None for one in fits):
            found.append((sum(one.holds is True for one in fits), fits[0].facts[0]))
    return found


def _count_word(word: str, holdings: Holdings, groups: Sequence[Group], *, denied: bool) -> list[tuple[int, Fact]]:
    counts = holdings.once((check_counted_kinds, word), lambda: _count_kind(word, holdings))
    sizes = {group: len(holdings.groups[group]) for group in groups if group in counts}
    return [
        (size - counts[group][0] if denied else counts[group][0], counts[group][1]) for group, size in sizes.items()
    ]


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
