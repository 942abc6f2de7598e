"""The check of a run: whether agreement fell, on the same items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from service.calibration.drift import MARGIN, NIGHTS, check_judge, draw_sample
from service.calibration.figures import Resampling
from service.calibration.options import ReportOptions
from service.calibration.predictions import Prediction
from service.calibration.results import HeldOutItem, JudgeReport
from service.calibration.run import calibrate
from service.errors import InputError
from service.stats.agreement import build_confusion
from tests.benchmarks.drift import CHANGES, FALL, Stream, count_alarms
from tests.bulk import WHOLE
from tests.calibration import label_sets

QUICK = Resampling(draws=60)
STREAMS = 500 if WHOLE else 12


@pytest.fixture(scope="module")
def judge() -> JudgeReport:
    found = calibrate(*label_sets.drawn(400, judges=(0.85,)), ReportOptions(resampling=QUICK))
    return found.judges[0]


def said(sample: tuple[HeldOutItem, ...], *, wrong: int = 0) -> dict[str, Prediction]:
    """What was said before; of the first so many that were right, the opposite."""
    flipped = [one.id for one in sample if (one.raw >= 0.5) is one.label][:wrong]
    values = {one.id: 1 - one.raw if one.id in flipped else one.raw for one in sample}
    return {name: Prediction(id=name, criterion="c", raw=raw, model="m0") for name, raw in values.items()}


@pytest.mark.parametrize(("wrong", "drifted"), [(0, False), (8, False), (40, True)])
def test_a_judge_that_got_worse_has_drifted(judge: JudgeReport, wrong: int, *, drifted: bool) -> None:
    sample = draw_sample(judge, 100)
    found = check_judge(judge, sample, said(sample, wrong=wrong))
    verdicts = [judge.fit.passes(one.raw) for one in said(sample, wrong=wrong).values()]
    now = build_confusion([one.label for one in sample], verdicts)
    assert (found.now["kappa"], found.now["accuracy"]) == pytest.approx((now.kappa, now.accuracy))
    assert (found.fall.value, found.drifted) == (pytest.approx(wrong / 100), drifted)


def test_what_one_night_does_not_show_several_do(judge: JudgeReport) -> None:
    """The same items turned each night: the judge has changed, and does not merely vary."""
    sample = draw_sample(judge, 100)
    answers, nights = said(sample, wrong=8), list[Mapping[str, bool]]()
    for drifted in (False, True, True):
        found = check_judge(judge, sample, answers, nights)
        nights.append(found.agreed)
        assert (found.fall.nights, found.drifted) == (len(nights), drifted)


def test_a_judge_that_agrees_better_is_no_alarm(judge: JudgeReport) -> None:
    sample = draw_sample(judge, 200)
    better = {one.id: Prediction(id=one.id, criterion="c", raw=0.9 if one.label else 0.1, model="m9") for one in sample}
    found = check_judge(judge, sample, better)
    assert (found.drifted, found.fall.value < -0.1) == (False, True)
    assert (found.model, found.models) == ("m0", ("m9",))


@pytest.mark.whole
@pytest.mark.parametrize("changes", CHANGES)
def test_a_quiet_judge_gives_no_alarm_in_a_hundred_nights_and_a_fall_is_found_in_five(changes: float) -> None:
    """The rates of the benchmark."""
    assert count_alarms(Stream(changes), STREAMS) <= 0.05
    assert count_alarms(Stream(changes, fall=MARGIN), STREAMS) <= (0.05 if WHOLE else 0.2)
    assert count_alarms(Stream(changes, nights=50 + NIGHTS, fall=FALL, start=50), STREAMS) >= (0.8 if WHOLE else 0.65)


def test_the_sample_is_pinned(judge: JudgeReport) -> None:
    one = draw_sample(judge, 30)
    assert one == draw_sample(replace(judge, items=tuple(reversed(judge.items))), 30)
    assert {item.id for item in one} < {item.id for item in draw_sample(judge, 31)}
    assert one != draw_sample(judge, 30, seed="other")


def test_what_was_not_answered_is_left_out_on_both_sides(judge: JudgeReport) -> None:
    sample = draw_sample(judge, 50)
    answers = said(sample)
    kept = {name: answers[name] for name in sorted(answers)[:40]}
    found = check_judge(judge, sample, kept)
    assert (found.n, found.unanswered, found.agreed.keys()) == (40, 10, kept.keys())
    assert found.then == check_judge(judge, [one for one in sample if one.id in kept], kept).then
    with pytest.raises(InputError, match="none of 50 items was answered"):
        check_judge(judge, sample, {})
