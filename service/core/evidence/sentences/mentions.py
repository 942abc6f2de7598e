"""Clauses as values: what each mentions, and the entities that it speaks of."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple

from service.core.evidence.facts.held import Entity, Words
from service.core.evidence.reading.quantities import Quantity
from service.core.evidence.reading.words import split_tokens
from service.core.evidence.sentences.claims import PRONOUN, is_open, is_supposed

_CAN_BE = re.compile(r"\bcan(?:not|['\u2019]t| not)?(?: still| also)? be\b", re.IGNORECASE)
_INTENDED = re.compile(
    r"\b(?:I|we)(?:['\u2019]ll| will|['\u2019]m going to| am going to)\b|\blet me\b|\blet['\u2019]s\b", re.IGNORECASE
)

MAX_SUBJECTS = 8

Sight = Literal["here", "before", "loose", "far", "none"]


class ClauseMention(NamedTuple):
    """Words of a text that may stand for a value that is held: a name, a quantity, a day."""

    start: int
    end: int
    text: str
    words: Words = ()
    """Of a name or a text: its words."""
    quantity: Quantity | None = None
    weekday: str = ""
    """Of a day that is said by its name alone."""
    columns: frozenset[Words] = frozenset()
    """Of a text, a flag: the fields that it may be the value of."""
    part: str = ""
    """Of a name: the part that the words beside it give it, `from` say."""
    flag: bool | None = None
    """Of a field that is true or false: which is said."""
    entity: Entity | None = None
    """Of a part of a name: whose it is."""
    head: Words = ()
    """In a table: the words at the head of its column."""
    sure: bool = False
    """Whether the part stands for the name."""

    @property
    def is_day(self) -> bool:
        """Whether it is a date, or the name of a day."""
        return bool(self.weekday) or (self.quantity is not None and self.quantity.kind == "date")


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a sentence. `subjects`: the entities it speaks of; `sight`: where they are named."""

    start: int
    end: int
    text: str
    sentence: str
    sentence_start: int
    mentions: tuple[ClauseMention, ...]
    subjects: tuple[Entity, ...] = ()
    sight: Sight = "none"
    named: frozenset[int] = frozenset()
    """The places of mentions that name the subjects."""
    row: bool = False
    keyed: bool = True
    """Whether what names the subjects tells all of their kind apart."""
    by: frozenset[Words] = frozenset()
    """The fields by which the subjects are named."""

    def keep_plain(self) -> Clause | None:
        """The clause, if its sentence supposes nothing; of one that tells what can be its numbers, and what is returnable."""
        if not _states_fact(self.sentence):
            return None
        if not is_open(self.sentence):
            return self
        able = _CAN_BE.search(self.text)
        kept = [one for one in self.mentions if (_is_able(one) if one.flag is not None and able else one.quantity)]
        return replace(self, mentions=tuple(kept))

    @property
    def words(self) -> list[str]:
        """Its words without case."""
        return split_tokens(self.text)


@lru_cache(maxsize=256)
def find_words(text: str) -> frozenset[str]:
    """The words of a clause or a sentence."""
    return frozenset(split_tokens(text))


@lru_cache(maxsize=64)
def _states_fact(sentence: str) -> bool:
    return not sentence.rstrip().endswith("?") and not is_supposed(sentence) and not announces(sentence)


def announces(sentence: str) -> bool:
    """Whether a sentence announces or offers what the assistant is about to do."""
    return _INTENDED.search(sentence) is not None


def _is_able(mention: ClauseMention) -> bool:
    """Whether it is of a field that says what can be done."""
    return mention.flag is not None and any(
        path[-1].endswith("able") or path[-1].startswith("can_") for path in mention.columns
    )


def follows_pronoun(clause: Clause) -> bool:
    """Whether a sentence begins with a word for what the one before it speaks of."""
    return bool(PRONOUN.match(clause.sentence)) and len(clause.subjects) == 1
