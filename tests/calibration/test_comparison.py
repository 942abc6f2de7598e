"""Two judges on the same items: by hand, by permutation, and that a difference is told where there is one and only there."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from service.calibration.comparison import (
    JudgeSide,
    compare_figures,
    compare_sides,
    read_prediction_sides,
    read_report_sides,
)
from service.calibration.figures import HeldOutItem, Resampling
from service.calibration.options import ReportOptions
from service.calibration.run import calibrate
from service.errors import InputError
from service.stats.intervals import wilson
from tests.calibration.label_sets import drawn

QUICK = Resampling(draws=40)


def side(name: str, *cells: tuple[bool, float], group: Callable[[int], str] = str, threshold: float = 0.5) -> JudgeSide:
    rows = [(f"i{n:03}", group(n), label, value) for n, (label, value) in enumerate(cells)]
    items = {name: HeldOutItem(name, own, label, value, value, value >= threshold) for name, own, label, value in rows}
    return JudgeSide(name, "c", items)


def test_by_hand() -> None:
    """Ten items, half of them pass. a: four passes right, one wrong, all failures right. b: all right but two failures.

    Accuracy 0.9 and 0.8; kappa 0.8 and 0.6; Brier scores 0.1 * 0.6^2 + 0.9 * 0.4^2 and 0.2 * 0.7^2 + 0.8 * 0.3^2.
    """
    a = side("a", *[(True, 0.6)] * 4, (True, 0.4), *[(False, 0.4)] * 5)
    b = side("b", *[(True, 0.7)] * 5, *[(False, 0.3)] * 3, *[(False, 0.7)] * 2)
    (found,) = compare_sides([a], [b], resampling=QUICK)
    want = {"accuracy": (0.9, 0.8), "kappa": (0.8, 0.6), "brier": (0.1 * 0.36 + 0.9 * 0.16, 0.2 * 0.49 + 0.8 * 0.09)}
    for row in found.figures:
        assert (row.a.value, row.b.value) == pytest.approx(want[row.name])
        assert row.difference.value == pytest.approx(want[row.name][1] - want[row.name][0])
        assert (row.difference.low or 0) <= (row.difference.value or 0) <= (row.difference.high or 0)
    assert (found.both_right, found.a_right, found.b_right, found.neither_right) == (7, 2, 1, 0)
    assert found.p_value == 1.0  # 2 against 1: of three, all sides are as uneven
    assert [(one.id, one.b_is_right) for one in found.differing] == [("i008", False), ("i009", False), ("i004", True)]


def test_judges_that_are_alike_everywhere_get_no_interval_without_width() -> None:
    both = side("a", *[(True, 0.9), (False, 0.2)] * 4)
    [found] = compare_sides([both], [both], resampling=QUICK)
    measures = [one for row in found.figures for one in (row.a, row.b, row.difference)]
    assert all(one.low is None or one.low != one.high for one in measures)
    accuracy = found.figures[0]
    assert (accuracy.a.low, accuracy.a.high, accuracy.difference.low) == (*wilson(8, 8), None)


def test_the_paired_interval_covers_and_is_narrower_than_two_apart() -> None:
    """Judges that share most of their errors, in groups: the true difference of the Brier scores is 0.05."""
    covered, rng = 0, random.Random(11)  # noqa: S311
    for _ in range(60):
        one: list[HeldOutItem] = []
        two: list[HeldOutItem] = []
        for n in range(120):
            label, hard = rng.random() < 0.5, rng.random() < 0.3
            sure = 0.5 if hard else 0.9
            one.append(HeldOutItem(str(n), str(n // 2), label, 0.0, sure if label else 1 - sure, True))
            sure -= 0.2 if rng.random() < 0.5 else 0.0
            two.append(HeldOutItem(str(n), str(n // 2), label, 0.0, sure if label else 1 - sure, True))
        found = compare_figures(one, two, Resampling(draws=100))[-1].difference
        # Half of the time 0.2 less sure: (0.3^2 - 0.1^2) of 70 %, (0.7^2 - 0.5^2) of 30 %.
        covered += (found.low or 0) <= 0.5 * (0.7 * 0.08 + 0.3 * 0.24) <= (found.high or 0)
    assert covered >= 52


def test_judges_of_runs_and_of_predictions() -> None:
    labels, predictions = drawn(240, judges=(0.9, 0.6))
    run = calibrate(labels, predictions, ReportOptions(resampling=QUICK))
    sides = read_report_sides(run)
    assert [one.name for one in sides] == ["m0", "m1", "jury of 2"]
    (found,) = compare_sides(sides, sides, ("m0", "m1"), resampling=QUICK)
    held = run.judges[0]
    assert found.items == held.after.n
    for row, judge in ((row, judge) for row in found.figures for judge in run.judges):
        mine = row.a if judge.name == "m0" else row.b
        assert mine.value == judge.after.of(row.name).value
    raw = read_prediction_sides(labels, predictions)
    (found,) = compare_sides(raw, raw, ("m0", "m1"), resampling=QUICK)
    assert found.items == 240
    assert (found.figures[1].difference.value or 0) < 0  # kappa of the poorer judge


def test_what_cannot_be_compared() -> None:
    a, b = side("a", (True, 0.5)), side("b", (False, 0.5))
    with pytest.raises(InputError, match="its labels differ"):
        compare_sides([a], [b], resampling=QUICK)
    with pytest.raises(InputError, match="share no criterion"):
        compare_sides([a], [JudgeSide("b", "d", b.items)], resampling=QUICK)
    with pytest.raises(InputError, match="share no item"):
        compare_sides([a], [JudgeSide("b", "c", {})], resampling=QUICK)
    with pytest.raises(InputError, match="A: 2 judges on 'c'; name one of: a, b"):
        compare_sides([a, b], [a], resampling=QUICK)
    with pytest.raises(InputError, match="B: no judge 'z' on 'c'; name one of: a"):
        compare_sides([a], [a], (None, "z"), resampling=QUICK)
