"""The page of a run and its first screen, as a browser gets them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from service.calibration.figures import Resampling
from service.calibration.options import ReportOptions
from service.calibration.report.rendering import render_report_markdown, render_report_page
from service.calibration.report.usefulness import build_row, describe_use
from service.calibration.results import CalibrationReport, JudgeReport, Promise
from service.calibration.run import calibrate
from service.core.judging.fits.certificate import Guarantee
from service.stats.rates import Measure
from tests.calibration.label_sets import drawn
from tests.calibration.test_guarantees import two_judges


@pytest.fixture(scope="module")
def report() -> CalibrationReport:
    return calibrate(*drawn(200, judges=(0.85, 0.7)), ReportOptions(resampling=Resampling(draws=20)))


@pytest.fixture(scope="module")
def page(report: CalibrationReport) -> str:
    return render_report_page(report)


def test_the_page_needs_nothing_else(page: str) -> None:
    assert re.findall(r"(?:src|href)=[\"'](?!data:|#)", page) == []
    assert "<script" not in page
    assert page.count("<table ") == page.count("</table>") > 10


def test_a_disagreement_is_shown_with_its_line_labels_and_reason() -> None:
    labels, predictions = drawn(120)
    said = [one.model_copy(update={"reason": "because <b>"}) for one in predictions]
    run = calibrate(labels, said, ReportOptions(resampling=Resampling(draws=0)))
    (judge,), html = run.judges, render_report_page(run)
    one = judge.worst[0]
    row = next(row for row in html.split("<tr>") if f"<td>{one.id} (line {one.line})</td>" in row)
    for text in (", ".join(one.labels), one.answer, "because &lt;b&gt;"):
        assert f">{text}</td>" in row


QUICK = ReportOptions(resampling=Resampling(draws=0), jury=False)


@pytest.fixture(scope="module")
def judge() -> JudgeReport:
    return calibrate(*drawn(120), QUICK).judges[0]


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
        ((0.9, 0.9, 0.9, 0.9), {"why": "30 labels are too few"}, "not yet",
         "30 labels are too few"),
        ((0.0, 0.0, 0.0, 0.0), {"guarantee": Guarantee(share=0.9)}, "no guarantee", "it leaves every verdict to people"),
    ],
)  # fmt: skip
def test_what_a_judge_is_for(
    judge: JudgeReport, coverages: tuple[float, ...], fields: dict[str, object], use: str, told: str
) -> None:
    promises = tuple([promise(share, at) for share, at in zip((0.8, 0.85, 0.9, 0.95), coverages, strict=True)])
    fit = judge.fit.model_copy(update={"guarantee": fields.get("guarantee")})
    found = replace(judge, promises=promises, fit=fit, why=str(fields.get("why", "")))
    assert build_row(found)[1] == use
    assert told in describe_use(found)


def test_the_first_screen_has_coverage_and_price() -> None:
    report = calibrate(*two_judges(), replace(QUICK, guarantee=0.9))
    assert [build_row(one)[-3:] for one in report.judges] == [("50%", "50%", "1.00"), ("100%", "100%", "10.00")]
    text, html = render_report_markdown(report), render_report_page(report)
    assert text.index("May I use it?") < text.index("## Labels")
    assert html.count("<details>") == html.count("</details>") > 5
