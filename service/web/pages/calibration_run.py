"""The page of one calibration run: its progress, what was fitted, and its report."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from service.api.page_route import PageRoute
from service.api.parts import ApiParts
from service.web.page import PageSet, page, render


class CalibrationRunPages:
    """The handlers over calibrations."""

    def __init__(self, parts: ApiParts) -> None:
        self._calibrations = parts.calibrations

    async def show_run(self, request: Request) -> Response:
        """Show the page of a calibration."""
        calibration = await self._calibrations.show_job(request)
        return render(request, "calibration.html", twin=f"/v1/calibrations/{calibration.id}", job=calibration)


def build_calibration_pages(parts: ApiParts) -> Sequence[PageRoute]:
    """Build the pages of a calibration, its report and its fits."""
    pages, routes = CalibrationRunPages(parts), parts.calibrations
    return [
        page("/calibrations/{calibration_id}", pages.show_run, needs="calibrate"),
        page("/calibrations/{calibration_id}/report", routes.read_calibration_report, needs="calibrate"),
        page("/calibrations/{calibration_id}/fits", routes.read_fits, needs="calibrate"),
    ]


PAGES = PageSet(build_calibration_pages)
