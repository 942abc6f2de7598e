"""The page and its plots, as a browser gets them."""

from __future__ import annotations

import re
import subprocess
from base64 import b64decode
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from service.calibration.figures import Resampling
from service.calibration.labels import build_labelled_set
from service.calibration.options import ReportOptions
from service.calibration.report.excerpts import build_excerpt
from service.calibration.report.rendering import render_report_markdown, render_report_page
from service.calibration.results import CalibrationReport
from service.calibration.run import calibrate
from tests.calibration.label_sets import drawn, item
from tests.launchers import find_launchers

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def report() -> CalibrationReport:
    return calibrate(*drawn(200, judges=(0.85, 0.7)), ReportOptions(resampling=Resampling(draws=20))).report


@pytest.fixture(scope="module")
def page(report: CalibrationReport) -> str:
    return render_report_page(report)


def images(html: str) -> list[bytes]:
    return [b64decode(found) for found in re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)]


def test_each_judge_has_its_three_plots_within_the_page(report: CalibrationReport, page: str) -> None:
    pytest.importorskip("matplotlib")
    found = images(page)
    assert len(found) == len(report.judges) + len(report.juries) == 3
    for image in found:
        said = {"".join(text.itertext()).strip() for text in ET.fromstring(image).iter(f"{SVG}text")}  # noqa: S314 (our own)
        assert {"Reliability", "Calibrated values by label", "Accuracy against coverage"} <= said
        assert {"perfectly calibrated", "raw", "calibrated", "labels pass", "labels fail", "human beside human"} <= said


def test_the_page_needs_nothing_else(page: str) -> None:
    assert re.findall(r"(?:src|href)=[\"'](?!data:|#)", page) == []
    assert "<script" not in page
    assert page.count("<table ") == page.count("</table>") > 10


def test_each_disagreement_leads_to_its_item(report: CalibrationReport, page: str) -> None:
    count = sum(len(judge.worst) for judge in [*report.judges, *[jury.report for jury in report.juries]])
    assert count > 10
    for text, link, anchor in (
        (page, r'<td><a href="#([a-z0-9-]+)">', r'<h[24] id="([a-z0-9-]+)">'),
        (render_report_markdown(report), r"\| \[[^\]]+\]\(#([a-z0-9-]+)\) \|", r'##(?:##)? <a id="([a-z0-9-]+)"></a>'),
    ):
        assert Counter(re.findall(link, text)) == Counter(re.findall(anchor, text))
        assert len(set(re.findall(anchor, text))) == count + 3


def test_an_item_is_shown_with_what_is_needed_to_decide() -> None:
    labels, predictions = drawn(120)
    asked = {"question": "How much?", "cents": 5400}
    items = [one.model_copy(update={"payload": asked}) for one in labels.items]
    said = [one.model_copy(update={"reason": "because <b>"}) for one in predictions]
    run = calibrate(
        build_labelled_set(enumerate(items, 1), source="s"), said, ReportOptions(resampling=Resampling(draws=0))
    )
    (judge,), html = run.report.judges, render_report_page(run.report)
    one = judge.worst[0]
    at = html.split(f"{one.id} (line {one.line})</h4>")[1].split("<h")[0]
    for part, text in (
        ("question", "How much?"),
        ("payload", "{&quot;question&quot;: &quot;How much?&quot;, &quot;cents&quot;: 5400}"),
        ("answer", one.excerpt.answer),
        ("labels", ", ".join(one.labels)),
        ("its reason", "because &lt;b&gt;"),
    ):
        assert f"<td>{part}</td><td>{text}</td>" in at


CALLED = {
    "format": "openai",
    "messages": [{"role": "user", "content": "Refund it."},
     {"role": "assistant", "tool_calls": [{"id": "c", "type": "function",
     "function": {"name": "refund", "arguments": "{}"}}]},
     {"role": "tool", "tool_call_id": "c", "content": '{"ok": true}'}],
}  # fmt: skip
TOLD = {**CALLED, "messages": [*CALLED["messages"], {"role": "assistant", "content": "Done."}]}


@pytest.mark.parametrize(
    ("fields", "question", "payload", "answer"),
    [
        ({"trace": TOLD}, "Refund it.", "true", "Done."),
        ({"trace": CALLED}, "Refund it.", "true", '"refund"'),
        ({"trace": {"format": "openai"}, "answer": "x"}, "", "", "x"),
        ({"payload": [1, 2], "answer": "x"}, "", "[1, 2]", "x"),
        ({"payload": "y" * 5000, "answer": "x"}, "", "[3800 characters]", "x"),
    ],
)
def test_what_is_shown_of_an_item(fields: dict[str, object], question: str, payload: str, answer: str) -> None:
    found = build_excerpt(item(0, True, **fields))
    assert found.question == question
    assert payload in found.payload
    assert answer in found.answer
    assert max(map(len, found)) < 1300


def test_without_matplotlib_the_page_says_what_is_missing() -> None:
    """In a process of its own, where matplotlib cannot be imported; it is forked from one that has not."""
    code = """
import sys
assert "matplotlib" not in sys.modules
sys.modules["matplotlib"] = None
from service.calibration.report.excerpts import build_excerpt
from service.calibration.figures import Resampling
from service.calibration.labels import build_labelled_set
from service.calibration.options import ReportOptions
from service.calibration.report.rendering import render_report_page
from service.calibration.run import calibrate
from tests.calibration.label_sets import drawn
html = render_report_page(calibrate(*drawn(120), ReportOptions(resampling=Resampling(draws=0))).report)
assert "matplotlib is not installed" in html and "<img" not in html
"""
    subprocess.run([find_launchers() / "python", "-c", code], check=True, cwd=ROOT)
