"""The verdict on a claim."""

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
    """One claim of a text: `path` is the text's pointer, `start` and `end` the claim's place in it.

    `source` is the pointer of the fact that proves or refutes it, `transform` how the one is said as the other. A
    contradiction has a `code` and a `note`, and so has what is `suspected` to be one: by structure that is inferred, which
    proves nothing. A claim that cannot be checked may have a source too: a fact that could be meant, and fits.
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
    """A verdict without its place."""

    verdict: Verdict
    source: str | None = None
    transform: str | None = None
    code: str | None = None
    note: str | None = None
    words: frozenset[str] | None = frozenset()
    """Words that it rests on beside those of the field and its record; None where it reads its clause itself."""


OPEN = Ruling("not_checkable")


class Utterances(NamedTuple):
    """What was said or asked for otherwise: a claim of these is no retelling of a result."""

    has: Callable[[Quantity], bool]
    """Whether the user or the system said a quantity, or a call had it among its arguments."""
    words: Callable[[str], bool]
    """Whether they said these words."""
    today: date | None = None
    """The day that the trace gives as its own."""
    numbers: Callable[[], Sequence[Quantity]] = tuple
    """The last quantities that others said."""
    quantities: Callable[[], Sequence[Quantity]] = tuple
    """All quantities that others said, that calls were made with, and that tools describe."""


def build_contradiction(
    claim: Claim, fact: Fact, code: str, how: str = "", words: frozenset[str] = frozenset()
) -> Ruling:
    """A contradiction of a fact. `how` goes before the claim's words: `over $200`; it rests on `words` too."""
    words = words | ENDS if claim.extreme is not None else words
    note = (
        f"the text says {how}{claim.quantity.text}, {'.'.join(fact.path) or 'the result'} is {format_value(fact.value)}"
    )
    return Ruling("contradicted", fact.pointer, None, code, note, words)


def build_suspicion(claim: Claim, fact: Fact, code: str) -> Ruling:
    """What may contradict a fact, and what words do not prove."""
    return build_contradiction(claim, fact, code)._replace(verdict="suspected")


class Saying(NamedTuple):
    """A place in a text with the verdict on what it says."""

    start: int
    end: int
    text: str
    ruling: Ruling


def suspect(said: str, fact: Fact, code: str) -> Ruling:
    """The suspicion that what a text says in these words contradicts a fact."""
    note = f"the text says {said}, {'.'.join(fact.path) or 'the result'} is {format_value(fact.value)}"
    return Ruling("suspected", fact.pointer, None, code, note)
