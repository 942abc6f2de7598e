"""Intervals by drawing groups: what they are of, and how wide."""

from __future__ import annotations

import numpy as np
import pytest

from service.stats.intervals import compute_intervals, draw_weights


def mean_of(values: np.ndarray):
    return lambda weights: {"mean": float((weights * values).sum() / weights.sum())}


def test_a_draw_takes_groups_whole() -> None:
    groups = ["b", "a", "b", "c", "a"]
    for weights in draw_weights(groups, count=20):
        assert weights[0] == weights[2]
        assert weights[1] == weights[4]
        assert weights[0] + weights[1] + weights[3] == 3


def test_the_order_of_items_changes_nothing_and_the_seed_does() -> None:
    values, groups = np.arange(30) % 7 / 7, [str(n % 6) for n in range(30)]
    turned = compute_intervals(mean_of(values[::-1]), groups[::-1])
    assert compute_intervals(mean_of(values), groups)["mean"] == pytest.approx(turned["mean"], abs=1e-12)
    assert compute_intervals(mean_of(values), groups) != compute_intervals(mean_of(values), groups, seed=1)


def test_what_is_mostly_undefined_and_what_has_one_group_has_no_interval() -> None:
    def rarely(weights: np.ndarray) -> dict[str, float | None]:
        return {"rarely": 1.0 if weights[0] > 1 else None}

    assert compute_intervals(rarely, ["a", "b", "c"]) == {"rarely": None}
    assert compute_intervals(mean_of(np.ones(3)), ["a", "a", "a"]) == {"mean": None}
