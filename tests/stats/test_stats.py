"""Statistics against their definitions, published examples and brute force."""

from __future__ import annotations

from itertools import combinations
from math import comb, sqrt
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.stats.intervals import bootstrap, choose_difference, choose_interval, mcnemar, newcombe, wilson
from service.stats.rates import PairedCase, RatePart, compute_percentile, estimate, pass_hat_k
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


@pytest.mark.parametrize(("only_a", "only_b"), [(0, 0), (3, 3), (1, 9), (0, 6), (12, 4)])
def test_mcnemar_is_the_binomial_tail_twice(only_a: int, only_b: int) -> None:
    n = only_a + only_b
    tail = sum(comb(n, k) for k in range(n + 1) if comb(n, k) <= comb(n, only_a)) / 2**n
    assert mcnemar(only_a, only_b) == pytest.approx(min(1.0, tail))


def test_grouped_cases_have_the_wider_interval_of_their_groups() -> None:
    """Ten cases that are two groups of five like ones say less than ten cases."""
    alone = [RatePart(None, float(n % 2)) for n in range(40)]
    grouped = [RatePart(str(n % 8), float(n % 2)) for n in range(40)]
    (low, high), (wide_low, wide_high) = choose_interval(alone), choose_interval(grouped)
    assert wide_low < low
    assert high < wide_high


def test_the_bootstrap_agrees_with_theory_on_many_cases() -> None:
    """For the mean of many independent values the percentile interval is close to the normal one."""
    values = [n % 11 / 10 for n in range(440)]
    low, high = bootstrap([RatePart(None, value) for value in values])
    mean = sum(values) / len(values)
    half = Z * sqrt(sum((value - mean) ** 2 for value in values) / len(values) ** 2)
    assert (low, high) == pytest.approx((mean - half, mean + half), abs=0.1 * half)


def test_a_seed_fixes_every_digit_and_another_one_does_not() -> None:
    parts = [RatePart(None, n % 7 / 7) for n in range(30)]
    assert bootstrap(parts) == bootstrap(list(reversed(parts)))
    assert bootstrap(parts) != bootstrap(parts, seed=1)


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
def test_nothing_to_resample(empty: list[RatePart]) -> None:
    with pytest.raises(ValueError, match="nothing"):
        bootstrap(empty)


def test_paired_differences() -> None:
    plain = [PairedCase(None, 1, 1)] * 36 + [PairedCase(None, 1, 0)] * 2 + [PairedCase(None, 0, 1)] * 12
    assert choose_difference(plain) == newcombe(36, 2, 12, 0)
    low, high = choose_difference([PairedCase(None, 0.5, 0.5 + n / 20) for n in range(5)])
    assert 0 < low < 0.1 < high <= 0.2
    assert choose_difference([PairedCase(None, 0.5, 0.75)] * 4) == (
        pytest.approx(0.25 - wilson(0, 4)[1]),
        pytest.approx(0.25 + wilson(0, 4)[1]),
    )
    with pytest.raises(ValueError, match="no pairs"):
        choose_difference([])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.integers(0, 100))
def test_percentiles_are_numpys(values: list[float], q: int) -> None:
    import numpy as np

    assert compute_percentile(values, q) == pytest.approx(float(np.percentile(values, q)))
