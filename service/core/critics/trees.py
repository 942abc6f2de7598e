"""The matcher for whole JSON values: how similar are their leaves?"""

from __future__ import annotations

from fractions import Fraction
from math import fsum
from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from service.core.critics.base import Match, Number, OpenComparison, ValueCritic, build_mismatch
from service.core.critics.similarity import MAX_COMPARED_CHARS, levenshtein

Pair = tuple[JsonValue, JsonValue]
Object = dict[str, JsonValue]


class JsonSimilar(ValueCritic):
    """A JSON value similar to the expected one: the mean similarity over the leaves of both sides together.

    Numbers: 1 - |e - a| / max(|e|, |a|), at least 0. Strings: 1 minus the edit distance as a share of the longer one. Booleans
    and null: equal or not. Objects are compared by key, arrays by position. A part that only one side has scores 0 for each of
    its leaves, and so does a value of another type, for each leaf of the larger side. An empty object or array is one leaf.

    >>> [
    ...     JsonSimilar(value={"a": 10, "b": "x"}).match(actual).value
    ...     for actual in ({"a": 9, "b": "x"}, {"a": 10}, {}, None)
    ... ]
    [0.95, 0.5, 0.0, 0.0]
    >>> [JsonSimilar(value=[]).match(actual).value for actual in ([], {}, [1])]
    [1.0, 0.0, 0.0]
    >>> JsonSimilar(value={"a": True}).match({"a": 1, "b": [1, 2]}).value
    0.0
    """

    cost: ClassVar[int] = 10
    kind: Literal["json_similar"] = "json_similar"
    threshold: float = Field(default=0.8, ge=0, le=1)
    """The similarity that passes."""

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match | OpenComparison:
        """Return the similarity in [0, 1]; open where two strings at one place differ and one is over 5,000 characters."""
        scores: list[float] = []
        unmatched = 0  # leaves without a counterpart
        pairs: list[Pair] = [(actual, expected)]
        while pairs:
            a, b = pairs.pop()
            if isinstance(a, dict) and isinstance(b, dict) and (a or b):
                unmatched += _pair_members(a, b, pairs)
            elif isinstance(a, list) and isinstance(b, list) and (a or b):
                unmatched += _pair_items(a, b, pairs)
            elif type(a) is not type(b) and not {type(a), type(b)} <= _NUMBERS:
                unmatched += max(_count_leaves(a), _count_leaves(b))
            elif _is_too_long(a, b):
                return OpenComparison(f"two strings that differ, one over {MAX_COMPARED_CHARS} characters")
            else:
                scores.append(_compare_leaves(a, b))
        value = fsum(scores) / (len(scores) + unmatched)
        if value >= self.threshold:
            return Match(value, True)
        return build_mismatch(actual, expected, value=value, why=f"similarity {value:.3f} is below {self.threshold}")


def _pair_members(a: Object, b: Object, pairs: list[Pair]) -> int:
    """Add the pairs of common keys; return the number of leaves under all other keys."""
    pairs.extend((a[key], b[key]) for key in a.keys() & b.keys())
    either = {**a, **b}
    return sum(_count_leaves(either[key]) for key in a.keys() ^ b.keys())


def _pair_items(a: list[JsonValue], b: list[JsonValue], pairs: list[Pair]) -> int:
    """Add the pairs at common positions; return the number of leaves in the rest of the longer array."""
    pairs.extend(zip(a, b, strict=False))
    common = min(len(a), len(b))
    return sum(map(_count_leaves, a[common:])) + sum(map(_count_leaves, b[common:]))


def _count_leaves(value: JsonValue) -> int:
    """Count the leaves of a value: scalars and empty containers count one each."""
    count, todo = 0, [value]
    while todo:
        node = todo.pop()
        if isinstance(node, dict | list) and node:
            todo.extend(node.values() if isinstance(node, dict) else node)
        else:
            count += 1
    return count


_NUMBERS = frozenset({int, float})


def _is_too_long(a: JsonValue, b: JsonValue) -> bool:
    return isinstance(a, str) and isinstance(b, str) and a != b and max(len(a), len(b)) > MAX_COMPARED_CHARS


def _compare_leaves(a: JsonValue, b: JsonValue) -> float:
    if isinstance(a, str) and isinstance(b, str):
        return levenshtein(a, b)
    if isinstance(a, bool) or not isinstance(a, int | float) or not isinstance(b, int | float):
        return float(a == b)
    return _compare_numbers(a, b)


def _compare_numbers(a: Number, b: Number) -> float:
    """Compare two numbers by their distance as a share of the larger; NaN gives 0."""
    if a == b:
        return 1.0
    largest = max(abs(a), abs(b))
    try:
        share = abs(a - b) / largest
    except OverflowError:  # a huge integer and a float
        share = _compute_exact_share(a, b)
    return float(1 - share) if share < 1 else 0.0


def _compute_exact_share(a: Number, b: Number) -> float | Fraction:
    try:
        return abs(Fraction(a) - Fraction(b)) / Fraction(max(abs(a), abs(b)))
    except (OverflowError, ValueError):  # an infinity or NaN
        return 1
