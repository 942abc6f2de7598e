"""Agreement against worked examples that were published, and against the definitions."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.stats.agreement import ConfusionTable, compare_annotators, compute_alpha
from service.stats.tallies import Floats

# Cohen's kappa, Gwet's AC1, balanced accuracy; by hand from the definitions. The third table is that of Gwet 2008.
TABLES = [
    (ConfusionTable(20, 5, 10, 15), 0.4, 1 / 101 * 41, (20 / 30 + 15 / 20) / 2),
    (ConfusionTable(45, 15, 25, 15), 0.13043, 0.26606, (45 / 70 + 15 / 30) / 2),
    (ConfusionTable(118, 5, 2, 0), -0.02339, 0.94078, (118 / 120 + 0 / 5) / 2),
    (ConfusionTable(10, 0, 0, 10), 1.0, 1.0, 1.0),
    (ConfusionTable(0, 10, 10, 0), -1.0, -1.0, 0.0),
]


@pytest.mark.parametrize(("table", "kappa", "ac1", "balanced"), TABLES)
def test_two_by_two(table: ConfusionTable, kappa: float, ac1: float, balanced: float) -> None:
    assert (table.kappa, table.balanced_accuracy) == pytest.approx((kappa, balanced), abs=1e-5)
    assert table.ac1 == pytest.approx(ac1, abs=1e-5)


FIGURES = (
    *("kappa", "ac1", "accuracy", "balanced_accuracy", "prevalence", "passed"),
    *("precision", "recall", "fail_precision", "fail_recall"),
)


@pytest.mark.parametrize(
    ("table", "undefined"),
    [
        (ConfusionTable(), set(FIGURES)),
        (ConfusionTable(5, 0, 0, 0), {"kappa", "balanced_accuracy", "fail_recall", "fail_precision"}),
        (ConfusionTable(0, 5, 0, 0), {"recall", "balanced_accuracy", "fail_precision"}),
    ],
)
def test_what_cannot_be_told_is_none(table: ConfusionTable, undefined: set[str]) -> None:
    assert {name for name in FIGURES if getattr(table, name) is None} == undefined


def count(units: list[tuple[int | None, ...]] | list[list[bool | None]]) -> Floats:
    """How many annotators pass and fail each unit."""
    return np.array([[unit.count(True), unit.count(False)] for unit in units], dtype=np.float64).reshape(-1, 2)


def alpha(units: list[tuple[int | None, ...]] | list[list[bool | None]]) -> float | None:
    return compute_alpha(count(units), np.ones(len(units)))


def test_alpha_of_the_published_example() -> None:
    """Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", section B."""
    one, other = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    assert alpha(list(zip(one, other, strict=True))) == pytest.approx(0.095, abs=5e-4)


def test_a_weight_is_so_many_copies() -> None:
    sides = np.array([[2, 1], [0, 3], [1, 0], [4, 4]], dtype=np.float64)
    copies = sides[[0, 0, 3]]
    assert compute_alpha(sides, np.array([2.0, 0, 0, 1])) == pytest.approx(compute_alpha(copies, np.ones(3)))


UNITS = st.lists(st.lists(st.sampled_from([True, False, None]), min_size=0, max_size=5), max_size=8)


def by_definition(units: list[list[bool | None]]) -> float | None:
    """1 - observed / expected disagreement, from the coincidence matrix, cell by cell."""
    cells = {(a, b): 0.0 for a in (True, False) for b in (True, False)}
    for unit in units:
        said = [label for label in unit if label is not None]
        for a, b in permutations(said, 2):
            cells[a, b] += 1 / (len(said) - 1)
    total = {a: cells[a, True] + cells[a, False] for a in (True, False)}
    n = sum(total.values())
    expected = total[True] * total[False]
    return None if not expected else 1 - (n - 1) * cells[True, False] / expected


@given(UNITS)
def test_alpha_is_what_the_coincidence_matrix_gives(units: list[list[bool | None]]) -> None:
    want = by_definition(units)
    assert alpha(units) == (None if want is None else pytest.approx(want))


@given(UNITS)
def test_one_annotator_against_another_is_the_mean_over_pairs(units: list[list[bool | None]]) -> None:
    table = ConfusionTable(*(float(cell.sum()) for cell in compare_annotators(count(units))))
    usable = [unit for unit in units if len(unit) - unit.count(None) > 1]
    assert table.n == pytest.approx(len(usable))
    assert table.fp == table.fn
    agreed = 0.0
    for unit in usable:
        pairs = list(permutations([label for label in unit if label is not None], 2))
        agreed += sum(a == b for a, b in pairs) / len(pairs)
    assert table.tp + table.tn == pytest.approx(agreed)
