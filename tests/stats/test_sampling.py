"""Strata, what to label next, and whether labels carry over: by hand, and how often intervals hold what is so."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from service.stats.sampling import Stratum, allocate_labels, compute_half_width, cut_strata, estimate_stratified_rate
from service.stats.transport import compare_means


def test_strata_never_part_equal_values() -> None:
    assert cut_strata({0.1: 4, 0.5: 1, 0.9: 1}) == [(0.1, 0.1), (0.5, 0.9)]
    assert cut_strata({0.3: 5}) == [(0.3, 0.3)]
    ranges = cut_strata({n / 100: 1 for n in range(100)})
    assert ranges == [(0.0, 0.24), (0.25, 0.49), (0.5, 0.74), (0.75, 0.99)]


def test_a_rate_weighs_each_stratum_by_its_items() -> None:
    strata = [Stratum(0, 0.5, 900, 10, 9), Stratum(0.6, 1, 100, 50, 0)]
    found = estimate_stratified_rate(strata)
    assert found is not None
    assert found.value == pytest.approx(0.9 * 0.9)
    assert found.low < found.value < found.high
    assert estimate_stratified_rate([*strata, Stratum(1, 1, 5, 0, 0)]) is None
    unsure = estimate_stratified_rate(strata, ess_ratio=0.2)
    assert unsure is not None
    assert unsure.high - unsure.low > found.high - found.low


def test_labels_go_where_they_tell_most() -> None:
    sure, unsure = Stratum(0, 0.1, 500, 20, 0), Stratum(0.4, 0.6, 500, 20, 10)
    more = allocate_labels([sure, unsure], 20)
    assert sum(more) == 20
    assert more[1] > 15
    assert compute_half_width([sure, unsure], more) < compute_half_width([sure, unsure], [10, 10])
    assert allocate_labels([Stratum(0, 0.1, 22, 20, 0), Stratum(0.4, 0.6, 21, 20, 10)], 20) == [2, 1]
    assert allocate_labels([sure, Stratum(0.2, 0.3, 10, 0, 0)], 1) == [0, 1]  # one without a label comes first


class Sampled(NamedTuple):
    rates: tuple[float, ...]
    labels: tuple[int, ...]


CELLS = [
    Sampled((0.02, 0.02, 0.5, 0.98), (10, 10, 40, 10)),
    Sampled((0.5, 0.5, 0.5, 0.5), (25, 25, 25, 25)),
    Sampled((0.0, 0.01, 0.02, 0.3), (8, 8, 8, 30)),
]


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_the_interval_holds_the_rate(cell: Sampled) -> None:
    rng, hits = np.random.default_rng(2), 0
    for _ in range(400):
        passing = [int(rng.binomial(n, rate)) for n, rate in zip(cell.labels, cell.rates, strict=True)]
        strata = [Stratum(0, 1, 1000, n, k) for n, k in zip(cell.labels, passing, strict=True)]
        found = estimate_stratified_rate(strata)
        assert found is not None
        hits += found.low <= sum(cell.rates) / 4 <= found.high
    assert hits / 400 >= 0.93 - 2 * (0.93 * 0.07 / 400) ** 0.5


@pytest.mark.parametrize(
    ("shift", "size", "least", "most"), [(0.0, 1, 0.0, 0.08), (0.0, 5, 0.0, 0.08), (0.5, 1, 0.9, 1.0)]
)
def test_a_shift_is_found_where_there_is_one_and_seldom_where_there_is_none(
    shift: float, size: int, least: float, most: float
) -> None:
    rng, found = np.random.default_rng(4), 0
    for _ in range(400):
        sides = [np.repeat(rng.normal(mean, 1, 100 // size), size) + rng.normal(0, 0.1, 100) for mean in (0.0, shift)]
        groups = [str(n // size) for n in range(100)]
        told = compare_means(sides[0].tolist(), sides[1].tolist(), (groups, groups))
        assert told is not None
        assert (told.p_value < 0.05) is not (told.low <= 0 <= told.high)
        found += told.p_value < 0.05
    assert least <= found / 400 <= most


def test_nothing_is_told_of_what_does_not_differ_or_is_one_group() -> None:
    assert compare_means([0.5] * 4, [0.5] * 4, ([None] * 4, [None] * 4)) is None
    assert compare_means([0.7] * 10, [0.7] * 7, ([None] * 10, [None] * 7)) is None, "but for noise"
    for low, high in ((0.0, 1.0), (0.1, 0.9)):
        told = compare_means([high] * 10, [low] * 3, ([None] * 10, [None] * 3))
        assert told is not None, "labels that never carry over"
        assert told.low < told.value < told.high < 0
        assert told.p_value == 2 / 286
    assert compare_means([0.1, 0.2], [0.3, 0.4], (["a", "a"], [None, None])) is None
