"""Define the verdict on a claim, and build contradictions and suspicions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, NamedTuple

from service.core.evidence.facts.facts import Fact
from service.core.evidence.reading.quantities import Quantity
from service.core.evidence.sentences.claims import ENDS, Claim
from service.core.json.values import format_value

Verdict = Literal["supported", "contradicted", "suspected", "unsupported", "not_checkable"]


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """The verdict on one claim: `path` is the pointer of its text, `start` and `end` its character range there.

    `source` is the pointer of the fact that proves or refutes it, `transform` how that fact becomes what is said. A
    contradiction has a `code` and a `note`, and so does a suspicion, which proves nothing. A claim that is not checkable
    may have a source too: a fact that fits and might be meant.
    """

    path: str
    start: int
    end: int
    text: str
    verdict: Verdict
    source: str | None = None
    transform: str | None = None
    code: str | None = None
    note: str | None = None


class Ruling(NamedTuple):
    """A verdict without its place in the text."""

    verdict: Verdict
    source: str | None = None
    transform: str | None = None
    code: str | None = None
    note: str | None = None
    words: frozenset[str] | None = frozenset()
    """Words it relies on beyond those of the field and its record; None if it has already read the whole clause."""


OPEN = Ruling("not_checkable")
"""The ruling where nothing can be decided."""


class Utterances(NamedTuple):
    """What was said outside the results: repeating it does not retell a result."""

    has: Callable[[Quantity], bool]
    """Whether the user or the system said a quantity, or a call passed it as an argument."""
    words: Callable[[str], bool]
    """Whether they used these words."""
    today: date | None = None
    """The day on which the trace says it takes place."""
    numbers: Callable[[], Sequence[Quantity]] = tuple
    """The latest quantities that others said."""
    quantities: Callable[[], Sequence[Quantity]] = tuple
    """All quantities that others said, that calls passed, and that tool descriptions contain."""


def build_contradiction(
    claim: Claim, fact: Fact, code: str, how: str = "", words: frozenset[str] = frozenset()
) -> Ruling:
    """Build a contradiction of a fact. `how` precedes the claim's text in the note: `over $200`; `words`: see `Ruling`."""
    words = words | ENDS if claim.extreme is not None else words
    note = (
        f"the text says {how}{claim.quantity.text}, {'.'.join(fact.path) or 'the result'} is {format_value(fact.value)}"
    )
    return Ruling("contradicted", fact.pointer, None, code, note, words)


def build_suspicion(claim: Claim, fact: Fact, code: str) -> Ruling:
    """Build a suspicion: the claim may contradict the fact, but its words do not prove it."""
    return build_contradiction(claim, fact, code)._replace(verdict="suspected")


class Saying(NamedTuple):
    """A place in a text with the ruling on what it says."""

    start: int
    end: int
    text: str
    ruling: Ruling
    firm: bool = False
    """Whether a suspicion stands although the value by itself is supported: the words around it say more."""


def suspect(said: str, fact: Fact, code: str) -> Ruling:
    """Build the suspicion that the words `said` contradict a fact."""
    note = f"the text says {said}, {'.'.join(fact.path) or 'the result'} is {format_value(fact.value)}"
    return Ruling("suspected", fact.pointer, None, code, note)
