"""Find the flags that a clause states: fields that are true or false."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from service.core.evidence.facts.entities import Words
from service.core.evidence.reading.words import split_words, stem_word
from service.core.evidence.sentences.claims import NEGATED
from service.core.evidence.sentences.mentions import Clause, ClauseMention

_TOKEN = re.compile(r"[^\W_]+")
_IS = split_words("is are was were been be being s has have isn aren wasn weren hasn haven with without no not")
_OPPOSITE = ("un", "in", "non", "im", "dis")
_NEGATED = NEGATED - {"non"}
_BESIDE_FLAG = _NEGATED | split_words("the a an it also non un already currently now fully yes and")
"""Words that may accompany a flag in a clause that says nothing else."""


def find_flags(clause: Clause, known: Mapping[frozenset[str], frozenset[Words]]) -> Iterator[ClauseMention]:
    """Find the flags that a clause states: `is refundable`, `unpaid`, `cannot be returned`."""
    tokens = list(_TOKEN.finditer(clause.text))
    words = [token.group().casefold() for token in tokens]
    stems = [_list_stems(words, at) for at in range(len(words))]
    for names, columns in known.items() if tokens else ():
        places = [next((n for n, said in enumerate(stems) if name in said), None) for name in names]
        at = max((place for place in places if place is not None), default=None)
        if None in places or at is None:
            continue
        name = next(one for one in names if one in stems[at])
        near = {*words[max(0, at - 5) : at + 5]}
        alone = [word for n, word in enumerate(words) if not names & {*stems[n]} and word not in _BESIDE_FLAG]
        if (alone and not _IS & near) or clause.sentence[clause.end - clause.sentence_start :][:1] == ":":
            continue
        denied = stems[at].get(name, False) ^ bool(_NEGATED & {*words[max(0, at - 5) : at + 4]})
        start, end = clause.start + tokens[at].start(), clause.start + tokens[at].end()
        yield ClauseMention(
            start, end, clause.text[tokens[at].start() : tokens[at].end()], columns=columns, flag=not denied
        )


def _list_stems(words: Sequence[str], at: int) -> dict[str, bool]:
    """Return the stems that a word can stand for, each with whether the word negates it."""
    word = words[at]
    found = {stem_word(word): False}
    for prefix in _OPPOSITE:
        if word.startswith(prefix) and len(word) > len(prefix) + 3:
            found[stem_word(word[len(prefix) :])] = True
    if word in _OPPOSITE and at + 1 < len(words):
        found = {}
    if at and words[at - 1] in _OPPOSITE:
        found = {stem_word(word): True}
    if word.endswith("ed") and at and words[at - 1] == "be":
        found[f"{word[:-2]}able"] = False
        found[f"{word[:-1]}able"] = False
    return found
