"""What is promised of accepted verdicts: it is tested side by side, held out, and passed on from judge to judge."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from service.calibration.figures import Resampling
from service.calibration.labels import LabelledSet, build_labelled_set
from service.calibration.options import ReportOptions
from service.calibration.predictions import Prediction
from service.calibration.promising import VerdictItem, find_guarantee
from service.calibration.results import read_report, render_json
from service.calibration.run import calibrate
from service.core.judging.fits import Guarantee
from service.errors import InputError
from tests.calibration.label_sets import item

QUICK = ReportOptions(resampling=Resampling(draws=0), jury=False, guarantee=0.9)


def sides(raw: float, agreeing: int, differing: int, *, passed: bool) -> list[VerdictItem]:
    labels = [passed] * agreeing + [not passed] * differing
    return [VerdictItem(raw, passed, label, f"{raw}/{n}") for n, label in enumerate(labels)]


def test_a_side_does_not_make_up_for_the_other() -> None:
    sure, poor = sides(0.1, 100, 0, passed=False), sides(0.9, 86, 14, passed=True)
    assert find_guarantee([*sure, *poor], 0.9) == Guarantee(share=0.9, fails_to=0.1)
    assert find_guarantee([*sure, *poor], 0.75) == Guarantee(share=0.75, fails_to=0.1, passes_from=0.9)
    nothing = find_guarantee(sides(0.5, 20, 10, passed=True), 0.9)
    assert not nothing.accepts_any
    assert not nothing.accepts(1.0)


def two_judges(count: int = 900) -> tuple[LabelledSet, list[Prediction]]:
    """One that is sure of half of the items, and right there; one that costs ten times as much and is right of the rest."""
    rng = random.Random(4)  # noqa: S311
    items, said = [], list[Prediction]()
    for n in range(count):
        label, easy = rng.random() < 0.5, n % 2 == 0
        items.append(item(n, label, group=str(n)))
        cheap = (0.95 if label else 0.05) if easy else rng.choice((0.4, 0.6))
        dear = 0.9 if label == (rng.random() < 0.97) else 0.1
        for model, raw, cost in (("cheap", cheap, 0.001), ("dear", dear, 0.01)):
            said.append(Prediction(id=items[-1].id, criterion="c", raw=raw, model=model, cost_usd=cost))
    return build_labelled_set(enumerate(items, 1), source="s"), said


def test_a_later_judge_is_asked_of_what_the_first_leaves() -> None:
    run = calibrate(*two_judges(), replace(QUICK, cascade=("cheap", "dear")))
    (found,) = run.report.cascades
    first, second = found.stages
    assert (first.reached, first.decided, first.agreement.value) == (1.0, 0.5, 1.0)
    assert (second.reached, second.decided) == (0.5, 0.5)
    assert found.coverage.value == 1.0
    assert found.cost_usd == pytest.approx(0.001 + 0.5 * 0.01)
    fits = {fit.model: fit for fit in run.fits}
    assert fits["cheap"].guarantee == Guarantee(share=0.9, fails_to=0.05, passes_from=0.95)
    assert fits["dear"].guarantee is not None
    assert fits["dear"].guarantee.after == fits["cheap"].id
    assert read_report(render_json(run.report)) == run.report
    with pytest.raises(InputError, match="no judge 'none' on 'c'; known: cheap, dear"):
        calibrate(*two_judges(100), replace(QUICK, cascade=("cheap", "none")))


def test_a_later_judge_is_tested_on_what_is_left_of_a_given_split_too() -> None:
    labels, said = two_judges()
    sided = [one.model_copy(update={"split": "test" if n % 4 < 2 else "fit"}) for n, one in enumerate(labels.items)]
    given = build_labelled_set(enumerate(sided, 1), source="s")
    (found,) = calibrate(given, said, replace(QUICK, cascade=("cheap", "dear"))).report.cascades
    assert [stage.decided for stage in found.stages] == [0.5, 0.5]


def test_no_threshold_is_a_fit_that_accepts_nothing() -> None:
    labels, said = two_judges(200)
    poor = [one.model_copy(update={"raw": 0.5}) for one in said if one.model == "dear"]
    run = calibrate(labels, poor, QUICK)
    assert run.fits[0].guarantee == Guarantee(share=0.9)
    assert run.fits[0].is_unsure(0.5, 0.5)
    promise = next(one for one in run.report.judges[0].promises if one.guarantee.share == 0.9)
    assert (promise.coverage.value, promise.agreement.value, promise.n) == (0.0, None, 0)
