"""What is fitted: against closed forms, brute force and published properties."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.calibration.fitting import (
    build_coverage_curve,
    choose_band,
    choose_method,
    choose_threshold,
    explain_too_few,
    fit_map,
)
from service.calibration.labels import LabelledItem
from service.calibration.splits import assign_folds, names_split, read_split
from service.core.judging.fits.maps import Platt
from service.errors import InputError
from service.stats.tallies import LabelTally, build_confusion_at, build_tally
from tests.bulk import examples
from tests.calibration.label_sets import item

ITEMS = st.lists(st.tuples(st.integers(0, 8).map(lambda n: n / 8), st.booleans()), min_size=1, max_size=40)
Items = list[tuple[float, bool]]


def tallied(items: Items) -> LabelTally:
    return build_tally([score for score, _ in items], [label for _, label in items])


def test_platt_on_separated_items_stays_finite_and_on_a_judge_upside_down_is_flat() -> None:
    apart = fit_map("platt", tallied([(0.1, False)] * 30 + [(0.9, True)] * 30))
    assert 0.9 < apart.apply(0.9) < 1
    wrong = fit_map("platt", tallied([(0.1, True)] * 30 + [(0.9, False)] * 10))
    assert isinstance(wrong, Platt)
    assert wrong.slope == 0
    assert wrong.apply(0.0) == pytest.approx((30 * 31 / 32 + 10 * 1 / 12) / 40)


@settings(max_examples=examples(40), deadline=None)
@given(ITEMS)
def test_platt_is_the_best_of_its_kind(items: Items) -> None:
    found = fit_map("platt", tallied(items))
    assert isinstance(found, Platt)
    passed, failed = sum(label for _, label in items), sum(not label for _, label in items)
    targets = [(s, (passed + 1) / (passed + 2) if label else 1 / (failed + 2)) for s, label in items]

    def loss(slope: float, offset: float) -> float:
        return sum(float(np.logaddexp(0, slope * s + offset)) - t * (slope * s + offset) for s, t in targets)

    best = loss(found.slope, found.offset)
    for slope, offset in product((-0.05, 0.0, 0.05), repeat=2):
        assert best <= loss(max(0.0, found.slope + slope), found.offset + offset) + 1e-7


@given(ITEMS)
def test_isotonic_is_the_min_max_of_means(items: Items) -> None:
    """Barlow et al. 1972: the value at x is the greatest, over starts up to x, of the least mean, over ends from x on."""
    found, scores = fit_map("isotonic", tallied(items)), sorted({s for s, _ in items})
    for x in scores:
        means = [
            min(np.mean([label for s, label in items if a <= s <= b]) for b in scores if b >= x)
            for a in scores
            if a <= x
        ]
        assert found.apply(x) == pytest.approx(float(max(means)))


def labelled(count: int, *, failing: int = 10, size: int = 1) -> list[LabelledItem]:
    return [item(n, n >= failing, group=str(n // size)) for n in range(count)]


@pytest.mark.parametrize(
    ("items", "choice", "want", "why"),
    [
        (labelled(49), "auto", "identity", "49 labels are too few: 50 are needed"),
        (labelled(50), "auto", "platt", ""),
        (labelled(50, size=6), "auto", "identity", "9 groups are too few: 10 are needed"),
        (labelled(200, failing=9), "auto", "identity", "9 labels of the rarer class are too few: 10 are needed"),
        (labelled(200, failing=195), "auto", "identity", "5 labels of the rarer class are too few: 10 are needed"),
        (labelled(299), "auto", "platt", ""),
        (labelled(300), "auto", "isotonic", ""),
        (labelled(9), "platt", "platt", "9 labels are too few: 50 are needed"),
    ],
)
def test_which_method(items: list[LabelledItem], choice, want: str, why: str) -> None:
    assert (choose_method(items, choice), explain_too_few(items)) == (want, why)


@given(ITEMS)
def test_the_threshold_is_as_good_as_any(items: Items) -> None:
    found = tallied(items)
    best = build_confusion_at(found, choose_threshold(found)).balanced_accuracy
    for n in range(-1, 18):
        other = build_confusion_at(found, n / 16).balanced_accuracy
        assert (best is None) is (other is None)
        # Failing everything is no better than passing everything, and no threshold in [0, 1] does it.
        assert best is None or other is None or best >= other - 1e-12


SURE = [(0.1, False)] * 40 + [(0.45, False)] * 5 + [(0.45, True)] * 5 + [(0.9, True)] * 50


def test_the_band_holds_what_is_least_sure() -> None:
    found = tallied(SURE)
    band = choose_band(found, 0.5)
    assert band is not None
    assert band[0] <= 0.45 < band[1]
    assert band[1] <= 0.9
    assert choose_band(found, 0.5, least=0.95) is None
    assert choose_band(tallied([(0.1, False), (0.9, True)]), 0.5) is None


@given(ITEMS, st.integers(1, 15).map(lambda n: n / 16))
def test_the_coverage_curve(items: Items, threshold: float) -> None:
    found, points = tallied(items), build_coverage_curve([(tallied(items), threshold)])
    assert points[0].coverage == 1
    assert points[0].accuracy == pytest.approx(build_confusion_at(found, threshold).accuracy)
    assert all(a.coverage > b.coverage and a.margin < b.margin for a, b in pairwise(points))


GROUPS = st.lists(st.integers(0, 30), min_size=1, max_size=60)


@given(GROUPS, st.text(max_size=3), st.integers(2, 6), st.randoms(use_true_random=False))
def test_groups_are_dealt_out_whole_and_evenly(groups: list[int], seed: str, folds: int, chance) -> None:
    items = [item(n, True, group=str(group)) for n, group in enumerate(groups)]
    fold = assign_folds(items, seed=seed, folds=folds)
    mixed = list(items)
    chance.shuffle(mixed)
    assert fold == assign_folds(mixed, seed=seed, folds=folds)
    assert set(fold) == {str(group) for group in groups}
    sizes = [list(fold.values()).count(number) for number in range(folds)]
    assert max(sizes) - min(sizes) <= 1


def test_a_split_that_items_name_holds() -> None:
    def sides(*given: str | None) -> list[str]:
        split = read_split([item(n, True, group=str(n), split=side) for n, side in enumerate(given)])
        return [split[str(n)] for n in range(len(given))]

    assert not names_split([item(0, True)])
    assert names_split([item(0, True), item(1, True, split="fit")])
    assert sides("test", None, "fit") == ["test", "fit", "fit"]
    assert sides("fit", None) == ["fit", "test"]
    assert read_split([item(0, True, group="g"), item(1, True, group="g", split="fit")]) == {"g": "fit"}
    with pytest.raises(InputError, match="both sides"):
        read_split([item(0, True, group="g", split="fit"), item(1, True, group="g", split="test")])
