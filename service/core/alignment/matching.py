"""The best one-to-one assignment of expected to actual calls: never greedy, so the order of writing costs no point."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from math import inf

Matrix = Sequence[Sequence[float]]

MAX_PERMUTED_PAIRS = 9
"""Up to this many pairs, every assignment is tried."""


def assign(gain: Matrix) -> list[tuple[int, int]]:
    """Return the pairs (row, column) of a one-to-one assignment with the greatest total gain.

    `gain` is n x m, each entry finite; min(n, m) pairs come back, sorted by row. Of several optimal assignments, the one whose
    columns stay closest to the order of the rows wins, so equal calls are paired in the order they were made.
    Source: the linear sum assignment problem, by shortest augmenting paths (Jonker and Volgenant, Computing 38, 1987).
    """
    if not gain or not gain[0]:
        return []
    if obvious := _solve_obvious(gain):
        return obvious
    n, m = len(gain), len(gain[0])
    if n * m <= MAX_PERMUTED_PAIRS:
        return _try_all(gain)
    unit = 1e-9 / max(n, m) ** 2
    cost = [[unit * (i - j) ** 2 - value for j, value in enumerate(row)] for i, row in enumerate(gain)]
    if n <= m:
        return _augment_rows(cost)
    return sorted((i, j) for j, i in _augment_rows(list(zip(*cost, strict=True))))


def _solve_obvious(gain: Matrix) -> list[tuple[int, int]]:
    """Solve one row, one column, or every row with a unique best column of its own; [] for all else."""
    if len(gain) == 1:
        return [(0, _find_first_best(gain[0]))]
    if len(gain[0]) == 1:
        return [(_find_first_best([row[0] for row in gain]), 0)]
    tops = [max(row) for row in gain]
    if any(row.count(top) > 1 for row, top in zip(gain, tops, strict=True)):
        return []
    best = [row.index(top) for row, top in zip(gain, tops, strict=True)]
    return list(enumerate(best)) if len(set(best)) == len(best) else []


def _find_first_best(values: Sequence[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)


def _try_all(gain: Matrix) -> list[tuple[int, int]]:
    n, m = len(gain), len(gain[0])
    if n <= m:
        tries = (list(enumerate(columns)) for columns in permutations(range(m), n))
    else:
        tries = (sorted((i, j) for j, i in enumerate(rows)) for rows in permutations(range(n), m))
    return max(tries, key=lambda pairs: (sum([gain[i][j] for i, j in pairs]), -sum([(i - j) ** 2 for i, j in pairs])))


def _augment_rows(cost: Matrix) -> list[tuple[int, int]]:
    """Return the cheapest assignment of a matrix with no more rows than columns, a row at a time: O(n^2 m)."""
    m = len(cost[0])
    row_price, column_price = [0.0] * len(cost), [0.0] * m
    row_of = [-1] * m
    for start in range(len(cost)):
        shortest, before = [inf] * m, [-1] * m
        open_columns, done = list(range(m)), list[int]()
        row, length, column = start, 0.0, -1
        while row != -1:
            reach, price = length - row_price[row], cost[row]
            nearest = inf
            for j in open_columns:
                if (there := reach + price[j] - column_price[j]) < shortest[j]:
                    shortest[j], before[j] = there, row
                if shortest[j] < nearest:
                    nearest, column = shortest[j], j
            length, row = nearest, row_of[column]
            open_columns.remove(column)
            done.append(column)
        row_price[start] += length
        for j in done:
            if row_of[j] != -1:
                row_price[row_of[j]] += length - shortest[j]
            column_price[j] += shortest[j] - length
        _flip_path(row_of, before, column, start)
    return sorted((row, column) for column, row in enumerate(row_of) if row >= 0)


def _flip_path(row_of: list[int], before: Sequence[int], column: int, start: int) -> None:
    """Give each column of the path to the row before it, from the free column back to the new row."""
    column_of = {row: column for column, row in enumerate(row_of) if row >= 0}
    while True:
        row = before[column]
        row_of[column] = row
        if row == start:
            return
        column = column_of[row]
