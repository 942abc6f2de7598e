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
    """What is drawn: `labels` items in groups of `size`, as alike as `alike` says."""

    labels: int
    rate: float
    judge: str
    size: int = 1
    alike: float = 0.0


EVERY = [
    Cell(labels, rate, judge, size, alike)
    for labels, rate, judge, (size, alike) in product(
        (30, 100, 300), (0.02, 0.1, 0.5, 0.98), JUDGES, ((1, 0.0), (5, 0.0), (5, 0.5), (10, 0.0), (10, 0.5))
    )
]
SOME = [
    Cell(30, 0.02, "lopsided"),
    Cell(30, 0.98, "excellent"),
    Cell(100, 0.5, "fair"),
    Cell(100, 0.02, "excellent", 10, 0.5),
    Cell(100, 0.1, "graded", 5, 0.5),
    Cell(30, 0.1, "fair", 10, 0.5),
]


def draw(rng: np.random.Generator, cell: Cell, count: int) -> tuple[list[bool], list[float]]:
    """Labels, and what the judge says of the same items."""
    rates: Floats = np.full(count, cell.rate)
    if cell.alike:
        spread = 1 / cell.alike - 1
        rates = np.repeat(rng.beta(cell.rate * spread, (1 - cell.rate) * spread, -(-count // cell.size)), cell.size)
    labels = rng.random(count) < rates[:count]
    judge = JUDGES[cell.judge]
    if judge is GRADED:
        return labels.tolist(), rng.beta(2 + 3 * labels, 5 - 3 * labels).tolist()
    right = rng.random(count) < np.where(labels, *judge)
    return labels.tolist(), (right == labels).astype(float).tolist()


def measure(cell: Cell, draws: int) -> tuple[float, float, float]:
    """How often both intervals hold the rate, by labels alone and corrected, and the least width of any."""
    rng, alone, both, width = np.random.default_rng(11), 0, 0, 1.0
    groups = [f"a{at // cell.size}" for at in range(cell.labels)], [f"b{at // cell.size}" for at in range(TRAFFIC)]
    for _ in range(draws):
        (labels, said), (_, elsewhere) = draw(rng, cell, cell.labels), draw(rng, cell, TRAFFIC)
        human, found = infer_from_labels(labels, groups[0]), ppi(labels, said, elsewhere, groups)
        alone += human.low <= cell.rate <= human.high
        both += found.low <= cell.rate <= found.high
        width = min(width, human.width, found.width)
    return alone / draws, both / draws, width


@pytest.mark.parametrize("cell", SOME, ids=str)
def test_intervals_hold_the_rate_as_often_as_they_say(cell: Cell) -> None:
    *covered, width = measure(cell, 400)
    assert min(covered) >= LEAST - 2 * (LEAST * (1 - LEAST) / 400) ** 0.5
    assert width > 0


@pytest.mark.chaos
def test_intervals_hold_the_rate_anywhere() -> None:
    """300 cells of 4,000 draws; none below 0.93 by more than two standard errors."""
    found = {cell: measure(cell, 4000) for cell in EVERY}
    least = LEAST - 2 * (LEAST * (1 - LEAST) / 4000) ** 0.5
    assert not {cell: one for cell, one in found.items() if min(one[:2]) < least or not one[2]}


def test_a_judge_who_knows_narrows_the_interval() -> None:
    rng = np.random.default_rng(7)
    for judge, share in (("excellent", 0.7), ("fair", 0.98), ("useless", 1.02)):
        (labels, said), (_, elsewhere) = (draw(rng, Cell(100, 0.5, judge), count) for count in (100, TRAFFIC))
        assert ppi(labels, said, elsewhere).width < share * infer_from_labels(labels).width
