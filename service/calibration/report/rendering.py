"""The report of a calibration run as Markdown and as one HTML page."""

from __future__ import annotations

from service.calibration.report.sections import build_sections
from service.calibration.results import CalibrationReport
from service.reporting.markdown import render_markdown
from service.reporting.page import render_page


def render_report_markdown(report: CalibrationReport) -> str:
    """Render the whole report; no text from the labels can break a table or make a link."""
    return render_markdown(build_sections(report))


def render_report_page(report: CalibrationReport) -> str:
    """Render the whole page. Without matplotlib it has no plots and says so."""
    return render_page(f"Calibration: {report.source}", build_sections(report))
