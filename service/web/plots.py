"""Plots of a judge in SVG, and how a fit does on the items held out from it, from the report of its calibration run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from service.calibration.results import JudgeReport

SIDE = 200
"""Length of a plot's side, from 0 to 1, in SVG units."""
MIN_ITEMS = 5
"""Labelled items needed to draw plots."""
MAX_DOTS = 60
"""Most points of the curve of held-out items that are drawn as dots."""


class PlotPoint(NamedTuple):
    """A point in [0, 1] x [0, 1], how many items are behind it, and where it is drawn."""

    x: float
    y: float
    items: int

    @property
    def left(self) -> float:
        """The distance from the left, in SVG units."""
        return round(30 + SIDE * self.x, 1)

    @property
    def top(self) -> float:
        """The distance from the top, in SVG units."""
        return round(10 + SIDE * (1 - self.y), 1)


class Plots(NamedTuple):
    """Reliability by the judge's value; and the share of equal verdicts by the share of items decided, the surest first."""

    reliability: tuple[PlotPoint, ...]
    coverage: tuple[PlotPoint, ...]

    @property
    def path(self) -> str:
        """The coverage curve as an SVG path."""
        return " ".join(f"{'L' if at else 'M'}{one.left} {one.top}" for at, one in enumerate(self.coverage))


class HeldOutView(NamedTuple):
    """What a page shows of a judge's held-out items."""

    items: int
    groups: int
    plots: Plots
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


def build_plots(reliability: Iterable[PlotPoint], coverage: Iterable[PlotPoint]) -> Plots:
    """Build the plots of these points, or of others with the same fields; the curve runs from left to right."""
    dots, curve = [tuple([PlotPoint(one.x, one.y, one.items) for one in points]) for points in (reliability, coverage)]
    return Plots(dots, tuple(sorted(curve, key=lambda one: one.x)))


def build_held_out(text: str, fit_id: str) -> HeldOutView | None:
    """Build the view of the fit's judge from the report of a run; None if the report does not have that fit."""
    from service.calibration.results import read_report  # noqa: PLC0415 (it loads numpy)

    return next((_build_view(one) for one in read_report(text).all_judges if one.fit_id == fit_id), None)


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
