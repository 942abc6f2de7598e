"""The first screen: what it says of a judge, by what is known of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.calibration.figures import Resampling
from service.calibration.options import ReportOptions
from service.calibration.report.rendering import render_report_markdown, render_report_page
from service.calibration.report.usefulness import build_row, describe_use
from service.calibration.results import JudgeReport, Promise
from service.calibration.run import calibrate
from service.core.judging.fits.certificate import Guarantee
from service.stats.rates import Measure
from tests.calibration.label_sets import drawn
from tests.calibration.test_guarantees import two_judges

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
        ((0.0, 0.0, 0.0, 0.0), {}, "no guarantee", "No threshold promises, with 95 % confidence, that 80% of its verdicts agree"),
        ((0.9, 0.9, 0.9, 0.9), {"calibrated": False, "why": "30 labels are too few"}, "not yet",
         "30 labels are too few"),
        ((0.0, 0.0, 0.0, 0.0), {"guarantee": 0.9}, "no guarantee", "it leaves every verdict to people"),
    ],
)  # fmt: skip
def test_what_a_judge_is_for(
    judge: JudgeReport, coverages: tuple[float, ...], fields: dict[str, object], use: str, told: str
) -> None:
    promises = tuple([promise(share, at) for share, at in zip((0.8, 0.85, 0.9, 0.95), coverages, strict=True)])
    found = replace(judge, promises=promises, **fields)  # pyright: ignore[reportArgumentType]
    assert build_row(found)[1] == use
    assert told in describe_use(found)


def test_the_first_screen_has_coverage_and_price() -> None:
    report = calibrate(*two_judges(), replace(QUICK, guarantee=0.9)).report
    assert [build_row(one)[-3:] for one in report.judges] == [("50%", "50%", "1.00"), ("100%", "100%", "10.00")]
    text, html = render_report_markdown(report), render_report_page(report)
    assert text.index("May I use it?") < text.index("## Labels")
    assert html.count("<details>") == html.count("</details>") > 5
