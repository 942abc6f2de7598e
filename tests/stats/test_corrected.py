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


def test_ppi_without_a_useful_judge_is_the_mean_of_the_labels() -> None:
    labels = [True, False, True, True, False, True]
    found = ppi(labels, [0.5] * 6, [0.5] * 50)
    assert (found.trust, found.value) == (0.0, pytest.approx(4 / 6))
    assert (found.low, found.high) == pytest.approx((infer_from_labels(labels).low, infer_from_labels(labels).high))


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
    found = infer_from_labels([True, False] * 50)
    assert found.more_labels == 300
    assert ppi([True, False] * 50, [1, 0] * 50, [1, 0] * 50).more_labels is None


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


@pytest.mark.whole
@pytest.mark.parametrize("n", [50, 100, 400])
@pytest.mark.parametrize(("right", "informative"), [(0.9, True), (0.75, True), (0.5, False)])
def test_nominal_intervals_cover_and_are_narrower_where_the_judge_knows_something(
    n: int, right: float, informative: bool
) -> None:
    """Seeded draws of n labels and 4,000 more items; the judge's score is high for a passing item so often."""
    rng, rate, hits = np.random.default_rng(7), 0.6, 0
    widths: list[tuple[float, float]] = []
    for _ in range(DRAWS):
        labels = rng.random(n + 4000) < rate
        scores = np.where((rng.random(n + 4000) < right) == labels, 0.8, 0.3)
        found = ppi(labels[:n].tolist(), scores[:n].tolist(), scores[n:].tolist())
        hits += found.low <= rate <= found.high
        widths.append((found.width, infer_from_labels(labels[:n].tolist()).width))
    ours, alone = np.mean(widths, axis=0)
    assert LEAST * DRAWS <= hits <= MOST * DRAWS
    assert ours < (0.95 if informative else 1.01) * alone


# Groups.


def test_the_variance_of_groups_by_hand() -> None:
    """Means of 1, 1/2 and 0 over three pairs: their variance is 1/4, that of their mean 1/12; Student's t has two degrees."""
    labels, groups = [True, True, True, False, False, False], ["a", "a", "b", "b", "c", "c"]
    assert infer_from_labels(labels, groups).low == pytest.approx(max(0.0, 0.5 - 4.302653 * sqrt(1 / 12)))
    # A judge who says the opposite of everything is not trusted, and changes nothing.
    said = [float(not label) for label in labels]
    assert ppi(labels, said, [0.0, 1.0], (groups, ["d", "e"])).low == pytest.approx(
        infer_from_labels(labels, groups).low
    )


def test_both_sides_of_a_group_move_together() -> None:
    """Six labels and their judge's values 1 and 0, in pairs of equal ones; six more of the same three pairs or of others."""
    labels, values = [True, True, False, False, True, True], [0.9, 0.9, 0.2, 0.2, 0.2, 0.2]
    groups, others = ["a", "a", "b", "b", "c", "c"], ["d", "d", "e", "e", "f", "f"]
    shared, apart = ppi(labels, values, values, (groups, groups)), ppi(labels, values, values, (groups, others))
    trust, y, f = apart.trust, np.array([1, 0, 1.0]), np.array([0.9, 0.2, 0.2])
    rest, told = y - trust * f, trust * f
    own, fixed = float(rest.var(ddof=1)) / 3, float(told.var(ddof=1)) / 3
    both = 2 * float(((rest - rest.mean()) / 3 * (told - told.mean()) / 3).sum())
    t = 4.302653
    assert 0 < trust < 1
    assert apart.value - apart.low == pytest.approx(min(apart.value, t * sqrt(own + fixed)))
    assert shared.value - shared.low == pytest.approx(min(shared.value, t * sqrt(own + fixed + max(0.0, both))))


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
def test_groups_never_narrow_an_interval_and_neither_names_nor_order_matter(
    data: st.DataObject, n: int, more: int
) -> None:
    labels = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    said, elsewhere = (data.draw(st.lists(SCORES, min_size=size, max_size=size)) for size in (n, more))
    known, others = ["z", *data.draw(named(n - 2)), None], ["z", *data.draw(named(more - 2)), None]
    found = ppi(labels, said, elsewhere, (known, others))
    plain = ppi(labels, said, elsewhere)
    assert (found.value, found.trust) == (plain.value, plain.trust)
    assert found.low <= plain.low
    assert plain.high <= found.high
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


def test_labels_of_one_group_have_no_interval() -> None:
    with pytest.raises(ValueError, match="of 1 groups"):
        infer_from_labels([True, False], ["a", "a"])


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
        found = ppi(
            passed[:100].tolist(), scores[:100].tolist(), scores[100:].tolist(), ([None] * 100, names), confidence=0.9
        )
        hits += found.low <= RATE <= found.high
    assert hits >= 0.88 * 600
