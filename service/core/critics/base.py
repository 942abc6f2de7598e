"""What every matcher is, and what a comparison gives."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import field
from typing import ClassVar, Literal

from pydantic import JsonValue

from service.core.json.values import format_value, name_type
from service.core.models.kinds import FrozenModel
from service.core.models.light import light

Number = int | float


@light
class Match:
    """The result of one comparison: a value in [0, 1], the matcher's own verdict, and why, where that is no or needs a word.

    Most comparisons only look for the best one, and to say why costs more than to compare: `said` may be how to say it.
    """

    value: float
    passed: bool
    said: str | Callable[[], str] = ""

    @property
    def note(self) -> str:
        """Why, in words; "" where there is nothing to say."""
        return self.said if isinstance(self.said, str) else self.said()


@light
class OpenComparison:
    """The values could not be compared: one is over a documented cap. Neither a match nor a mismatch."""

    reason: str
    cause: Literal["too_long", "not_asked"] = "too_long"


@light
class WordsComparison(OpenComparison):
    """Code cannot tell: a judge must say whether `value` is what `words` ask for."""

    words: str = field(kw_only=True)
    value: JsonValue = field(kw_only=True)


MATCHED = Match(1.0, True)


class Critic(FrozenModel):
    """Compares an actual value with an expected one. Concrete matchers declare their `kind`."""

    cost: ClassVar[int] = 1
    """What one comparison costs, and each character of it, where looking for a text in another costs 1."""

    optional: bool = False
    """An absent argument counts as a match."""

    @property
    def wants_expected(self) -> bool:
        """Whether it can say nothing without an expected value from outside."""
        return False

    def match(self, actual: JsonValue, expected: JsonValue = None) -> Match | OpenComparison:
        """The comparison with the matcher's own expected value where it has one, else with `expected`."""
        return self.compare(actual, expected)

    @abstractmethod
    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match | OpenComparison:
        """The comparison with `expected`, which matchers that do not compare with a value ignore. Never raises."""


class ValueCritic(Critic):
    """Compares with an expected value: its own in an expectation, that of the expectation in a rubric."""

    value: JsonValue = None
    """The expected value. Leave it out in a rubric, where the expectation gives it."""

    @property
    def has_value(self) -> bool:
        """Whether it has a value of its own; null is one."""
        return "value" in self.model_fields_set

    @property
    def wants_expected(self) -> bool:
        """Whether it has no value of its own."""
        return not self.has_value

    def match(self, actual: JsonValue, expected: JsonValue = None) -> Match | OpenComparison:
        """The comparison with its own value where it has one, else with `expected`."""
        return self.compare(actual, self.value if self.has_value else expected)


def build_mismatch(actual: JsonValue, expected: JsonValue, *, value: float = 0.0, why: str = "") -> Match:
    """A mismatch that shows both values, with their types where these differ.

    >>> build_mismatch("1", 1).note, build_mismatch(2, 1, why="off by 1").note
    ('expected 1 (an integer), got "1" (a string)', 'expected 1, got 2 (off by 1)')
    """
    return Match(value, False, lambda: _describe_mismatch(actual, expected, why))


def _describe_mismatch(actual: JsonValue, expected: JsonValue, why: str) -> str:
    want, got = format_value(expected), format_value(actual)
    types = name_type(expected), name_type(actual)
    if types[0] != types[1] and not why:
        want, got = f"{want} ({types[0]})", f"{got} ({types[1]})"
    return f"expected {want}, got {got}" + (f" ({why})" if why else "")
