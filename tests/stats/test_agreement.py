"""Agreement, rates corrected by few labels, and how often intervals cover the truth."""

from __future__ import annotations

from dataclasses import astuple
from itertools import permutations, product
from math import sqrt
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.stats.agreement import ConfusionTable, compare_annotators, compute_alpha
from service.stats.corrected import Groups, infer_from_labels, ppi
from service.stats.tallies import Floats
from tests.tables import DATA, read_yaml

TOO_FEW = read_yaml(DATA / "stats" / "too_few.yaml")

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


def test_ppi_by_hand() -> None:
    """Four labels, four more items. Covariance of label and score 1/3, variance of all scores 15/56, so trust 28/45.

    The interval counts four halves of items more: (0, 0), (1, 0), (0, 1) and (1, 1).
    """
    found = ppi([True, True, False, False], [1, 1, 0, 0], [1, 1, 1, 0], ([None] * 4, [None] * 4))
    trust = 28 / 45
    assert found.trust == pytest.approx(trust)
    assert found.value == pytest.approx(0.5 + trust * (0.75 - 0.5))
    rest, weights = np.array([1 - trust] * 2 + [0] * 2 + [0, 1, -trust, 1 - trust]), np.array([1.0] * 4 + [0.5] * 4)
    mean = float(weights @ rest) / 6
    own = float(weights @ (rest - mean) ** 2) / 36
    half = 3.182446 * (own + trust**2 * (15 / 56) / 4) ** 0.5
    centre = mean + trust * 0.75
    assert (found.low, found.high) == pytest.approx((max(0, centre - half), min(1, centre + half)), abs=1e-6)


def test_labels_that_all_agree_have_an_interval_that_holds_their_rate() -> None:
    """Thirty that pass: a mean of 31/32 with a variance of 31/32**3, and Student's t of 29."""
    found = infer_from_labels([True] * 30, [None] * 30)
    half = 2.045230 * sqrt(31 / 32**3)
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(31 / 32 - half, abs=1e-6)


@pytest.mark.parametrize(("known", "others", "alone", "corrected"), TOO_FEW["groups"])
def test_too_few_items_or_groups_have_no_interval(
    known: Groups, others: Groups, *, alone: bool, corrected: bool
) -> None:
    labels, said, elsewhere = [True] * len(known), [1.0] * len(known), [0.0] * len(others)
    assert (infer_from_labels(labels, known) is not None) is alone
    assert (ppi(labels, said, elsewhere, (known, others)) is not None) is corrected


def test_the_variance_of_groups_by_hand() -> None:
    """Pairs that sum to 2, 1 and 0, and four pseudo-items of weight 1: ten in all, with a mean of 1/2; two degrees of freedom."""
    labels, groups = [True, True, True, False, False, False], ["a", "a", "b", "b", "c", "c"]
    moved = [1, 0, -1, -0.5, 0.5, -0.5, 0.5]
    half = 4.302653 * sqrt(7 / 6 * sum((each / 10) ** 2 for each in moved))
    assert infer_from_labels(labels, groups).low == pytest.approx(max(0.0, 0.5 - half))
    # A judge who says the opposite of everything is not trusted, and changes nothing.
    said = [float(not label) for label in labels]
    assert ppi(labels, said, [0.0, 1.0], (groups, ["d", "e"])).low == pytest.approx(
        infer_from_labels(labels, groups).low
    )


