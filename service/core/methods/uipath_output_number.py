"""Compute UiPath's numbers for a run's output as their code does.

Source: UiPath/uipath-python, `packages/uipath/src/uipath/eval/evaluators` (exact match, JSON similarity and contains). Every
number becomes a float before the comparison, so that 42 reads "42.0" and long whole numbers lose digits; a text on one side
turns both sides into texts; values are compared as Python does, where true is 1; JSON similarity counts only the expected
leaves, and no leaf at all is 1.0. Where their code raises, its result is an error that counts 0.0. Scores lie in [0, 1].
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import NamedTuple

from pydantic import JsonValue
from rapidfuzz.distance import Levenshtein

OutputKey = str | tuple[str, ...]
"""The part of an output that is compared: `*` for all of it, a path such as `a.b[0]`, or several paths."""

ALL = "*"
NEXT_TO_ZERO = 1e-12
ATTACHMENT = re.compile(r"urn:uipath:cas:file:orchestrator:[a-f0-9-]+\n?", re.IGNORECASE)
"""A text that UiPath replaces by the content of the file it names."""
_TOKEN = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


class OutputPathError(ValueError):
    """The output has nothing at this path."""


def score_exact_match(actual: JsonValue, expected: JsonValue, *, case_sensitive: bool = False) -> float:
    """Return 1.0 if both are the same, else 0.0.

    >>> (
    ...     score_exact_match("Yes", "yes"),
    ...     score_exact_match({"a": "X"}, {"a": "x"}),
    ...     score_exact_match({"a": True}, {"a": 1}),
    ... )
    (1.0, 0.0, 1.0)
    """
    one, other = convert_numbers(actual), convert_numbers(expected)
    if not isinstance(one, str) and not isinstance(other, str):
        return float(one == other)
    return float(_fold(str(one), case_sensitive) == _fold(str(other), case_sensitive))


def score_contains(actual: JsonValue, search: str, *, case_sensitive: bool = False) -> float:
    """Return 1.0 if the text of the output contains `search`, else 0.0.

    >>> score_contains({"n": 42}, "42.0"), score_contains("142", "42"), score_contains("", "")
    (1.0, 1.0, 1.0)
    """
    return float(_fold(search, case_sensitive) in _fold(str(convert_numbers(actual)), case_sensitive))


def _fold(text: str, case_sensitive: bool) -> str:  # noqa: FBT001
    return text if case_sensitive else text.lower()


def score_json_similarity(actual: JsonValue, expected: JsonValue) -> float:
    """Return the mean similarity of the expected leaves.

    >>> [score_json_similarity(*pair) for pair in ((9, 10), ([1], [1, 2]), (["b", "a"], ["a", "b"]), ({"b": 1}, {}))]
    [0.9, 0.5, 0.0, 1.0]
    """
    return fold_leaves(list_leaves(convert_numbers(actual), convert_numbers(expected)))


class ComparedLeaf(NamedTuple):
    """One expected leaf: its pointer, its similarity, and how many leaves it stands for."""

    path: str
    value: float
    leaves: int = 1


def fold_leaves(leaves: Sequence[ComparedLeaf]) -> float:
    """Return the mean of the leaves; 1.0 where there is none."""
    count = sum([leaf.leaves for leaf in leaves])
    return min(1.0, max(0.0, fsum([leaf.value for leaf in leaves]) / count)) if count else 1.0


def list_leaves(actual: JsonValue, expected: JsonValue) -> list[ComparedLeaf]:
    """Compare every expected leaf with the actual value in its place."""
    return [*_iter_leaves(actual, expected, "")]


def _iter_leaves(actual: JsonValue, expected: JsonValue, path: str) -> Iterator[ComparedLeaf]:
    if is_number(actual) and is_number(expected):
        yield ComparedLeaf(path, _compare_numbers(actual, expected))
    elif type(actual) is not type(expected):
        yield ComparedLeaf(path, 0.0, _count_leaves(expected))
    elif isinstance(expected, dict) and isinstance(actual, dict):
        for key, value in expected.items():
            here = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
            yield from (
                _iter_leaves(actual[key], value, here)
                if key in actual
                else [ComparedLeaf(here, 0.0, _count_leaves(value))]
            )
    elif isinstance(expected, list) and isinstance(actual, list):
        for n, value in enumerate(expected):
            here = f"{path}/{n}"
            yield from (
                _iter_leaves(actual[n], value, here)
                if n < len(actual)
                else [ComparedLeaf(here, 0.0, _count_leaves(value))]
            )
    elif isinstance(expected, str) and isinstance(actual, str):
        yield ComparedLeaf(path, Levenshtein.normalized_similarity(expected, actual))
    else:
        yield ComparedLeaf(path, float(actual == expected))


def is_number(value: JsonValue) -> bool:
    """Whether the value is a number; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _compare_numbers(actual: JsonValue, expected: JsonValue) -> float:
    if actual == expected:
        return 1.0
    one, other = float(actual), float(expected)  # pyright: ignore[reportArgumentType] (both are numbers)
    if abs(other) <= NEXT_TO_ZERO:
        return float(abs(one) <= NEXT_TO_ZERO)
    return max(0.0, min(1.0, 1.0 - abs(other - one) / abs(other)))


def _count_leaves(value: JsonValue) -> int:
    if isinstance(value, dict | list):
        return sum(map(_count_leaves, value.values() if isinstance(value, dict) else value))
    return 1


def convert_numbers(value: JsonValue) -> JsonValue:
    """Return the value with every whole number as a float.

    >>> convert_numbers({"a": [1, True, "1"]})
    {'a': [1.0, True, '1']}
    """
    if isinstance(value, dict):
        return {key: convert_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [convert_numbers(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def read_actual(output: JsonValue, key: OutputKey) -> JsonValue:
    """Return the part of an output that is compared. Raises OutputPathError where it has none."""
    if isinstance(key, str):
        return find_part(output, key)
    if not isinstance(output, dict):
        raise OutputPathError("several keys are named, and the output is no object")
    return {one: find_part(output, one) for one in key}


def read_expected(output: JsonValue, key: OutputKey) -> JsonValue:
    """Return the same part of an expected output, which may be the JSON text of an object. Raises OutputPathError."""
    if key != ALL and isinstance(output, str):
        try:
            output = json.loads(output)
        except (ValueError, RecursionError):
            raise OutputPathError("the expected output is text, and no JSON with such a key") from None
    return read_actual(output, key)


def find_part(output: JsonValue, path: str) -> JsonValue:
    """Return the value at a path of names and `[n]`; other parts of the path are ignored. Raises OutputPathError.

    >>> find_part({"items": [{"a.b": 1, "n": 2}]}, "items[0].n")
    2
    """
    tokens = [] if path == ALL else _TOKEN.findall(path)
    if not tokens and path != ALL:
        raise OutputPathError(f"{path!r} names nothing")
    for name, index in tokens:
        output = _get_member(output, int(index)) if index else _get_member(output, name)
    return output


def _get_member(output: JsonValue, token: str | int) -> JsonValue:
    if isinstance(token, str) and isinstance(output, Mapping) and token in output:
        return output[token]
    if isinstance(token, int) and isinstance(output, list) and token < len(output):
        return output[token]
    raise OutputPathError(f"the output has nothing at {token!r}")
