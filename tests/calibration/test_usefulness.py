"""The first screen: what it says of a judge, by what is known of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from service.calibration.figures import Measure, Resampling
from service.calibration.options import ReportOptions
from service.calibration.report.usefulness import build_row, describe_use
from service.calibration.results import JudgeReport, Promise
from service.calibration.run import calibrate
from service.core.judging.fits import Guarantee
from service.errors import InputError
from service.fits.files import refuse_useless
from tests.calibration.label_sets import drawn
from tests.fits import make_fit

QUICK = ReportOptions(resampling=Resampling(draws=0), jury=False)


@pytest.fixture(scope="module")
def judge() -> JudgeReport:
    return calibrate(*drawn(120), QUICK).report.judges[0]


def promise(share: float, coverage: float) -> Promise:
    found = Guarantee(share=share, passes_from=0.9) if coverage else Guarantee(share=share)
    return Promise(found, Measure(coverage), Measure(0.93 if coverage else None), int(100 * coverage))


@pytest.mark.parametrize(
    ("coverages", "fields", "use", "told"),
    [
        ((0.9, 0.8, 0.6, 0.0), {}, "for 60%",
         "use its verdict on 60% of items (passes from raw 0.90, no failure) if 90%"),
        ((0.4, 0.2, 0.1, 0.0), {}, "for 40%", "use its verdict on 40% of items"),
        ((0.0, 0.0, 0.0, 0.0), {}, "for rates", "at no threshold would 80% of them agree"),
        ((0.9, 0.9, 0.9, 0.9), {"calibrated": False, "why": "30 labels are too few"}, "not yet",
         "30 labels are too few"),
        ((0.0, 0.0, 0.0, 0.0), {"guarantee": 0.9}, "for rates", "it accepts nothing"),
    ],
)  # fmt: skip
def test_what_a_judge_is_for(
    judge: JudgeReport, coverages: tuple[float, ...], fields: dict[str, object], use: str, told: str
) -> None:
    promises = tuple([promise(share, at) for share, at in zip((0.8, 0.85, 0.9, 0.95), coverages, strict=True)])
    found = replace(judge, promises=promises, **fields)  # pyright: ignore[reportArgumentType]
    assert build_row(found)[1] == use
    assert told in describe_use(found)


@pytest.mark.parametrize(
    ("change", "use", "refused"),
    [
        (lambda raw: raw, "for rates", ""),
        (lambda _: 0.7, "useless", "does not lie above 0.5"),
        (lambda raw: 1 - raw, "useless", "does not lie above 0.5"),
    ],
    ids=["as it is", "constant", "inverted"],
)
def test_a_judge_that_does_not_tell_passes_from_failures_is_useless_and_its_fit_refused(
    change: Callable[[float], float], use: str, refused: str
) -> None:
    labels, said = drawn(200)
    said = [one.model_copy(update={"raw": change(one.raw)}) for one in said]
    run = calibrate(labels, said, replace(QUICK, resampling=Resampling(draws=100)))
    assert build_row(run.report.judges[0])[1] == use
    if not refused:
        assert refuse_useless(run.fits) == ([*run.fits], [])
        return
    assert refused in describe_use(run.report.judges[0])
    with pytest.raises(InputError, match=refused):
        refuse_useless(run.fits)
    assert refuse_useless([make_fit(), *run.fits])[0] == [make_fit()]
