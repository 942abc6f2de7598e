"""Matchers by typed equality, and the best of several matchers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import JsonValue

from service.core.critics.base import (
    MATCHED,
    Critic,
    Match,
    OpenComparison,
    ValueCritic,
    WordsComparison,
    build_mismatch,
    refuse,
)
from service.core.critics.numbers import read_number
from service.core.json.values import equals
from service.core.models.kinds import Some, TaggedUnion


class Exact(ValueCritic):
    """The same value, by typed equality.

    >>> [Exact(value=3).match(actual).value for actual in (3, 3.0, 4, "3", True, None)]
    [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    >>> [Exact(value=3, cast=True).match(actual).value for actual in ("3", "3.0", 3.9, "3.9", " 3", "x", None)]
    [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    >>> [Exact(value=True, cast=True).match(actual).value for actual in ("true", "TRUE", "false", 1, "1")]
    [1.0, 1.0, 0.0, 0.0, 0.0]
    """

    kind: Literal["exact"] = "exact"
    cast: bool = False
    """Whether a number or boolean also matches a string that spells it in JSON ("3.0" is 3, "TRUE" is true). Nothing is rounded,
    a boolean is never a number, and null and containers are never cast."""

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match:
        """Return 1 or 0."""
        if equals(actual, expected) or (self.cast and _equals_when_cast(actual, expected)):
            return MATCHED
        return build_mismatch(actual, expected)


def _equals_when_cast(a: JsonValue, b: JsonValue) -> bool:
    text, other = (a, b) if isinstance(a, str) else (b, a)
    if not isinstance(text, str):
        return False
    if isinstance(other, bool):
        return text.lower() == ("true" if other else "false")
    return isinstance(other, int | float) and read_number(text) == other


class Present(Critic):
    """Any value, null included; only an absent argument fails.

    >>> [Present().match(actual).value for actual in (None, "", 0, {})]
    [1.0, 1.0, 1.0, 1.0]
    """

    kind: Literal["present"] = "present"

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match:  # noqa: ARG002
        """Return 1: the argument is there."""
        return MATCHED


class OneOf(Critic):
    """One of the listed values, by typed equality.

    >>> [OneOf(values=["S", 1, None]).match(actual).value for actual in ("S", 1.0, None, "s", True)]
    [1.0, 1.0, 1.0, 0.0, 0.0]
    """

    kind: Literal["one_of"] = "one_of"
    values: Some[JsonValue]
    """The values allowed."""

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match:  # noqa: ARG002
        """Return 1 or 0."""
        if any(equals(actual, value) for value in self.values):
            return MATCHED
        return refuse("one of", list(self.values), actual)


class AnyOf(Critic):
    """The best of several matchers: it passes if one of them passes, and its value is the highest of theirs.

    A matcher that has no value compares with the value given from outside. If none passes and one could not be
    compared, this one is open too.

    >>> either = AnyOf(of=[{"kind": "exact", "value": "today"}, {"kind": "pattern", "pattern": "[0-9]{4}-[0-9]{2}"}])
    >>> [either.match(actual).value for actual in ("today", "2026-05", "May")]
    [1.0, 1.0, 0.0]
    """

    kind: Literal["any_of"] = "any_of"
    of: Some[Annotated[Critic, TaggedUnion()]]
    """The matchers, at least one."""

    @property
    def wants_expected(self) -> bool:
        """Whether one of them needs a value from outside."""
        return any(critic.wants_expected for critic in self.of)

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match | OpenComparison:
        """Return the best match."""
        results = [critic.match(actual, expected) for critic in self.of]
        matches = [result for result in results if isinstance(result, Match)]
        best = max((match.value for match in matches), default=0.0)
        passing = [match for match in matches if match.passed]
        passed = max(passing, key=lambda match: (match.value, not match.note), default=None)
        if passed is not None:
            return Match(best, True, passed.explanation)
        open_ones = [result for result in results if isinstance(result, OpenComparison)]
        in_words = [result for result in open_ones if isinstance(result, WordsComparison)]
        if len(in_words) > 1 and len(in_words) == len(open_ones):
            words = ", or else: ".join([one.words for one in in_words])
            return WordsComparison(f"a judge must say whether it is: {words}", "not_asked", words=words, value=actual)
        if open_ones:
            return open_ones[0]
        return Match(best, False, lambda: " and ".join(dict.fromkeys(match.note for match in matches)))
