"""Statistics against their definitions, published examples and brute force."""

from __future__ import annotations

from itertools import combinations, product
from math import comb, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.stats.agreement import build_confusion
from service.stats.intervals import (
    bound_ratio,
    choose_difference,
    choose_interval,
    compute_intervals,
    draw_weights,
    mcnemar,
    newcombe,
    wilson,
)
from service.stats.rates import PairedCase, RatePart, compute_percentile, estimate, pass_hat_k
from service.stats.selective import estimate_icc, find_certainty_threshold
from service.stats.tallies import (
    BINS,
    TallyRows,
    auroc,
    auroc_within,
    brier,
    build_confusion_at,
    build_reliability,
    build_tally,
    ece,
)
from tests.bulk import examples

Z = NormalDist().inv_cdf(0.975)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 1, 4), (0, 0, 1), (4, 2, 0), (4, 5, 1), (4, -1, 1)])
def test_pass_hat_k_refuses_what_it_cannot_tell(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="trials"):
        pass_hat_k(n, c, k)


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_pass_hat_k_is_the_share_of_subsets_that_all_pass(passed: list[bool], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(passed)))
    subsets = [all(subset) for subset in combinations(passed, k)]
    assert pass_hat_k(len(passed), sum(passed), k) == pytest.approx(sum(subsets) / len(subsets))


@given(n=st.integers(1, 400), data=st.data())
def test_wilson_bounds_are_those_whose_own_error_reaches_the_rate(n: int, data: st.DataObject) -> None:
    """The definition: |rate - bound| = z * sqrt(bound * (1 - bound) / n)."""
    hits = data.draw(st.integers(0, n))
    for bound in wilson(hits, n):
        assert 0 <= bound <= 1
        assert abs(hits / n - bound) == pytest.approx(Z * sqrt(bound * (1 - bound) / n), abs=1e-7)


# Newcombe 1998 (Statistics in Medicine 17:2635-2650), table II: both, only a, only b, neither with a and b turned.


@pytest.mark.parametrize(("only_a", "only_b"), [(0, 0), (3, 3), (1, 9), (0, 6), (12, 4), (480, 520)])
def test_mcnemar_is_the_binomial_tail_twice(only_a: int, only_b: int) -> None:
    n = only_a + only_b
    tail = sum(comb(n, k) for k in range(n + 1) if comb(n, k) <= comb(n, only_a)) / 2**n
    assert mcnemar(only_a, only_b) == pytest.approx(min(1.0, tail))


def test_the_interval_agrees_with_theory_on_many_cases() -> None:
    """For the mean of many independent values it is close to the normal one."""
    values = [n % 11 / 10 for n in range(440)]
    low, high = bound_ratio([RatePart(None, value) for value in values])
    mean = sum(values) / len(values)
    half = Z * sqrt(sum((value - mean) ** 2 for value in values) / len(values) ** 2)
    assert (low, high) == pytest.approx((mean - half, mean + half), abs=0.1 * half)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.7, 0.9])
def test_rounding_makes_no_interval_narrow(rate: float) -> None:
    """Groups of one rate, and cases that all changed alike, differ by rounding alone."""
    low, high = bound_ratio([RatePart(group, rate) for group in "abbbccccccc"])
    assert high - low > 0.5
    low, high = choose_difference([PairedCase(None, rate + n / 100, rate + n / 100 - 0.1) for n in range(3)])
    assert low < -0.5
    assert high > 0


@pytest.mark.parametrize(
    ("rate", "groups", "trials", "spread"), [(0.5, 3, 3, 8), (0.5, 5, 5, 1000), (0.98, 30, 10, 1), (0.9, 10, 3, 8)]
)
def test_intervals_of_groups_cover_their_rate(rate: float, groups: int, trials: int, spread: float) -> None:
    """Few groups, and rare failures of whole groups: the true rate lies in the interval about as often as promised."""
    drawn, covered, draws = np.random.default_rng(7), 0, 300
    for _ in range(draws):
        own = [drawn.beta(spread * rate, spread * (1 - rate)) for _ in range(groups)]
        parts = [RatePart(str(n), float(drawn.random() < p)) for n, p in enumerate(own) for _ in range(trials)]
        low, high = bound_ratio(parts)
        covered += low <= rate <= high
    assert covered / draws >= 0.93


@pytest.mark.parametrize("tasks", [2, 5, 20])
def test_few_tasks_raise_no_false_alarm(tasks: int) -> None:
    """Repeated trials of few tasks, with nothing changed: the whole interval lies below 0 in some 2.5 % of runs at most."""
    drawn, alarms, runs = np.random.default_rng(7), 0, 300
    for _ in range(runs):
        rates = drawn.uniform(0.2, 0.8, (tasks, 1))
        a, b = drawn.random((tasks, 5)) < rates, drawn.random((tasks, 5)) < rates
        pairs = [PairedCase(str(n), float(a[n, k]), float(b[n, k])) for n in range(tasks) for k in range(5)]
        alarms += choose_difference(pairs)[1] < 0
    assert alarms / runs <= 0.045


