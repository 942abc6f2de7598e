"""How a fit did on what was held out from it, as its calibration run reports it: figures, and plots in SVG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.web.judge_view import PlotPoint, Plots, build_plots

if TYPE_CHECKING:
    from service.calibration.results import JudgeReport

MOST_DOTS = 60
"""Points of the curve that are drawn as dots."""


@dataclass(frozen=True, slots=True)
class HeldOutView:
    """What a page shows of a judge's held-out items."""

    items: int
    groups: int
    plots: Plots
    """By the calibrated value; and the share of equal verdicts, by the share of items that are decided, the surest first."""
    before: tuple[PlotPoint, ...]
    """The share that labels pass, by the judge's own value."""
    human: float | None
    """The share of equal labels of one person beside another."""
    decided: tuple[float, float | None] | None
    """With the band: the share of items that is decided, and the share of equal verdicts among them; None: there is no band."""

    @property
    def dots(self) -> tuple[PlotPoint, ...]:
        """The points of the curve, where they are few enough to be told apart."""
        return self.plots.coverage if len(self.plots.coverage) <= MOST_DOTS else ()


def build_held_out(text: str, fit_id: str) -> HeldOutView | None:
    """The view of the fit's judge in the report of a run; None where the report has no such fit."""
    from service.calibration.results import read_report  # noqa: PLC0415 (it brings numpy)

    found = read_report(text)
    judges = found.all_judges
    return next((_build_view(one) for one in judges if one.fit_id == fit_id), None)


def _build_view(judge: JudgeReport) -> HeldOutView:
    band = judge.abstaining
    after, before = (
        tuple([PlotPoint(one.mean, one.share, round(one.n)) for one in bins])
        for bins in (judge.table_after, judge.table_before)
    )
    plots = build_plots(after, [PlotPoint(one.coverage, one.accuracy, 0) for one in judge.curve])
    human = None if judge.humans is None else judge.humans.of("accuracy").value
    decided = None if band is None else (band.coverage, band.accuracy)
    return HeldOutView(judge.held_out, judge.held_out_groups, plots, before, human, decided)
