"""Differences between states, and what became of the changes that were wanted."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.json.differences import DiffOptions, compare, covers, diff
from service.core.json.values import equals
from tests.bulk import examples

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


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, ["replace /a"]),
        ({"a": "1"}, {"a": 1}, ["replace /a"]),
        ({"a": None}, {}, ["remove /a"]),
        ({}, {"a": None}, ["add /a"]),
        ({"a": {"b": 1}}, {"a": {"b": 2, "c": {"d": 1}}}, ["replace /a/b", "add /a/c"]),
        ({"a": {"b": 1}}, {"a": [1]}, ["replace /a"]),
        ({"a": {}}, {"a": []}, ["replace /a"]),
        ({"a": {"x": 1}}, {"a": None}, ["replace /a"]),
        ([1, 2, 3], [1, 3], ["replace /1", "remove /2"]),
        ({"a/b": {"~": 1}}, {"a/b": {"~": 2}}, ["replace /a~1b/~0"]),
        (1, 2, ["replace "]),
    ],
)
def test_differences(before, after, changes):
    assert [f"{change.op} {change.path}" for change in diff(before, after)] == changes


IGNORED = [
    (("/t",), {"t": 1, "a": 1}, {"t": 2, "a": 1}, []),
    (("/t",), {"t": {"x": 1}}, {"t": {"x": 2, "y": 3}}, []),
    (("/t",), {"s": {"t": 1}}, {"s": {"t": 2}}, ["/s/t"]),
    (("/*/t",), {"s": {"t": 1, "u": 1}}, {"s": {"t": 2, "u": 2}}, ["/s/u"]),
    (("/orders/*/at",), {"orders": [{"at": 1}, {"at": 2}]}, {"orders": [{"at": 3}, {"at": 4}]}, []),
    (("/*",), {"a": 1, "b": {"c": 1}}, {}, []),
    (("",), {"a": 1}, {"b": 2}, []),
    (("/a~1b",), {"a/b": 1}, {"a/b": 2}, []),
]


@pytest.mark.parametrize(("ignore", "before", "after", "paths"), IGNORED)
def test_what_is_ignored(ignore, before, after, paths):
    assert [change.path for change in diff(before, after, DiffOptions(ignore=ignore))] == paths


KEYED = [
    ({"/o": "id"}, {"o": [{"id": "x", "n": 1}, {"id": "y"}]}, {"o": [{"id": "y"}, {"id": "x", "n": 1}]}, []),
    ({"/o": "id"}, {"o": [{"id": "x", "n": 1}]}, {"o": [{"id": "y"}, {"id": "x", "n": 2}]}, ["/o/x/n", "/o/y"]),
    ({"/o": "id"}, {"o": [{"id": 7, "n": 1}]}, {"o": [{"id": 7, "n": 2}]}, ["/o/7/n"]),
    ({"/o": "id"}, {"o": [{"id": 7}]}, {"o": [{"id": 7.0}]}, []),
    ({"/*/o": "id"}, {"u": {"o": [{"id": "x"}, {"id": "y"}]}}, {"u": {"o": [{"id": "y"}, {"id": "x"}]}}, []),
    # without an id for each, or with one twice, positions count as ever
    ({"/o": "id"}, {"o": [{"id": "x"}, {}]}, {"o": [{}, {"id": "x"}]}, ["/o/0/id", "/o/1/id"]),
    ({"/o": "id"}, {"o": [{"id": "x", "n": 1}, {"id": "x", "n": 2}]}, {"o": [{"id": "x", "n": 2}]}, ["/o/0/n", "/o/1"]),
]


@pytest.mark.parametrize(("keys", "before", "after", "paths"), KEYED)
def test_lists_with_keys(keys, before, after, paths):
    assert [change.path for change in diff(before, after, DiffOptions(keys=keys))] == paths


INITIAL: dict[str, Any] = {"door": "shut", "lamp": 0, "log": []}
COMPARED = [
    ({"door": "open"}, {"door": "open"}, 1, [], [], []),
    ({"door": "open"}, {}, 0, ["/door"], [], []),
    ({"door": "open"}, {"door": "ajar"}, 0, [], ["/door"], []),
    ({"door": "open"}, {"door": "open", "lamp": 1}, 0.5, [], [], ["/lamp"]),
    ({"door": "open", "lamp": 1}, {"door": "open"}, 0.5, ["/lamp"], [], []),
    ({}, {}, 1, [], [], []),
    ({}, {"lamp": 1}, 0, [], [], ["/lamp"]),
    ({"log": ["x"]}, {"log": ["x"]}, 1, [], [], []),
    ({"log": ["x"]}, {"log": ["y"]}, 0, [], ["/log/0"], []),
    ({"log": ["x"]}, {"log": ["x", "y"]}, 0.5, [], [], ["/log/1"]),
]


@pytest.mark.parametrize(("wanted", "observed", "value", "missing", "wrong", "unexpected"), COMPARED)
def test_progress(wanted, observed, value, missing, wrong, unexpected):
    progress = compare(INITIAL, INITIAL | wanted, INITIAL | observed)
    assert progress.value == value
    assert progress.passed == (value == 1)
    assert [[c.path for c in part] for part in (progress.missing, progress.wrong, progress.unexpected)] == [
        missing,
        wrong,
        unexpected,
    ]
