"""The types for clauses: what each mentions, and the entities that it is about."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple

from service.core.evidence.facts.entities import Entity, Words
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
    """Words of a text that may refer to a held value: a name, a quantity, a day, a flag."""

    start: int
    end: int
    text: str
    words: Words = ()
    """The words of a name or a text value."""
    quantity: Quantity | None = None
    weekday: str = ""
    """The weekday, for a day given by its name alone."""
    columns: frozenset[Words] = frozenset()
    """For a text or a flag: the fields that it may be a value of."""
    part: str = ""
    """For a name: the role that the words beside it give it, such as `from`."""
    flag: bool | None = None
    """For a field that is true or false: the value stated."""
    entity: Entity | None = None
    """For a part of a name: the entity so named."""
    head: Words = ()
    """In a table: the words of its column's head."""
    sure: bool = False
    """Whether the words certainly refer to the entity, although they are only part of its name or in lower case."""

    @property
    def is_day(self) -> bool:
        """Whether it is a date or the name of a weekday."""
        return bool(self.weekday) or (self.quantity is not None and self.quantity.kind == "date")


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a sentence. `subjects`: the entities it is about; `sight`: where they are named.

    `sight` is "here" (in the clause), "before" (in an earlier clause of the sentence), "far" (in an earlier sentence), "loose"
    (the subjects are uncertain) or "none".
    """

    start: int
    end: int
    text: str
    sentence: str
    sentence_start: int
    mentions: tuple[ClauseMention, ...]
    subjects: tuple[Entity, ...] = ()
    sight: Sight = "none"
    named: frozenset[int] = frozenset()
    """Start offsets of the mentions that name the subjects."""
    row: bool = False
    keyed: bool = True
    """Whether the names of the subjects come from fields that are unique within their kind."""
    by: frozenset[Words] = frozenset()
    """The fields that name the subjects."""

    def keep_plain(self) -> Clause | None:
        """Return the clause if its sentence states facts, else None.

        Where the sentence says what is possible or usual, keep only its quantities, and the flags of fields such as `returnable`.
        """
        if not _states_fact(self.sentence):
            return None
        if not is_open(self.sentence):
            return self
        able = _CAN_BE.search(self.text)
        kept = [
            one for one in self.mentions if (_is_ability_flag(one) if one.flag is not None and able else one.quantity)
        ]
        return replace(self, mentions=tuple(kept))

    @property
    def words(self) -> list[str]:
        """Its words, case-folded."""
        return split_tokens(self.text)


@lru_cache(maxsize=256)
def find_words(text: str) -> frozenset[str]:
    """Return the words of a clause or a sentence as a set."""
    return frozenset(split_tokens(text))


@lru_cache(maxsize=64)
def _states_fact(sentence: str) -> bool:
    return not sentence.rstrip().endswith("?") and not is_supposed(sentence) and not announces(sentence)


def announces(sentence: str) -> bool:
    """Whether a sentence announces or offers what the assistant is about to do."""
    return _INTENDED.search(sentence) is not None


def _is_ability_flag(mention: ClauseMention) -> bool:
    """Whether a mention is a flag of a field that says what can be done, such as `refundable` or `can_return`."""
    return mention.flag is not None and any(
        path[-1].endswith("able") or path[-1].startswith("can_") for path in mention.columns
    )


def follows_pronoun(clause: Clause) -> bool:
    """Whether a clause's sentence begins with a pronoun and the clause has exactly one subject."""
    return bool(PRONOUN.match(clause.sentence)) and len(clause.subjects) == 1
