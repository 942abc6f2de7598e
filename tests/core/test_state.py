"""Differences between states, and what became of the changes that were wanted."""

from __future__ import annotations

import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.json.differences import compare, covers, diff
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