PARTS = st.lists(
    st.builds(
        lambda group, share, size: RatePart(group, share * size, size),
        st.none() | st.sampled_from("ab"),
        st.integers(0, 4).map(lambda n: n / 4),
        st.integers(0, 3).map(float),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=examples(60), deadline=None)
@given(parts=PARTS, data=st.data())
def test_an_estimate_lies_in_its_interval_whatever_the_order(parts: list[RatePart], data: st.DataObject) -> None:
    found = estimate(parts, choose_interval)
    assert estimate(data.draw(st.permutations(parts)), choose_interval) == found
    if found.value is None:
        assert not any(part.size for part in parts)
        return
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.value <= found.high <= 1


@pytest.mark.parametrize("empty", [[], [RatePart(None, 0.0, 0.0)]])
def test_nothing_to_measure(empty: list[RatePart]) -> None:
    with pytest.raises(ValueError, match="nothing"):
        bound_ratio(empty)


def test_paired_differences() -> None:
    plain = [PairedCase(None, 1, 1)] * 36 + [PairedCase(None, 1, 0)] * 2 + [PairedCase(None, 0, 1)] * 12
    assert choose_difference(plain) == newcombe(36, 2, 12, 0)
    low, high = choose_difference([PairedCase(None, 0.5, 0.5 + n / 200) for n in range(50)])
    assert 0 < low < 0.1 < high <= 0.2
    with pytest.raises(ValueError, match="nothing"):
        choose_difference([])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.integers(0, 100))
def test_percentiles_are_numpys(values: list[float], q: int) -> None:
    import numpy as np

    assert compute_percentile(values, q) == pytest.approx(float(np.percentile(values, q)))


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


ITEMS = st.lists(st.tuples(st.integers(0, 6).map(lambda n: n / 6), st.booleans()), min_size=1, max_size=40)
Items = list[tuple[float, bool]]


def tallied(items: Items):
    return build_tally([score for score, _ in items], [label for _, label in items])


def won(items: Items) -> list[float]:
    """For each pair of a passing and a failing item, whether the passing one has the higher score."""
    passing, failing = [s for s, label in items if label], [s for s, label in items if not label]
    return [(p > f) + (p == f) / 2 for p, f in product(passing, failing)]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 6).map(lambda n: n / 6), st.booleans()), max_size=30))
def test_auroc_within_strata_looks_at_pairs_of_one_stratum(rows: list[tuple[str, float, bool]]) -> None:
    pairs = [one for name in "abc" for one in won([(s, label) for stratum, s, label in rows if stratum == name])]
    strata = [tallied([(s, label) for stratum, s, label in rows if stratum == name]) for name in "abc"]
    assert auroc_within(strata) == (pytest.approx(sum(pairs) / len(pairs)) if pairs else None)


@given(ITEMS)
def test_brier_is_the_mean_squared_distance(items: Items) -> None:
    assert brier(tallied(items)) == pytest.approx(sum((s - label) ** 2 for s, label in items) / len(items))


@given(ITEMS, st.integers(0, 6).map(lambda n: n / 6))
def test_verdicts_at_a_threshold(items: Items, threshold: float) -> None:
    want = build_confusion([label for _, label in items], [s >= threshold for s, _ in items])
    assert build_confusion_at(tallied(items), threshold) == want


@given(ITEMS)
def test_the_bins_hold_every_item_once_and_give_the_error(items: Items) -> None:
    found = build_reliability(tallied(items))
    assert sum(one.n for one in found) == len(items)
    assert len(found) <= BINS
    assert ece(tallied(items)) == pytest.approx(sum(one.n * abs(one.mean - one.share) for one in found) / len(items))


@given(ITEMS, st.data())
def test_a_weight_is_so_many_copies(items: Items, data: st.DataObject) -> None:
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(items), max_size=len(items)))
    copies = [item for item, weight in zip(items, weights, strict=True) for _ in range(weight)]
    rows = TallyRows([s for s, _ in items], [label for _, label in items])
    weighed = rows.tally(np.array(weights, dtype=np.float64))
    if not copies:
        assert (auroc(weighed), brier(weighed), ece(weighed), build_reliability(weighed)) == (None, None, None, ())
        return
    want = tallied(copies)
    assert (brier(weighed), ece(weighed)) == pytest.approx((brier(want), ece(want)))
    assert auroc(weighed) == (None if auroc(want) is None else pytest.approx(auroc(want)))
    assert build_reliability(weighed) == build_reliability(want)
