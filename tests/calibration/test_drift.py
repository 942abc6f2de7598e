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


def test_what_one_night_does_not_show_several_do(judge: JudgeReport) -> None:
    """The same items turned each night: the judge has changed, and does not merely vary."""
    sample = draw_sample(judge, 100)
    answers, nights = said(sample, wrong=8), list[Mapping[str, bool]]()
    for drifted in (False, True, True):
        found = check_judge(judge, sample, answers, nights)
        nights.append(found.agreed)
        assert (found.fall.nights, found.drifted) == (len(nights), drifted)


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
