"""Optimal assignment and the longest run, against trying everything."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.alignment.matching import assign
from tests.bulk import examples

TRIES = settings(max_examples=examples(50), deadline=None, derandomize=True)
FEW = st.sampled_from([0.0, 0.0, 1.0, 2.0])
"""Gains with many ties."""
ANY = st.floats(-10, 10)


@st.composite
def matrices(draw: st.DrawFn) -> list[list[float]]:
    rows, columns = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    entries = draw(st.sampled_from([FEW, ANY]))
    return [draw(st.lists(entries, min_size=columns, max_size=columns)) for _ in range(rows)]


def best(gain: list[list[float]]) -> float:
    """The greatest total of any assignment, by trying all of them."""
    rows, columns = len(gain), len(gain[0])
    if rows > columns:
        return best([[gain[i][j] for i in range(rows)] for j in range(columns)])
    return max(sum(gain[i][j] for i, j in enumerate(chosen)) for chosen in permutations(range(columns), rows))


@TRIES
@given(matrices())
def test_no_assignment_gains_more(gain):
    pairs = assign(gain)
    assert sum(gain[i][j] for i, j in pairs) == pytest.approx(best(gain), abs=1e-6)


@TRIES
@given(matrices())
def test_each_row_and_each_column_is_taken_once(gain):
    pairs = assign(gain)
    rows, columns = [i for i, _ in pairs], [j for _, j in pairs]
    assert len(pairs) == min(len(gain), len(gain[0]))
    assert rows == sorted(set(rows))
    assert len(set(columns)) == len(columns)
    assert set(rows) <= set(range(len(gain)))
    assert set(columns) <= set(range(len(gain[0])))


@pytest.mark.parametrize(
    ("gain", "pairs"),
    [
        ([], []),
        ([[], []], []),
        ([[5.0]], [(0, 0)]),
        ([[0.0, 0.0, 0.0]], [(0, 0)]),
        ([[0.0], [1.0], [1.0]], [(1, 0)]),
        ([[1.0, 1.0], [1.0, 1.0]], [(0, 0), (1, 1)]),
        ([[2.0, 1.0], [2.0, 0.0]], [(0, 1), (1, 0)]),  # greedily it would be 2 + 0
        ([[1.0] * 5] * 5, [(n, n) for n in range(5)]),
        ([[1.0] * 4] * 3, [(0, 0), (1, 1), (2, 2)]),
    ],
)
def test_ties_follow_the_order_of_writing(gain, pairs):
    assert assign(gain) == pairs


def test_a_large_problem():
    """Every row gains most in a column of its own, but only just: 500 rows moved by 7."""
    gain = [[1.0 + ((i + 7) % 500 == j) * 0.5 for j in range(500)] for i in range(500)]
    assert assign(gain) == [(i, (i + 7) % 500) for i in range(500)]
