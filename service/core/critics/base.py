"""The base classes of all matchers, and the results of a comparison."""

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
    """The result of one comparison: a value in [0, 1], the matcher's own verdict, and an explanation where one is needed.

    Most comparisons only search for the best match, and an explanation costs more than the comparison: so `explanation` may be
    a function that builds it.
    """

    value: float
    passed: bool
    explanation: str | Callable[[], str] = ""

    @property
    def note(self) -> str:
        """The explanation in words; "" where there is none."""
        return self.explanation if isinstance(self.explanation, str) else self.explanation()


@light
class OpenComparison:
    """Neither a match nor a mismatch: the values could not be compared, for example because one is over a documented cap."""

    reason: str
    cause: Literal["too_long", "not_asked"] = "too_long"


@light
class WordsComparison(OpenComparison):
    """A comparison that code cannot make: a judge must say whether `value` is what `words` ask for."""

    words: str = field(kw_only=True)
    value: JsonValue = field(kw_only=True)


MATCHED = Match(1.0, True)


class Critic(FrozenModel):
    """Compares an actual value with an expected one. Concrete matchers declare their `kind`."""

    cost: ClassVar[int] = 1
    """The cost of one comparison, and of each character in it, where searching a text in another costs 1."""

    optional: bool = False
    """Whether an absent argument counts as a match."""

    @property
    def wants_expected(self) -> bool:
        """Whether it needs an expected value from outside."""
        return False

    def match(self, actual: JsonValue, expected: JsonValue = None) -> Match | OpenComparison:
        """Compare with the matcher's own expected value if it has one, else with `expected`."""
        return self.compare(actual, expected)

    @abstractmethod
    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match | OpenComparison:
        """Compare with `expected`, which matchers that need no value ignore. Never raises."""


class ValueCritic(Critic):
    """Compares with an expected value: in an expectation its own value, in a rubric the one that the expectation gives."""

    value: JsonValue = None
    """The expected value. Leave it out in a rubric: there the expectation gives it."""

    @property
    def has_value(self) -> bool:
        """Whether it has a value of its own; null is one."""
        return "value" in self.model_fields_set

    @property
    def wants_expected(self) -> bool:
        """Whether it has no value of its own."""
        return not self.has_value

    def match(self, actual: JsonValue, expected: JsonValue = None) -> Match | OpenComparison:
        """Compare with its own value if it has one, else with `expected`."""
        return self.compare(actual, self.value if self.has_value else expected)


def refuse(wanted: str, value: JsonValue, actual: JsonValue) -> Match:
    """Build a mismatch that says what was wanted.

    >>> refuse("a string that begins with", "x", 1).note
    'expected a string that begins with "x", got 1'
    """
    return Match(0.0, False, lambda: f"expected {wanted} {format_value(value)}, got {format_value(actual)}")


def build_mismatch(actual: JsonValue, expected: JsonValue, *, value: float = 0.0, why: str = "") -> Match:
    """Build a mismatch that shows both values, with their types where these differ.

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
