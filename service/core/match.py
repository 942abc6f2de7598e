"""Optimal one-to-one assignment of expected to actual calls: never greedy, so no order of writing costs a point."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from numpy import bool_, float64, int64
    from numpy.typing import NDArray

    Floats = NDArray[float64]
    Flags = NDArray[bool_]
    Numbers = NDArray[int64]

Matrix = Sequence[Sequence[float]]
Solver = Callable[[object, bool], tuple[Iterable[int], Iterable[int]]]


SMALL = 9
"""Problems of up to this many pairs are solved by trying all; larger ones are worth loading a solver for."""


def assign(gain: Matrix) -> list[tuple[int, int]]:
    """The pairs (row, column) of a one-to-one assignment with the greatest total gain.

    `gain` is n x m, each entry finite; min(n, m) pairs come back, by row. Of several optimal assignments the one whose
    columns stay closest to the order of the rows is taken, so equal calls are paired in the order they were made.
    Source: the linear sum assignment problem, by scipy's `linear_sum_assignment` where it is not obvious.
    """
    if not gain or not gain[0]:
        return []
    if len(gain) * len(gain[0]) <= SMALL:
        return _obvious(gain) or _tried(gain)
    return _obvious(gain) or _solved(gain)


def assign_matrix(gain: Floats) -> list[tuple[int, int]]:
    """The same pairs as `assign` finds, of a matrix with many entries."""
    import numpy as np  # noqa: PLC0415 (as below)

    rows, columns = gain.shape
    if rows == 1 or columns == 1:
        return assign(cast("Matrix", gain.tolist()))
    best = gain.argmax(axis=1)
    alone = (gain == gain.max(axis=1, keepdims=True)).sum(axis=1) == 1
    if alone.all() and len(np.unique(best)) == rows:
        return list(enumerate(map(int, best)))
    return _solved(gain)


def _obvious(gain: Matrix) -> list[tuple[int, int]]:
    """Solves what needs no solver: one row or one column, or every row's unique best column its own."""
    if len(gain) == 1:
        return [(0, _first_best(gain[0]))]
    if len(gain[0]) == 1:
        return [(_first_best([row[0] for row in gain]), 0)]
    best = [_unique_best(row) for row in gain]
    taken = {column for column in best if column is not None}
    return [(i, j) for i, j in enumerate(best) if j is not None] if len(taken) == len(gain) else []


def _tried(gain: Matrix) -> list[tuple[int, int]]:
    """Tries every assignment of a small problem."""
    n, m = len(gain), len(gain[0])
    if n <= m:
        tries = (list(enumerate(columns)) for columns in permutations(range(m), n))
    else:
        tries = (sorted((i, j) for j, i in enumerate(rows)) for rows in permutations(range(n), m))
    return max(tries, key=lambda pairs: _worth(gain, pairs))


def _worth(gain: Matrix, pairs: list[tuple[int, int]]) -> tuple[float, float]:
    return sum([gain[i][j] for i, j in pairs]), -sum([(i - j) ** 2 for i, j in pairs])


def _first_best(values: Sequence[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)


def _unique_best(row: Sequence[float]) -> int | None:
    top = max(row)
    return row.index(top) if sum(value == top for value in row) == 1 else None


def _solved(gain: Matrix | Floats) -> list[tuple[int, int]]:
    import numpy as np  # noqa: PLC0415 (0.2 s and 100 MB that most traces never need)
    from scipy import optimize  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs]

    values = np.asarray(gain, dtype=float)
    rows, columns = np.indices(values.shape)
    crossing = ((rows - columns) / max(values.shape)) ** 2
    solve = cast("Solver", optimize.linear_sum_assignment)  # pyright: ignore[reportUnknownMemberType]
    chosen_rows, chosen_columns = solve(values - 1e-9 * crossing, True)
    return list(zip(map(int, chosen_rows), map(int, chosen_columns), strict=True))


def longest_run(values: Sequence[int]) -> list[int]:
    """The positions of a longest strictly increasing subsequence.

    >>> longest_run([2, 0, 1])
    [1, 2]
    """
    tails: list[int] = []  # tails[k]: where the best run of length k + 1 ends
    before: list[int] = []  # before[n]: where the run that ends at n came from
    for n, value in enumerate(values):
        length = bisect_left(tails, value, key=values.__getitem__)
        before.append(tails[length - 1] if length else -1)
        tails[length : length + 1] = [n]
    return _walked(before, tails[-1]) if tails else []


def _walked(before: Sequence[int], end: int) -> list[int]:
    run: list[int] = []
    while end >= 0:
        run.append(end)
        end = before[end]
    return run[::-1]
