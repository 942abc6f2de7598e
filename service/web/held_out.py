"""How a fit does on the items held out from it, from the report of its calibration run: figures, and plots in SVG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.web.judge_view import PlotPoint, Plots, build_plots

if TYPE_CHECKING:
    from service.calibration.results import JudgeReport

MAX_DOTS = 60
"""Most points of the curve that are drawn as dots."""


@dataclass(frozen=True, slots=True)
class HeldOutView:
    """What a page shows of a judge's held-out items."""

    items: int
    groups: int
    plots: Plots
    """Reliability by the calibrated value; and the share of equal verdicts by the share of items decided, the surest
    first.
    """
    before: tuple[PlotPoint, ...]
    """The share that labels pass, by the judge's own value."""
    human: float | None
    """The share of equal labels between one person and another."""
    decided: tuple[float, float | None] | None
    """With the band: the share of items decided, and the share of equal verdicts among them; None if there is no band."""

    @property
    def dots(self) -> tuple[PlotPoint, ...]:
        """The points of the curve, if they are few enough to draw."""
        return self.plots.coverage if len(self.plots.coverage) <= MAX_DOTS else ()


def build_held_out(text: str, fit_id: str) -> HeldOutView | None:
    """Build the view of the fit's judge from the report of a run; None if the report does not have that fit."""
    from service.calibration.results import read_report  # noqa: PLC0415 (it loads numpy)

    judges = read_report(text).all_judges
    return next((_build_view(one) for one in judges if one.fit_id == fit_id), None)


def _build_view(judge: JudgeReport) -> HeldOutView:
    band = judge.review_band
    after, before = (
        tuple([PlotPoint(one.mean, one.share, round(one.n)) for one in bins])
        for bins in (judge.table_after, judge.table_before)
    )
    plots = build_plots(after, [PlotPoint(one.coverage, one.accuracy, 0) for one in judge.curve])
    human = None if judge.humans is None else judge.humans.of("accuracy").value
    decided = None if band is None else (band.coverage, band.accuracy)
    return HeldOutView(judge.held_out, judge.held_out_groups, plots, before, human, decided)
