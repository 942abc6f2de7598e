"""JSON values: typed equality, how they are shown, and how they differ."""

from __future__ import annotations

import copy
import math
from enum import StrEnum
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.json.differences import compare, covers, diff
from service.core.json.values import equals, format_value
from tests.bulk import examples

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-2, 2)
    | st.floats()
    | st.sampled_from([0.0, 1.0, -0.0, 10**400, -(10**400), float(2**53), 2**53 + 1])
    | st.text(st.characters(), max_size=20)
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
)


def deep(levels: int, end: object) -> object:
    value = end
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


class Colour(StrEnum):
    RED = "red"


SAME = [(1, 1.0), (0.0, -0.0), (2**53, float(2**53)), (10**400, 10**400), ({"a": 1, "b": 2}, {"b": 2.0, "a": 1})]
SAME += [([[], {}], [[], {}]), (Colour.RED, "red"), ("\ud800", "\ud800")]
DIFFERENT = [
    (True, 1),
    (False, 0),
    (False, None),
    ("1", 1),
    ("", None),
    ([], {}),
    ([], None),
    ([1, 2], [2, 1]),
    ([1], 1),
]
DIFFERENT += [
    ([1], [1, 1]),
    ({"a": None}, {}),
    ({"a": 1}, {"b": 1}),
    ({"a": [True]}, {"a": [1]}),
    (Colour.RED, {"red": 1}),
]
DIFFERENT += [(2**53 + 1, float(2**53)), (10**400, float("inf")), (float("nan"), float("nan"))]


@pytest.mark.parametrize(("pairs", "equal"), [(SAME, True), (DIFFERENT, False)], ids=["same", "different"])
def test_equality_is_typed(pairs, equal):
    assert [pair for pair in pairs if equals(*pair) is not equal or equals(*pair[::-1]) is not equal] == []


def test_no_depth_is_too_deep():
    assert equals(deep(100_000, 1), deep(100_000, 1.0))
    assert not equals(deep(100_000, 1), deep(100_000, True))
    assert not equals(deep(100_000, 1), deep(99_999, 1))


def canonical(value: object) -> object:
    """What two values must share to be equal, by another road: tagged types, exact numbers, unordered members."""
    if isinstance(value, bool | str | None):
        return type(value), value
    if isinstance(value, float) and not math.isfinite(value):
        return "number", value if value == value else object()  # noqa: PLR0124 (NaN)
    if isinstance(value, int | float):
        return "number", Fraction(value)
    if isinstance(value, list):
        return "array", tuple(map(canonical, value))
    return "object", frozenset((key, canonical(item)) for key, item in value.items())


@given(st.tuples(JSON, JSON) | st.tuples(SCALARS, SCALARS) | JSON.map(lambda value: (value, copy.deepcopy(value))))
def test_equality_is_that_of_the_canonical_forms(pair):
    a, b = pair
    assert equals(a, b) is equals(b, a) is (canonical(a) == canonical(b))


SHOWN = [
    (None, "null"),
    (True, "true"),
    (1.0, "1.0"),
    (float("inf"), "Infinity"),
    ("a\nb", '"a\\nb"'),
    ("a\u2028b\u202ec\x7f", '"a\\u2028b\\u202ec\\u007f"'),
    ("\ud800", '"\\ud800"'),
    ("é漢", '"é漢"'),
    ({}, "{}"),
    ([], "[]"),
    ({"a": [1, {"b": None}], "c": ()}, '{"a": [1, {"b": null}], "c": []}'),
    (-(10**5000), "an integer of about 5001 digits"),
    ({1}, "no JSON value but set"),
    ("x" * 100, '"' + "x" * 78 + "…"),
    ([1] * 1000, ("[" + "1, " * 27)[:79] + "…"),
]


@pytest.mark.parametrize(("value", "text"), SHOWN, ids=range(len(SHOWN)))
def test_values_are_shown_on_one_line(value, text):
    assert format_value(value) == text


@given(JSON, st.integers(-5, 300))
def test_what_is_shown_is_short_printable_and_encodes(value, limit):
    text = format_value(value, limit)
    assert 1 <= len(text) <= max(1, min(limit, 200))
    assert text.isprintable()
    text.encode()


LARGE = {
    "deep": deep(100_000, 1),
    "wide": ["x" * 10] * 1_000_000,
    "long text": "x" * 10_000_000,
    "long key": {"k" * 10_000_000: 1},
    "huge integer": 2**200_000,
}


@pytest.mark.parametrize("name", LARGE)
def test_large_values_are_shown_in_part(name):
    assert len(format_value(LARGE[name])) <= 80


# Differences between states, and what became of the changes that were wanted.

TRIES = settings(max_examples=examples(50), deadline=None, derandomize=True)
LEAVES = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from([1.0, "", "x", "a/b"])
STATES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "a/b", "~"]), inner, max_size=3)
    ),
    max_leaves=8,
)


UNDONE = {"add": "remove", "remove": "add", "replace": "replace"}


@TRIES
@given(STATES, STATES)
def test_differences_are_topmost_and_sorted_and_read_backwards_as_their_reverse(before, after):
    assert diff(before, copy.deepcopy(before)) == ()
    forth, back = diff(before, after), diff(after, before)
    assert (forth == ()) == equals(before, after)
    assert {(UNDONE[one.op], one.path, repr(one.after), repr(one.before)) for one in forth} == {
        (one.op, one.path, repr(one.before), repr(one.after)) for one in back
    }
    paths = [change.path for change in forth]
    assert paths == sorted(paths)
    assert not [(a, b) for a in paths for b in paths if a != b and covers(a, b)]


@TRIES
@given(STATES, STATES, STATES)
def test_every_wanted_change_was_made_or_missed_or_made_wrongly(initial, wanted, observed):
    progress = compare(initial, wanted, observed)
    assert progress.passed == (diff(wanted, observed) == ())
    assert progress.value == 1 if progress.passed else 0 <= progress.value <= 1
    assert progress.expected == diff(initial, wanted)
    told = map(repr, (*progress.made, *progress.missing, *progress.wrong))
    assert sorted(map(repr, progress.expected)) == sorted(told)
