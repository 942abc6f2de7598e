"""Optimal one-to-one assignment of expected to actual calls: never greedy, so the order of writing costs no point."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import TYPE_CHECKING, cast

from service.core.alignment.solver import solve_assignment

if TYPE_CHECKING:
    from numpy import bool_, float64, int64
    from numpy.typing import NDArray

    Floats = NDArray[float64]
    Flags = NDArray[bool_]
    Numbers = NDArray[int64]

Matrix = Sequence[Sequence[float]]

MAX_PERMUTED_PAIRS = 9
"""Up to this many pairs, every assignment is tried; beyond, loading a solver pays."""


def assign(gain: Matrix) -> list[tuple[int, int]]:
    """Return the pairs (row, column) of a one-to-one assignment with the greatest total gain.

    `gain` is n x m, each entry finite; min(n, m) pairs come back, sorted by row. Of several optimal assignments, the one whose
    columns stay closest to the order of the rows wins, so equal calls are paired in the order they were made.
    Source: the linear sum assignment problem, by `solve_assignment` unless it is obvious.
    """
    if not gain or not gain[0]:
        return []
    if len(gain) * len(gain[0]) <= MAX_PERMUTED_PAIRS:
        return _solve_obvious(gain) or _try_all(gain)
    return _solve_obvious(gain) or _solve(gain)


def assign_matrix(gain: Floats) -> list[tuple[int, int]]:
    """Return the same pairs as `assign`, for a matrix with many entries."""
    import numpy as np  # noqa: PLC0415 (as below)

    rows, columns = gain.shape
    if rows == 1 or columns == 1:
        return assign(cast("Matrix", gain.tolist()))
    best = gain.argmax(axis=1)
    alone = (gain == gain.max(axis=1, keepdims=True)).sum(axis=1) == 1
    if alone.all() and len(np.unique(best)) == rows:
        return list(enumerate(map(int, best)))
    return _solve(gain)


def _solve_obvious(gain: Matrix) -> list[tuple[int, int]]:
    """Solve what needs no solver: one row, one column, or every row with a unique best column of its own. [] otherwise."""
    if len(gain) == 1:
        return [(0, _find_first_best(gain[0]))]
    if len(gain[0]) == 1:
        return [(_find_first_best([row[0] for row in gain]), 0)]
    best = [_find_unique_best(row) for row in gain]
    taken = {column for column in best if column is not None}
    return [(i, j) for i, j in enumerate(best) if j is not None] if len(taken) == len(gain) else []


def _try_all(gain: Matrix) -> list[tuple[int, int]]:
    """Try every assignment of a small problem."""
    n, m = len(gain), len(gain[0])
    if n <= m:
        tries = (list(enumerate(columns)) for columns in permutations(range(m), n))
    else:
        tries = (sorted((i, j) for j, i in enumerate(rows)) for rows in permutations(range(n), m))
    return max(tries, key=lambda pairs: _sum_gain(gain, pairs))


def _sum_gain(gain: Matrix, pairs: list[tuple[int, int]]) -> tuple[float, float]:
    return sum([gain[i][j] for i, j in pairs]), -sum([(i - j) ** 2 for i, j in pairs])


def _find_first_best(values: Sequence[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)


def _find_unique_best(row: Sequence[float]) -> int | None:
    top = max(row)
    return row.index(top) if sum(value == top for value in row) == 1 else None


def _solve(gain: Matrix | Floats) -> list[tuple[int, int]]:
    import numpy as np  # noqa: PLC0415 (0.2 s and 100 MB that most traces never need)

    values = np.asarray(gain, dtype=float)
    rows, columns = np.indices(values.shape)
    crossing = ((rows - columns) / max(values.shape)) ** 2
    return solve_assignment(values - 1e-9 * crossing)
