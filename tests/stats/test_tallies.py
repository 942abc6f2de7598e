"""Figures of scores against brute force and by hand, and that order changes none of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.stats.agreement import build_confusion
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
