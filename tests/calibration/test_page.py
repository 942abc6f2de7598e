"""The page and its plots, as a browser gets them."""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree as ET

import pytest

from service.calibration.figures import Resampling
from service.calibration.options import ReportOptions
from service.calibration.report.rendering import render_report_markdown, render_report_page
from service.calibration.results import CalibrationReport
from service.calibration.run import calibrate
from tests.calibration.label_sets import drawn


@pytest.fixture(scope="module")
def report() -> CalibrationReport:
    return calibrate(*drawn(200, judges=(0.85, 0.7)), ReportOptions(resampling=Resampling(draws=20))).report


@pytest.fixture(scope="module")
def page(report: CalibrationReport) -> str:
    return render_report_page(report)


def test_each_judge_has_its_plots_within_the_page(report: CalibrationReport, page: str) -> None:
    found = [ET.fromstring(one) for one in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]  # noqa: S314 (our own)
    said = [{"".join(text.itertext()).strip() for text in one.iter("text")} for one in found]
    reliability = {"Reliability", "perfectly calibrated", "raw", "calibrated"}
    assert sum(reliability <= one for one in said) == len(report.judges) + len(report.juries) == 3
    assert sum({"Accuracy against coverage", "judge", "one human with another"} <= one for one in said) == 3


def test_the_page_needs_nothing_else(page: str) -> None:
    assert re.findall(r"(?:src|href)=[\"'](?!data:|#)", page) == []
    assert "<script" not in page
    assert page.count("<table ") == page.count("</table>") > 10


def test_each_judge_is_reached_from_the_overview(report: CalibrationReport, page: str) -> None:
    for text, link, anchor in (
        (page, r'<td><a href="#([a-z0-9-]+)">', r'<h2 id="([a-z0-9-]+)">'),
        (render_report_markdown(report), r"\| \[[^\]]+\]\(#([a-z0-9-]+)\) \|", r'## <a id="([a-z0-9-]+)"></a>'),
    ):
        assert Counter(re.findall(link, text)) == Counter(re.findall(anchor, text))
        assert len(set(re.findall(anchor, text))) == 3


def test_a_disagreement_is_shown_with_its_line_labels_and_reason() -> None:
    labels, predictions = drawn(120)
    said = [one.model_copy(update={"reason": "because <b>"}) for one in predictions]
    run = calibrate(labels, said, ReportOptions(resampling=Resampling(draws=0)))
    (judge,), html = run.report.judges, render_report_page(run.report)
    one = judge.worst[0]
    row = next(row for row in html.split("<tr>") if f"<td>{one.id} (line {one.line})</td>" in row)
    for text in (", ".join(one.labels), one.answer, "because &lt;b&gt;"):
        assert f">{text}</td>" in row
