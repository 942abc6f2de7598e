"""Rates corrected by labels, worked out by hand."""

from __future__ import annotations

from dataclasses import astuple
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.stats.corrected import Groups, infer_from_labels, ppi


def test_ppi_by_hand() -> None:
    """Four labels, four more items. Covariance of label and score 1/3, variance of all scores 15/56, so trust 28/45.

    The interval counts four halves of items more: (0, 0), (1, 0), (0, 1) and (1, 1).
    """
    found = ppi([True, True, False, False], [1, 1, 0, 0], [1, 1, 1, 0], ([None] * 4, [None] * 4))
    trust = 28 / 45
    assert found.trust == pytest.approx(trust)
    assert found.value == pytest.approx(0.5 + trust * (0.75 - 0.5))
    rest, weights = np.array([1 - trust] * 2 + [0] * 2 + [0, 1, -trust, 1 - trust]), np.array([1.0] * 4 + [0.5] * 4)
    mean = float(weights @ rest) / 6
    own = float(weights @ (rest - mean) ** 2) / 36
    half = 3.182446 * (own + trust**2 * (15 / 56) / 4) ** 0.5
    centre = mean + trust * 0.75
    assert (found.low, found.high) == pytest.approx((max(0, centre - half), min(1, centre + half)), abs=1e-6)


def test_labels_that_all_agree_have_an_interval_that_holds_their_rate() -> None:
    """Thirty that pass: a mean of 31/32 with a variance of 31/32**3, and Student's t of 29."""
    found = infer_from_labels([True] * 30, [None] * 30)
    half = 2.045230 * sqrt(31 / 32**3)
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(31 / 32 - half, abs=1e-6)


@pytest.mark.parametrize(
    ("known", "others", "alone", "corrected"),
    [
        ([None, None], [None], True, True),
        (["a", None], ["b"], True, True),
        ([], [None], False, False),
        ([None], [None], False, False),
        ([None, None], [], True, False),
        (["a", "a"], ["b", "c"], False, False),  # one group shows nothing of how groups differ
        (["a", "b"], ["c", "c"], True, False),
    ],
)
def test_too_few_items_or_groups_have_no_interval(
    known: Groups, others: Groups, *, alone: bool, corrected: bool
) -> None:
    labels, said, elsewhere = [True] * len(known), [1.0] * len(known), [0.0] * len(others)
    assert (infer_from_labels(labels, known) is not None) is alone
    assert (ppi(labels, said, elsewhere, (known, others)) is not None) is corrected


def test_the_variance_of_groups_by_hand() -> None:
    """Pairs that sum to 2, 1 and 0, and four pseudo-items of weight 1: ten in all, with a mean of 1/2; two degrees of freedom."""
    labels, groups = [True, True, True, False, False, False], ["a", "a", "b", "b", "c", "c"]
    moved = [1, 0, -1, -0.5, 0.5, -0.5, 0.5]
    half = 4.302653 * sqrt(7 / 6 * sum((each / 10) ** 2 for each in moved))
    assert infer_from_labels(labels, groups).low == pytest.approx(max(0.0, 0.5 - half))
    # A judge who says the opposite of everything is not trusted, and changes nothing.
    said = [float(not label) for label in labels]
    assert ppi(labels, said, [0.0, 1.0], (groups, ["d", "e"])).low == pytest.approx(
        infer_from_labels(labels, groups).low
    )


def test_what_a_group_on_both_sides_adds_by_hand() -> None:
    """Twenty pairs, the same on both sides: each moves what the labels add by +-a and what the judge says by +-b: 2ab more."""
    values = [float(at // 2 % 2) for at in range(40)]
    groups, others = ([f"{side}{at // 2}" for at in range(40)] for side in "ab")
    labels = [value == 1 for value in values]
    shared, apart = ppi(labels, values, values, (groups, groups)), ppi(labels, values, values, (groups, others))
    assert shared.trust == apart.trust
    added, said = (1 - shared.trust) / 44, shared.trust / 40  # 40 labels and four pseudo-items of the weight 1
    more = (shared.width**2 - apart.width**2) / 4 / 2.093024**2  # Student's t with 19 degrees of freedom
    assert more == pytest.approx(20 * 2 * added * said, rel=1e-5)


def named(count: int) -> st.SearchStrategy[list[str | None]]:
    return st.lists(st.none() | st.sampled_from("abcdefgh"), min_size=count, max_size=count)


SCORES = st.floats(0, 1)


@given(st.data(), st.integers(2, 12), st.integers(1, 12))
def test_items_that_are_alone_in_their_groups_have_the_very_figures_of_items_without(
    data: st.DataObject, n: int, more: int
) -> None:
    labels, said, elsewhere = (
        data.draw(st.lists(each, min_size=size, max_size=size))
        for each, size in ((st.booleans(), n), (SCORES, n), (SCORES, more))
    )
    alone, unnamed, others = [f"a{at}" for at in range(n)], [None] * n, [None] * more
    assert ppi(labels, said, elsewhere, (alone, others)) == ppi(labels, said, elsewhere, (unnamed, others))
    assert infer_from_labels(labels, alone) == infer_from_labels(labels, unnamed)


@given(st.data(), st.integers(2, 12), st.integers(2, 12))
def test_neither_names_of_groups_nor_order_matter_and_no_interval_is_a_point(
    data: st.DataObject, n: int, more: int
) -> None:
    labels = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    said, elsewhere = (data.draw(st.lists(SCORES, min_size=size, max_size=size)) for size in (n, more))
    known, others = ["z", *data.draw(named(n - 2)), None], ["z", *data.draw(named(more - 2)), None]
    found = ppi(labels, said, elsewhere, (known, others))
    plain = ppi(labels, said, elsewhere, ([None] * n, [None] * more))
    assert (found.value, found.trust) == (plain.value, plain.trust)
    assert found.low <= found.value <= found.high
    assert found.width > 0
    order = data.draw(st.permutations(range(n)))
    turned = ppi(
        [labels[at] for at in order],
        [said[at] for at in order],
        elsewhere[::-1],
        ([known[at] and f"-{known[at]}" for at in order], [name and f"-{name}" for name in others[::-1]]),
    )
    assert astuple(turned)[:4] == pytest.approx(astuple(found)[:4], abs=1e-9)
