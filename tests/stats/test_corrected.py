"""Rates corrected by labels: worked out by hand, and how often their intervals are right."""

from __future__ import annotations

from dataclasses import astuple
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.stats.corrected import Groups, infer_from_labels, ppi
from tests.bulk import WHOLE

DRAWS = 1_000 if WHOLE else 250
LEAST, MOST = (0.93, 0.97) if WHOLE else (0.91, 0.98)
"""How many of the draws an interval of 95 % may cover: three standard errors to either side."""


def test_ppi_by_hand() -> None:
    """Four labels, four more items. Covariance of label and score 1/3, variance of all scores 15/56, so trust 28/45.

    The interval counts four halves of items more: (0, 0), (1, 0), (0, 1) and (1, 1).
    """
    found = ppi([True, True, False, False], [1, 1, 0, 0], [1, 1, 1, 0])
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
    found = infer_from_labels([True] * 30)
    half = 2.045230 * sqrt(31 / 32**3)
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(31 / 32 - half, abs=1e-6)


@pytest.mark.parametrize(
    ("labels", "said", "elsewhere", "why"),
    [
        ([True], [1], [1], "1 labels of 1 groups"),
        ([True, False], [1], [1], "2 labels, 1 scores"),
        ([True, False], [1, 0], [], "0 items without a label"),
    ],
)
def test_ppi_refuses(labels: list[bool], said: list[float], elsewhere: list[float], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        ppi(labels, said, elsewhere)


# Groups.


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


def test_a_group_on_both_sides_widens_the_interval_where_its_items_are_alike() -> None:
    """Labels and their judge's values in pairs of equal ones; as many more of the same pairs, or of others."""
    labels, values = [True, True, False, False] * 10, [0.6, 0.6, 0.4, 0.4] * 10
    groups, others = ([f"{side}{at // 2}" for at in range(40)] for side in "ab")
    shared, apart = ppi(labels, values, values, (groups, groups)), ppi(labels, values, values, (groups, others))
    assert apart.trust > 0
    assert (shared.low, shared.high) != (apart.low, apart.high)
    assert shared.low <= apart.low
    assert apart.high <= shared.high


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
    alone: tuple[Groups, Groups] = [f"a{at}" for at in range(n)], [None] * more
    assert ppi(labels, said, elsewhere, alone) == ppi(labels, said, elsewhere)
    assert infer_from_labels(labels, alone[0]) == infer_from_labels(labels)


@given(st.data(), st.integers(2, 12), st.integers(2, 12))
def test_neither_names_of_groups_nor_order_matter_and_no_interval_is_a_point(
    data: st.DataObject, n: int, more: int
) -> None:
    labels = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    said, elsewhere = (data.draw(st.lists(SCORES, min_size=size, max_size=size)) for size in (n, more))
    known, others = ["z", *data.draw(named(n - 2)), None], ["z", *data.draw(named(more - 2)), None]
    found = ppi(labels, said, elsewhere, (known, others))
    plain = ppi(labels, said, elsewhere)
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


@pytest.mark.parametrize(
    ("groups", "why"),
    [
        ((["a", "a"], ["b", "c"]), "2 labels of 1 groups"),
        ((["a", "b"], ["c", "c"]), "2 items without a label of 1"),
        ((["a"], ["c", "d"]), "2 items, 1 groups"),
    ],
)
def test_one_group_tells_nothing_of_others(groups: tuple[list[str], list[str]], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        ppi([True, False], [1, 0], [1, 0], groups)


RATE, ALIKE = 0.6, 0.4
"""What passes, and how alike two items of one conversation are."""


def conversations(rng: np.random.Generator, count: int, right: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Group, label and score of the items of conversations with one to seven items, each with a rate of its own."""
    spread = (1 - ALIKE) / ALIKE
    rates = rng.beta(RATE * spread, (1 - RATE) * spread, count)
    groups = np.repeat(np.arange(count), rng.integers(1, 8, count))
    labels = rng.random(len(groups)) < rates[groups]
    return groups, labels, np.where((rng.random(len(groups)) < right) == labels, 0.8, 0.3)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("whole", "labelled", "right"), [(True, 40, 0.9), (True, 100, 0.75), (True, 100, 0.5), (False, 160, 0.9)]
)
def test_nominal_intervals_cover_where_items_come_in_groups(whole: bool, labelled: int, right: float) -> None:
    """Seeded draws of 400 conversations: some labelled as a whole, or items of them picked one by one.

    Without the groups the very same intervals are right far too seldom where conversations are labelled whole.
    """
    names = np.array([f"g{n}" for n in range(400)])
    rng, hits, alone, blind = np.random.default_rng(7), 0, 0, 0
    for _ in range(DRAWS):
        groups, labels, scores = conversations(rng, 400, right)
        picked = groups < labelled
        if not whole:
            picked = np.zeros(len(groups), dtype=bool)
            picked[rng.choice(len(groups), labelled, replace=False)] = True
        known, others = (names[groups[part]].tolist() for part in (picked, ~picked))
        sample = labels[picked].tolist(), scores[picked].tolist(), scores[~picked].tolist()
        found, human, ungrouped = ppi(*sample, (known, others)), infer_from_labels(sample[0], known), ppi(*sample)
        hits += found.low <= RATE <= found.high
        alone += human.low <= RATE <= human.high
        blind += ungrouped.low <= RATE <= ungrouped.high
    assert LEAST * DRAWS <= hits <= MOST * DRAWS
    assert LEAST * DRAWS <= alone <= MOST * DRAWS
    assert blind < (0.85 * DRAWS if whole else hits)


@pytest.mark.parametrize("others", [2, 3, 5, 20])
def test_few_groups_without_labels_say_little(others: int) -> None:
    """600 seeded draws: a hundred labelled items, each of a conversation of its own, beside few conversations of 40 items."""
    rng, hits, spread = np.random.default_rng(7), 0, (1 - ALIKE) / ALIKE
    names = [f"g{n}" for n in range(others) for _ in range(40)]
    for _ in range(600):
        rates = rng.beta(RATE * spread, (1 - RATE) * spread, 100 + others)
        passed = rng.random(100 + 40 * others) < np.concatenate([rates[:100], np.repeat(rates[100:], 40)])
        scores = np.where((rng.random(len(passed)) < 0.9) == passed, 0.8, 0.3)
        found = ppi(passed[:100].tolist(), scores[:100].tolist(), scores[100:].tolist(), ([None] * 100, names))
        hits += found.low <= RATE <= found.high
    assert hits >= 0.93 * 600
