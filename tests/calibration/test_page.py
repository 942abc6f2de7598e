"""The page and its plots, as a browser gets them."""

from __future__ import annotations

import re
import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from service.calibration.figures import Resampling
from service.calibration.options import ReportOptions
from service.calibration.report.rendering import render_report_page
from service.calibration.results import CalibrationReport
from service.calibration.run import calibrate
from tests.calibration.label_sets import drawn
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


def test_without_matplotlib_the_page_says_what_is_missing() -> None:
    """In a process of its own, where matplotlib cannot be imported; it is forked from one that has not."""
    code = """
import sys
assert "matplotlib" not in sys.modules
sys.modules["matplotlib"] = None
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


def test_the_core_applies_a_fit_without_numpy() -> None:
    code = """
import sys
from service.core.judging.fits import Isotonic
assert Isotonic(raw=(0.0, 1.0), value=(0.2, 0.8)).apply(0.5) == 0.5
sys.exit("numpy" in sys.modules or "scipy" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
