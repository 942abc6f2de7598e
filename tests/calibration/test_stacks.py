"""Steps of runs: the first wrong one, and many recorded judges as one sum."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from service.calibration.ensembles.stack_model import StackedItem, fit_stack
from service.calibration.figures import Resampling
from service.calibration.first_errors import JudgedStep, score_first_errors
from service.calibration.labels import LabelledSet, build_labelled_set
from service.calibration.options import ReportOptions
from service.calibration.predictions import Prediction
from service.calibration.run import calibrate
from tests.calibration.label_sets import item

QUICK = ReportOptions(resampling=Resampling(draws=20), jury=False, reported_shares=(), max_disagreements=0)


@pytest.mark.parametrize(
    ("said", "labels", "named"),
    [
        ("++-", "++-", True),
        ("+-+", "++-", False),
        ("+++", "+++", True),
        ("++-", "+++", False),
        ("+++", "++-", False),
        ("+--", "+-+", True),
    ],
)
def test_the_first_wrong_step(said: str, labels: str, named: bool) -> None:
    steps = [
        JudgedStep("r", at, "g", one == "+", other == "+")
        for at, (one, other) in enumerate(zip(said, labels, strict=True))
    ]
    assert score_first_errors(reversed(steps))["r"].hits == named


def runs(count: int = 120) -> tuple[LabelledSet, list[Prediction]]:
    """Runs of three steps in two families; `a` is good in one of them, `b` in the other; `c` knows nothing and has gaps."""
    rng = random.Random(6)  # noqa: S311
    items, said = [], list[Prediction]()
    for n in range(3 * count):
        family, label = "xy"[n // 3 % 2], rng.random() < 0.7
        fields = {"group": f"g{n // 6}", "family": family, "stratum": family, "run": f"r{n // 3}", "position": n % 3}
        items.append(item(n, label, **fields))
        for model, right in (("a", 0.95 if family == "x" else 0.6), ("b", 0.6 if family == "x" else 0.95)):
            passed = label == (rng.random() < right)
            said.append(Prediction(id=items[-1].id, criterion="c", raw=float(passed), model=model))
        if n % 5:
            said.append(Prediction(id=items[-1].id, criterion="c", raw=rng.choice((0.0, 0.5, 1.0)), model="c"))
    return build_labelled_set(enumerate(items, 1), source="s"), said


def test_a_stack_knows_who_is_good_at_what() -> None:
    report = calibrate(*runs(), replace(QUICK, stack=True)).report
    (stack,) = report.stacks
    assert (stack.members, stack.best in "ab", stack.figures.n) == (("a", "b", "c"), True, 360)
    assert (stack.kappa.value or 0) > 0.2
    assert (stack.kappa.low or 0) > 0
    assert ((stack.first_error_gain and stack.first_error_gain.value) or 0) > 0.1
    assert [one.name for one in stack.families] == ["x", "y"]
    assert all(one.first_error is not None for one in stack.families)
    assert report.judges[0].first_error is not None
    assert report.judges[0].slices[0].first_error is not None
    assert len(calibrate(*runs(), QUICK).fits) == 3  # a stack is not served


def test_what_nobody_said_moves_nothing() -> None:
    items = [StackedItem((float(n % 2), None), "f") for n in range(40)]
    stack = fit_stack(items, [n % 2 == 0 for n in range(40)], [n % 4 for n in range(40)])
    low, high = stack.apply([StackedItem((1.0, None), "f"), StackedItem((0.0, None), "f")]).tolist()
    assert low < 0.3
    assert high > 0.7
    assert stack.apply([StackedItem((1.0, 0.0), "f"), StackedItem((1.0, 1.0), "new")])[0] == pytest.approx(low)
