"""Matchers by typed equality, and the best of several matchers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import JsonValue

from service.core.critics.base import MATCHED, Critic, Match, Uncompared, Unjudged, Valued, differing
from service.core.critics.numbers import number_in
from service.core.kinds import Some, Tagged
from service.core.values import equal, shown


class Exact(Valued):
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
    """Also match a number or boolean with a string that is one in JSON ("3.0" is 3, "TRUE" is true). Nothing is rounded, a
    boolean is never a number, null and containers are never cast."""

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match:
        """1 or 0."""
        if equal(actual, expected) or (self.cast and _cast_equal(actual, expected)):
            return MATCHED
        return differing(actual, expected)


def _cast_equal(a: JsonValue, b: JsonValue) -> bool:
    text, other = (a, b) if isinstance(a, str) else (b, a)
    if not isinstance(text, str):
        return False
    if isinstance(other, bool):
        return text.lower() == ("true" if other else "false")
    return isinstance(other, int | float) and number_in(text) == other


class Present(Critic):
    """Any value, null included; only an absent argument fails.

    >>> [Present().match(actual).value for actual in (None, "", 0, {})]
    [1.0, 1.0, 1.0, 1.0]
    """

    kind: Literal["present"] = "present"

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match:  # noqa: ARG002
        """Always 1: whoever calls has the value."""
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
        """1 or 0."""
        if any(equal(actual, value) for value in self.values):
            return MATCHED
        return Match(0.0, False, f"expected one of {shown(list(self.values))}, got {shown(actual)}")


class AnyOf(Critic):
    """The best of several matchers: passes if one passes; the value is the highest.

    A matcher without a value of its own compares with the value given from outside. If none passes and one could not
    compare, neither can this.

    >>> either = AnyOf(of=[{"kind": "exact", "value": "today"}, {"kind": "pattern", "pattern": "[0-9]{4}-[0-9]{2}"}])
    >>> [either.match(actual).value for actual in ("today", "2026-05", "May")]
    [1.0, 1.0, 0.0]
    """

    kind: Literal["any_of"] = "any_of"
    of: Some[Annotated[Critic, Tagged()]]
    """The matchers, at least one."""

    @property
    def wants_expected(self) -> bool:
        """Whether one of them needs a value from outside."""
        return any(critic.wants_expected for critic in self.of)

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match | Uncompared:
        """The best match."""
        results = [critic.match(actual, expected) for critic in self.of]
        matches = [result for result in results if isinstance(result, Match)]
        best = max((match.value for match in matches), default=0.0)
        if any(match.passed for match in matches):
            return Match(best, True)
        unknown = [result for result in results if isinstance(result, Uncompared)]
        asked = [result for result in unknown if isinstance(result, Unjudged)]
        if len(asked) > 1 and len(asked) == len(unknown):
            words = ", or else: ".join([one.words for one in asked])
            return Unjudged(f"a judge must say whether it is: {words}", "not_asked", words=words, value=actual)
        if unknown:
            return unknown[0]
        return Match(best, False, " and ".join(dict.fromkeys(match.note for match in matches)))