def test_what_a_group_on_both_sides_adds_by_hand() -> None:
    """Twenty pairs, the same on both sides: each moves what the labels add by +-a and what the judge says by +-b: 2ab more."""
    values = [float(at // 2 % 2) for at in range(40)]
    groups, others = ([f"{side}{at // 2}" for at in range(40)] for side in "ab")
    labels = [value == 1 for value in values]
    shared, apart = ppi(labels, values, values, (groups, groups)), ppi(labels, values, values, (groups, others))
    assert shared.trust == apart.trust
    added, said = (1 - shared.trust) / 44, shared.trust / 40  # 40 labels and four pseudo-items of the weight 1
    more = (shared.width**2 - apart.width**2) / 4 / 2.093024**2  # Student's t with 19 degrees of freedom
    assert more == pytest.approx(20 * 2 * added * said, rel=1e-5)


def named(count: int) -> st.SearchStrategy[list[str | None]]:
    return st.lists(st.none() | st.sampled_from("abcdefgh"), min_size=count, max_size=count)


SCORES = st.floats(0, 1)


@given(st.data(), st.integers(2, 12), st.integers(1, 12))
def test_items_that_are_alone_in_their_groups_have_the_very_figures_of_items_without(
    data: st.DataObject, n: int, more: int
) -> None:
    labels, said, elsewhere = (
        data.draw(st.lists(each, min_size=size, max_size=size))
        for each, size in ((st.booleans(), n), (SCORES, n), (SCORES, more))
    )
    alone, unnamed, others = [f"a{at}" for at in range(n)], [None] * n, [None] * more
    assert ppi(labels, said, elsewhere, (alone, others)) == ppi(labels, said, elsewhere, (unnamed, others))
    assert infer_from_labels(labels, alone) == infer_from_labels(labels, unnamed)


@given(st.data(), st.integers(2, 12), st.integers(2, 12))
def test_neither_names_of_groups_nor_order_matter_and_no_interval_is_a_point(
    data: st.DataObject, n: int, more: int
) -> None:
    labels = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    said, elsewhere = (data.draw(st.lists(SCORES, min_size=size, max_size=size)) for size in (n, more))
    known, others = ["z", *data.draw(named(n - 2)), None], ["z", *data.draw(named(more - 2)), None]
    found = ppi(labels, said, elsewhere, (known, others))
    plain = ppi(labels, said, elsewhere, ([None] * n, [None] * more))
    assert (found.value, found.trust) == (plain.value, plain.trust)
    assert found.low <= found.value <= found.high
    assert found.width > 0
    order = data.draw(st.permutations(range(n)))
    turned = ppi(
        [labels[at] for at in order],
        [said[at] for at in order],
        elsewhere[::-1],
        ([known[at] and f"-{known[at]}" for at in order], [name and f"-{name}" for name in others[::-1]]),
    )
    assert astuple(turned)[:4] == pytest.approx(astuple(found)[:4], abs=1e-9)


TRAFFIC = 1000
"""Items without a label."""
LEAST = 0.93
GRADED = None
JUDGES: dict[str, tuple[float, float] | None] = {
    "useless": (0.5, 0.5),
    "fair": (0.7, 0.7),
    "lopsided": (0.5, 0.99),
    "excellent": (0.95, 0.99),
    "graded": GRADED,
}
"""How often a judge passes what people pass, and fails what they fail."""


class Cell(NamedTuple):
    """What is drawn: `labels` items in groups of `size`, as alike as `alike` says, and `others` without a label.

    The others are in groups of their own; `mixed`: which items are labelled is drawn item by item, so both sides share groups.
    """

    labels: int
    rate: float
    judge: str
    size: int = 1
    alike: float = 0.0
    others: int = TRAFFIC
    others_size: int = 0
    """0: as of the labelled items."""
    mixed: bool = False


EVERY = [
    Cell(labels, rate, judge, size, alike)
    for labels, rate, judge, (size, alike) in product(
        (30, 100, 300), (0.02, 0.1, 0.5, 0.98), JUDGES, ((1, 0.0), (5, 0.0), (5, 0.5), (10, 0.0), (10, 0.5))
    )
]
SOME = [
    Cell(30, 0.02, "lopsided"), Cell(30, 0.98, "excellent"), Cell(100, 0.5, "fair"),
    Cell(100, 0.02, "excellent", 10, 0.5), Cell(100, 0.1, "graded", 5, 0.5), Cell(30, 0.1, "fair", 10, 0.5),
    Cell(100, 0.6, "excellent", 1, 0.4, 80, 40), Cell(100, 0.6, "excellent", 1, 0.4, 200, 40),
    Cell(160, 0.6, "excellent", 5, 0.4, mixed=True),
]  # fmt: skip


def draw(rng: np.random.Generator, cell: Cell, count: int, size: int) -> Floats:
    """Labels, and below them what the judge says of the same items."""
    rates: Floats = np.full(count, cell.rate)
    if cell.alike:
        spread = 1 / cell.alike - 1
        rates = np.repeat(rng.beta(cell.rate * spread, (1 - cell.rate) * spread, -(-count // size)), size)
    labels = rng.random(count) < rates[:count]
    judge = JUDGES[cell.judge]
    if judge is GRADED:
        return np.array([labels, rng.beta(2 + 3 * labels, 5 - 3 * labels)])
    right = rng.random(count) < np.where(labels, *judge)
    return np.array([labels, right == labels], dtype=float)


class Coverage(NamedTuple):
    """How often each interval holds the rate, by labels alone and corrected; mean widths of both, and the least of any."""

    alone: float
    corrected: float
    alone_width: float
    corrected_width: float
    least_width: float


def measure(cell: Cell, draws: int) -> Coverage:
    rng = np.random.default_rng(11)
    sides = ("a", cell.labels, cell.size), ("b", cell.others, cell.others_size or cell.size)
    names = np.array([f"{side}{at // size}" for side, count, size in sides for at in range(count)])
    order = np.arange(len(names))
    held, widths = np.zeros((draws, 2)), np.zeros((draws, 2))
    for at in range(draws):
        items = np.concatenate([draw(rng, cell, count, size) for _, count, size in sides], axis=1)
        if cell.mixed:
            rng.shuffle(order)
        (labels, said), (_, elsewhere) = (items[:, part].tolist() for part in np.split(order, [cell.labels]))
        groups, others = (names[part].tolist() for part in np.split(order, [cell.labels]))
        known = list(map(bool, labels))
        found = infer_from_labels(known, groups), ppi(known, said, elsewhere, (groups, others))
        held[at] = [one.low <= cell.rate <= one.high for one in found]
        widths[at] = [one.width for one in found]
    return Coverage(*held.mean(0).tolist(), *widths.mean(0).tolist(), float(widths.min()))


@pytest.mark.parametrize("cell", SOME, ids=str)
def test_intervals_hold_the_rate_as_often_as_they_say(cell: Cell) -> None:
    found = measure(cell, 200)
    assert min(found.alone, found.corrected) >= LEAST - 2 * (LEAST * (1 - LEAST) / 200) ** 0.5
    assert found.least_width > 0


@pytest.mark.chaos
def test_intervals_hold_the_rate_anywhere() -> None:
    """300 cells of 4,000 draws; none below 0.93 by more than two standard errors."""
    found = {cell: measure(cell, 4000) for cell in EVERY}
    least = LEAST - 2 * (LEAST * (1 - LEAST) / 4000) ** 0.5
    for name, told in summarize(found).items():
        print(name, told)  # noqa: T201 (for the docs)
    assert not {cell: one for cell, one in found.items() if min(one[:2]) < least or not one.least_width}


def summarize(found: dict[Cell, Coverage]) -> dict[tuple[float, int], str]:
    """By prevalence and labels, over all judges and clusters: the least coverage of both, and widths beside labels alone."""
    rows: dict[tuple[float, int], list[tuple[Cell, Coverage]]] = {}
    for cell, one in found.items():
        rows.setdefault((cell.rate, cell.labels), []).append((cell, one))
    return {
        name: f"least {min(min(one[:2]) for _, one in row):.3f}; mean width alone"
        f" {np.mean([one.alone_width for _, one in row]):.3f}, "
        + ", ".join(
            f"{judge} {np.mean([one.corrected_width for cell, one in row if cell.judge == judge]):.3f}"
            for judge in JUDGES
        )
        for name, row in rows.items()
    }


def test_a_judge_who_knows_narrows_the_interval() -> None:
    rng = np.random.default_rng(7)
    for judge, share in (("excellent", 0.7), ("fair", 0.98), ("useless", 1.02)):
        (labels, said), (_, elsewhere) = (draw(rng, Cell(100, 0.5, judge), count, 1) for count in (100, TRAFFIC))
        known = labels.astype(bool).tolist()
        groups = [None] * 100, [None] * TRAFFIC
        alone = infer_from_labels(known, groups[0]).width
        assert ppi(known, said.tolist(), elsewhere.tolist(), groups).width < share * alone
