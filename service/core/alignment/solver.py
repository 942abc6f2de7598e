"""Solve the linear sum assignment problem: with scipy where it is installed, else with our own solver, 100 times slower."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

    Floats = NDArray[float64]

Solver = Callable[[object, bool], tuple[Iterable[int], Iterable[int]]]


def solve_assignment(gain: Floats) -> list[tuple[int, int]]:
    """Return the min(n, m) pairs (row, column) of a one-to-one assignment with the greatest total gain (n x m), by row."""
    try:
        from scipy import optimize  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs]
    except ModuleNotFoundError:
        return augment_rows(gain) if gain.shape[0] <= gain.shape[1] else _swap(augment_rows(gain.T))
    solve = cast("Solver", optimize.linear_sum_assignment)  # pyright: ignore[reportUnknownMemberType]
    rows, columns = solve(gain, True)
    return list(zip(map(int, rows), map(int, columns), strict=True))


def augment_rows(gain: Floats) -> list[tuple[int, int]]:
    """Solve the same without scipy, for a matrix with no more rows than columns. n rows of m columns cost O(n^2 m).

    Source: shortest augmenting paths with dual prices (Jonker and Volgenant, Computing 38, 1987), a row at a time.
    """
    import numpy as np  # noqa: PLC0415

    cost = -gain
    n, m = cost.shape
    row_price, column_price = np.zeros(n), np.zeros(m)
    row_of = np.full(m, -1)
    for start in range(n):
        shortest, before = np.full(m, np.inf), np.full(m, -1)
        done, column, row, length = np.zeros(m, dtype=bool), -1, start, 0.0
        while row != -1:
            reach = length + cost[row] - row_price[row] - column_price
            nearer = ~done & (reach < shortest)
            shortest[nearer], before[nearer] = reach[nearer], row
            column = int(np.where(done, np.inf, shortest).argmin())
            length, row = float(shortest[column]), int(row_of[column])
            done[column] = True
        owned = done & (row_of >= 0)
        row_price[row_of[owned]] += length - shortest[owned]
        row_price[start] += length
        column_price[done] += shortest[done] - length
        _flip_path(row_of, before, column, start)
    return sorted((int(row), column) for column, row in enumerate(row_of) if row >= 0)


def _flip_path(row_of: NDArray[int64], before: NDArray[int64], column: int, start: int) -> None:
    """Give each column of the path to the row before it, from the free column back to the new row."""
    column_of = {int(row): column for column, row in enumerate(row_of) if row >= 0}
    while True:
        row = int(before[column])
        row_of[column] = row
        if row == start:
            return
        column = column_of[row]


def _swap(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return sorted((row, column) for column, row in pairs)
