"""From where on verdicts agree, by hand. How often that is kept: `tests/calibration/test_guarantees.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from service.stats.selective import estimate_icc, find_certainty_threshold

ERROR = 0.025
Level = tuple[float, int, int, bool, str]
"""How sure, how many agree and how many differ, whether they pass, and the one group that they are of, if they are."""


def rows(*levels: Level) -> tuple[Any, ...]:
    certainty, agrees, passes, groups = list[float](), list[bool](), list[bool](), list[str]()
    for sure, agreeing, differing, side, group in levels:
        for n in range(agreeing + differing):
            certainty.append(sure)
            agrees.append(n < agreeing)
            passes.append(side)
            groups.append(group or f"{sure}/{side}/{n}")
    return np.array(certainty), np.array(agrees, dtype=np.bool_), np.array(passes), number(groups)


def number(groups: list[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([sorted(set(groups)).index(one) for one in groups], dtype=np.int64)


def level(certainty: float, agreeing: int, differing: int, *, side: bool = True, group: str = "") -> Level:
    return certainty, agreeing, differing, side, group


@pytest.mark.parametrize(
    ("levels", "want"),
    [
        ([level(0.9, 100, 0), level(0.5, 60, 40)], 0.9),
        ([level(0.9, 100, 0), level(0.7, 98, 2), level(0.5, 60, 40)], 0.7),
        ([level(0.9, 60, 40), level(0.5, 400, 0)], None),  # nothing behind a failure is looked at
        ([level(0.9, 30, 0), level(0.5, 0, 60)], None),  # thirty are too few to show it
        ([level(0.9, 36, 0)], 0.9),
        ([level(0.9, 35, 0)], None),
        ([level(0.9, 36, 0, group="one")], None),  # one conversation is no thirty-six
        ([level(0.9, 300, 0), level(0.8, 90, 10, side=False)], 0.8),
        ([level(0.9, 300, 0), level(0.8, 89, 11, side=False)], 0.9),  # a side does not make up for the other
        ([], None),
    ],
)
def test_by_hand(levels: list[Level], want: float | None) -> None:
    assert find_certainty_threshold(*rows(*levels), share=0.9, error=ERROR) == want


def test_the_order_of_items_changes_nothing() -> None:
    found = rows(level(0.9, 95, 5), level(0.8, 90, 10, side=False), level(0.6, 30, 30, group="one"))
    mixed = np.random.default_rng(2).permutation(len(found[0]))
    assert find_certainty_threshold(*[column[mixed] for column in found], share=0.85, error=ERROR) == 0.8


def test_likeness() -> None:
    alone, fives = np.arange(60), np.arange(60) // 5
    assert estimate_icc(alone % 3 > 0, alone) == 0
    assert estimate_icc(fives % 2 > 0, fives) == 1
    assert estimate_icc((7 * np.arange(300)) % 11 > 4, np.arange(300) // 5) < 0.15
    assert estimate_icc(np.ones(60, dtype=np.bool_), fives) == 1
