"""Intervals by drawing groups: what they are of, how wide, and how often they are right."""

from __future__ import annotations

import numpy as np
import pytest

from service.stats.corrected import by_labels, ppi
from service.stats.resampling import draws, intervals

Z = 1.959964


def mean_of(values: np.ndarray):
    return lambda weights: {"mean": float((weights * values).sum() / weights.sum())}


def test_a_draw_takes_groups_whole() -> None:
    groups = ["b", "a", "b", "c", "a"]
    for weights in draws(groups, count=20):
        assert weights[0] == weights[2]
        assert weights[1] == weights[4]
        assert weights[0] + weights[1] + weights[3] == 3


def test_the_interval_of_many_single_items_is_the_normal_one() -> None:
    values = np.arange(440) % 11 / 10
    found = intervals(mean_of(values), [f"{n:03}" for n in range(440)])["mean"]
    half = Z * float(values.std()) / 440**0.5
    assert found == pytest.approx((values.mean() - half, values.mean() + half), abs=0.1 * half)


def test_like_items_of_a_group_count_as_one() -> None:
    values = np.repeat(np.arange(40) % 2, 5).astype(float)
    low, high = intervals(mean_of(values), [str(n // 5) for n in range(200)])["mean"] or (0, 0)
    assert high - low == pytest.approx(2 * Z * 0.5 / 40**0.5, rel=0.15)


def test_the_order_of_items_changes_nothing_and_the_seed_does() -> None:
    values, groups = np.arange(30) % 7 / 7, [str(n % 6) for n in range(30)]
    turned = intervals(mean_of(values[::-1]), groups[::-1])
    assert intervals(mean_of(values), groups)["mean"] == pytest.approx(turned["mean"], abs=1e-12)
    assert intervals(mean_of(values), groups) != intervals(mean_of(values), groups, seed=1)


def test_what_is_mostly_undefined_and_what_has_one_group_has_no_interval() -> None:
    def rarely(weights: np.ndarray) -> dict[str, float | None]:
        return {"rarely": 1.0 if weights[0] > 1 else None}

    assert intervals(rarely, ["a", "b", "c"]) == {"rarely": None}
    assert intervals(mean_of(np.ones(3)), ["a", "a", "a"]) == {"mean": None}


def test_ppi_without_a_useful_judge_is_the_mean_of_the_labels() -> None:
    labels = [True, False, True, True, False, True]
    found = ppi(labels, [0.5] * 6, [0.5] * 50)
    assert (found.trust, found.value) == (0.0, pytest.approx(4 / 6))
    assert (found.low, found.high) == pytest.approx((by_labels(labels).low, by_labels(labels).high))


def test_ppi_by_hand() -> None:
    """Four labels, four more items. Covariance of label and score 1/3, variance of all scores 2/7, so trust 7/12."""
    found = ppi([True, True, False, False], [1, 1, 0, 0], [1, 1, 1, 0])
    spread, shared = float(np.var([1, 1, 0, 0, 1, 1, 1, 0], ddof=1)), 1 / 3
    assert spread == pytest.approx(15 / 56)
    trust = min(1.0, shared / (2 * spread))
    assert found.trust == pytest.approx(trust)
    assert found.value == pytest.approx(0.5 + trust * (0.75 - 0.5))
    own = (1 - trust) ** 2 / 3
    half = 3.182446 * (own / 4 + trust**2 * spread / 4) ** 0.5
    assert found.high - found.low == pytest.approx(min(1, found.value + half) - max(0, found.value - half), abs=1e-5)


def test_how_many_more_labels_halve_the_interval() -> None:
    found = by_labels([True, False] * 50)
    assert found.more_labels == 300
    assert ppi([True, False] * 50, [1, 0] * 50, [1, 0] * 50).more_labels is None


@pytest.mark.parametrize(
    ("labels", "said", "elsewhere", "why"),
    [
        ([True], [1], [1], "2 labels"),
        ([True, False], [1], [1], "2 labels, 1 scores"),
        ([True, False], [1, 0], [], "without a label"),
    ],
)
def test_ppi_refuses(labels: list[bool], said: list[float], elsewhere: list[float], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        ppi(labels, said, elsewhere)


@pytest.mark.parametrize("n", [50, 100, 400])
@pytest.mark.parametrize(("right", "informative"), [(0.9, True), (0.75, True), (0.5, False)])
def test_nominal_intervals_cover_and_are_narrower_where_the_judge_knows_something(
    n: int, right: float, informative: bool
) -> None:
    """1,000 seeded draws of n labels and 4,000 more items; the judge's score is high for a passing item so often."""
    rng, rate, hits = np.random.default_rng(7), 0.6, 0
    widths: list[tuple[float, float]] = []
    for _ in range(1000):
        labels = rng.random(n + 4000) < rate
        scores = np.where((rng.random(n + 4000) < right) == labels, 0.8, 0.3)
        found = ppi(labels[:n].tolist(), scores[:n].tolist(), scores[n:].tolist())
        hits += found.low <= rate <= found.high
        widths.append((found.width, by_labels(labels[:n].tolist()).width))
    ours, alone = np.mean(widths, axis=0)
    assert 930 <= hits <= 970
    assert ours < (0.95 if informative else 1.01) * alone
