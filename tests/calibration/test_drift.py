"""The check of a run: which figure fell to which side, on the same items."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.calibration.drift import CheckReport, check_judge, draw_sample, read_check, select_named
from service.calibration.figures import Resampling
from service.calibration.options import ReportOptions
from service.calibration.predictions import Prediction
from service.calibration.results import HeldOutItem, JudgeReport, render_json
from service.calibration.run import calibrate
from service.core.judging.fits import Fit
from service.errors import InputError
from service.stats.agreement import build_confusion
from tests.calibration import label_sets

QUICK = Resampling(draws=60)


@pytest.fixture(scope="module")
def run() -> tuple[JudgeReport, Fit]:
    found = calibrate(*label_sets.drawn(400, judges=(0.85,)), ReportOptions(resampling=QUICK))
    return found.report.judges[0], found.fits[0]


def said(sample: tuple[HeldOutItem, ...], *, wrong: int = 0) -> dict[str, Prediction]:
    """What was said before; of the first so many that were right, the opposite."""
    flipped = [one.id for one in sample if (one.raw >= 0.5) is one.label][:wrong]
    values = {one.id: 1 - one.raw if one.id in flipped else one.raw for one in sample}
    return {name: Prediction(id=name, criterion="c", raw=raw, model="m0") for name, raw in values.items()}


def test_the_same_answers_are_as_they_were(run: tuple[JudgeReport, Fit]) -> None:
    judge, fit = run
    sample = draw_sample(judge, 10_000)
    found = check_judge(judge, fit, sample, said(sample), QUICK)
    assert (found.n, found.groups, found.outside, found.unanswered) == (400, 100, (), 0)
    assert found.then == found.now


def test_a_judge_that_got_worse_is_told_by_figure_and_side(run: tuple[JudgeReport, Fit]) -> None:
    judge, fit = run
    sample = draw_sample(judge, 100)
    found = check_judge(judge, fit, sample, said(sample, wrong=40), QUICK)
    verdicts = [fit.calibrator.apply(one.raw).value >= judge.threshold for one in said(sample, wrong=40).values()]
    now = build_confusion([one.label for one in sample], verdicts)
    assert (found.now["kappa"].value, found.now["accuracy"].value) == pytest.approx((now.kappa, now.accuracy))
    assert [(one.statistic, one.direction) for one in found.outside] == [("kappa", "below"), ("accuracy", "below")]
    assert str(found.outside[1]).startswith(f"accuracy is {now.accuracy:.3f}, below the low end, ")


def test_a_judge_that_is_another_may_agree_better(run: tuple[JudgeReport, Fit]) -> None:
    judge, fit = run
    sample = draw_sample(judge, 200)
    better = {one.id: Prediction(id=one.id, criterion="c", raw=0.9 if one.label else 0.1, model="m9") for one in sample}
    found = check_judge(judge, fit, sample, better, QUICK)
    assert [(one.statistic, one.direction) for one in found.outside] == [("kappa", "above"), ("accuracy", "above")]
    assert (found.model, found.models) == ("m0", ("m9",))


def test_where_all_was_right_a_single_slip_is_no_alarm(run: tuple[JudgeReport, Fit]) -> None:
    """The bootstrap's interval of kappa would be a point. None of 60 wrong: Wilson's interval reaches down to 0.94."""
    judge, fit = run
    right = tuple([one for one in judge.items if (one.value >= judge.threshold) is one.label][:60])
    alone = tuple([replace(one, group=one.id) for one in right])
    assert len({one.label for one in alone}) == 2
    for wrong, outside in ((0, []), (1, []), (3, []), (4, ["accuracy"])):
        found = check_judge(judge, fit, alone, said(alone, wrong=wrong), QUICK)
        assert [one.statistic for one in found.outside] == outside, wrong


def test_the_sample_is_pinned(run: tuple[JudgeReport, Fit]) -> None:
    judge, _ = run
    one = draw_sample(judge, 30)
    assert one == draw_sample(replace(judge, items=tuple(reversed(judge.items))), 30)
    assert {item.id for item in one} < {item.id for item in draw_sample(judge, 31)}
    assert one != draw_sample(judge, 30, seed="other")
    assert select_named(judge, [item.id for item in reversed(one)]) == one
    with pytest.raises(InputError, match="no held-out item"):
        select_named(judge, ["nowhere"])


def test_what_was_not_answered_is_left_out_on_both_sides(run: tuple[JudgeReport, Fit]) -> None:
    judge, fit = run
    sample = draw_sample(judge, 50)
    answers = said(sample)
    kept = {name: answers[name] for name in sorted(answers)[:40]}
    found = check_judge(judge, fit, sample, kept, QUICK)
    assert (found.n, found.unanswered, len(found.items)) == (40, 10, 50)
    assert found.then == check_judge(judge, fit, [one for one in sample if one.id in kept], kept, QUICK).then
    with pytest.raises(InputError, match="none of 50 items was answered"):
        check_judge(judge, fit, sample, {}, QUICK)


def test_a_check_reads_back(run: tuple[JudgeReport, Fit]) -> None:
    judge, fit = run
    sample = draw_sample(judge, 50)
    found = CheckReport(1, "s", "seed", (check_judge(judge, fit, sample, said(sample, wrong=30), QUICK),))
    assert found.drifted
    assert render_json(read_check(render_json(found))) == render_json(found)
