"""How often intervals of corrected rates hold the true rate: rare classes, useless and excellent judges, few groups."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from service.stats.corrected import infer_from_labels, ppi
from service.stats.tallies import Floats

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
