"""From where on verdicts agree: by hand, and how often the promise is kept where the truth is known."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from service.stats.selective import SideItem, bound_share, estimate_likeness, find_edge

ERROR = 0.025


def level(sureness: float, agreeing: int, differing: int, group: str = "") -> list[SideItem]:
    labels = [True] * agreeing + [False] * differing
    return [SideItem(sureness, label, group or f"{sureness}/{n}") for n, label in enumerate(labels)]


@pytest.mark.parametrize(
    ("items", "want"),
    [
        (level(0.9, 100, 0) + level(0.5, 60, 40), 0.9),
        (level(0.9, 100, 0) + level(0.7, 98, 2) + level(0.5, 60, 40), 0.7),
        (level(0.9, 60, 40) + level(0.5, 400, 0), None),  # nothing behind a failure is looked at
        (level(0.9, 30, 0) + level(0.5, 0, 60), None),  # thirty are too few to show it
        (level(0.9, 36, 0), 0.9),
        (level(0.9, 35, 0), None),
        (level(0.9, 36, 0, group="one"), None),  # one conversation is no thirty-six
        ([], None),
    ],
)
def test_by_hand(items: list[SideItem], want: float | None) -> None:
    assert find_edge(items, share=0.9, error=ERROR) == want


def test_the_bound_is_the_binomial_tail() -> None:
    from scipy.stats import binom

    low = bound_share(90, 100, ERROR)
    assert binom.sf(89, 100, low) == pytest.approx(ERROR)


def test_likeness() -> None:
    alone = [SideItem(0.5, n % 3 > 0, str(n)) for n in range(60)]
    alike = [SideItem(0.5, n // 5 % 2 > 0, str(n // 5)) for n in range(60)]
    mixed = [SideItem(0.5, (7 * n) % 11 > 4, str(n // 5)) for n in range(300)]
    assert estimate_likeness(alone) == 0
    assert estimate_likeness(alike) == 1
    assert estimate_likeness(mixed) < 0.15
    assert estimate_likeness([one._replace(agrees=True) for one in alike]) == 1


class Cell(NamedTuple):
    """Labels in groups of `size`, as alike as `alike` says; `slope`: how fast agreement falls from the surest on."""

    labels: int
    share: float
    slope: float
    levels: int
    size: int = 1
    alike: float = 0.0


EVERY = [
    Cell(labels, share, slope, levels, *grouped)
    for labels, share, slope, levels, grouped in product(
        (100, 300, 1000), (0.8, 0.9), (0.05, 0.2, 0.4), (3, 200), ((1, 0.0), (5, 0.2), (10, 0.5))
    )
]
SOME = [Cell(300, 0.9, 0.2, 3), Cell(300, 0.8, 0.4, 200), Cell(300, 0.9, 0.05, 200, 5, 0.2)]


def count_broken(cell: Cell, draws: int) -> float:
    """In which share of draws the true agreement of what is accepted lies below the promise."""
    rng, broken = np.random.default_rng(5), 0
    for _ in range(draws):
        rank = rng.integers(0, cell.levels, cell.labels) / (cell.levels - 1)
        chance = np.clip(cell.share + cell.slope / 2 - cell.slope * rank, 0.01, 0.99)
        agrees = rng.random(cell.labels) < chance
        groups = np.arange(cell.labels) // cell.size
        if cell.alike:  # an item follows its group's luck with a chance of the root of likeness
            follows = rng.random(cell.labels) < cell.alike**0.5
            agrees = np.where(follows, rng.random(groups[-1] + 1)[groups] < chance, agrees)
        items = [SideItem(1 - r, bool(a), str(g)) for r, a, g in zip(rank, agrees, groups, strict=True)]
        edge = find_edge(items, share=cell.share, error=0.05)
        if edge is not None:
            levels = np.arange(cell.levels) / (cell.levels - 1)
            true = np.clip(cell.share + cell.slope / 2 - cell.slope * levels, 0.01, 0.99)
            broken += true[1 - levels >= edge - 1e-9].mean() < cell.share - 1e-9
    return broken / draws


@pytest.mark.parametrize("cell", SOME, ids=str)
def test_the_promise_is_kept(cell: Cell) -> None:
    assert count_broken(cell, 200) <= 0.05 + 2 * (0.05 * 0.95 / 200) ** 0.5


@pytest.mark.chaos
def test_the_promise_is_kept_anywhere() -> None:
    """108 cells of 1,000 draws."""
    most = 0.05 + 2 * (0.05 * 0.95 / 1000) ** 0.5
    assert not {cell: broken for cell in EVERY if (broken := count_broken(cell, 1000)) > most}
