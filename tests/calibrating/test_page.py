"""The page and its plots, as a browser gets them."""

from __future__ import annotations

import re
import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from service.calibrating.figures import Resampling
from service.calibrating.options import Options
from service.calibrating.page import page
from service.calibrating.results import CalibrationReport
from service.calibrating.run import calibrate
from tests.calibrating.label_sets import drawn

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def report() -> CalibrationReport:
    return calibrate(*drawn(200, judges=(0.85, 0.7)), Options(resampling=Resampling(draws=20))).report


def images(html: str) -> list[bytes]:
    return [b64decode(found) for found in re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)]


def test_each_judge_has_its_three_plots_within_the_page(report: CalibrationReport) -> None:
    pytest.importorskip("matplotlib")
    found = images(page(report))
    assert len(found) == len(report.judges) + len(report.juries) == 3
    for image in found:
        said = {"".join(text.itertext()).strip() for text in ET.fromstring(image).iter(f"{SVG}text")}  # noqa: S314 (our own)
        assert {"Reliability", "Calibrated values by label", "Accuracy against coverage"} <= said
        assert {"perfectly calibrated", "raw", "calibrated", "labels pass", "labels fail", "human beside human"} <= said


def test_the_same_report_is_the_same_page(report: CalibrationReport) -> None:
    assert page(report) == page(report)


def test_the_page_needs_nothing_else(report: CalibrationReport) -> None:
    html = page(report)
    assert re.findall(r"(?:src|href)=[\"'](?!data:)", html) == []
    assert "<script" not in html
    assert html.count("<table>") == html.count("</table>") > 10


def test_without_matplotlib_the_page_says_what_is_missing() -> None:
    """In a process of its own, where matplotlib cannot be imported."""
    code = """
import sys
sys.modules["matplotlib"] = None
from service.calibrating.figures import Resampling
from service.calibrating.options import Options
from service.calibrating.page import page
from service.calibrating.run import calibrate
from tests.calibrating.label_sets import drawn
html = page(calibrate(*drawn(120), Options(resampling=Resampling(draws=0))).report)
assert "matplotlib is not installed" in html and "<img" not in html
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_a_run_imports_no_matplotlib() -> None:
    code = "import sys, service.calibrating.run, service.calibrating.page; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_the_core_applies_a_fit_without_numpy() -> None:
    code = """
import sys
from service.core.calibrate import Isotonic
assert Isotonic(raw=(0.0, 1.0), value=(0.2, 0.8)).apply(0.5).value == 0.5
sys.exit("numpy" in sys.modules or "scipy" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
