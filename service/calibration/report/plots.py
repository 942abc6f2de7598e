"""The plots of a judge: reliability, values by label, accuracy against coverage. SVG; equal reports give equal bytes."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from service.calibration.results import JudgeReport

HISTOGRAM_BARS = 20
PASSING, FAILING, JUDGE, RAW, HUMAN = "#2a6fbb", "#d1662b", "#1d4f8c", "#9a9a9a", "#3c8d40"

_STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "callgrade",
    "svg.fonttype": "none",
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
}


def draw_plots(judge: JudgeReport) -> bytes:
    """Draw the three plots side by side as an SVG document; ImportError where matplotlib is not installed."""
    # A canvas of its own needs no window system and shares no state with other figures in this process.
    from matplotlib import rc_context  # noqa: PLC0415 (an extra)  # pyright: ignore
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415  # pyright: ignore
    from matplotlib.figure import Figure  # noqa: PLC0415  # pyright: ignore

    with rc_context(_STYLE):  # pyright: ignore
        figure: Any = Figure(figsize=(12, 3.9), layout="constrained")  # pyright: ignore
        FigureCanvasSVG(figure)  # pyright: ignore
        left, middle, right = figure.subplots(1, 3)
        _draw_reliability(left, judge)
        _draw_histogram(middle, judge)
        _draw_coverage(right, judge)
        out = BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def _draw_reliability(axes: Any, judge: JudgeReport) -> None:
    axes.plot([0, 1], [0, 1], color="#cccccc", linewidth=1, linestyle="--", label="perfectly calibrated")
    for bins, color, name in ((judge.table_before, RAW, "raw"), (judge.table_after, JUDGE, "calibrated")):
        sizes = [16 + 300 * one.n / judge.held_out for one in bins]
        means, shares = [one.mean for one in bins], [one.share for one in bins]
        axes.plot(means, shares, color=color, linewidth=1.2, label=name)
        axes.scatter(means, shares, s=sizes, color=color, alpha=0.65, linewidths=0)
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), title="Reliability", aspect="equal")
    axes.set(xlabel="value", ylabel="share that labels pass (dot: number of items)")
    axes.legend(loc="upper left")


def _draw_histogram(axes: Any, judge: JudgeReport) -> None:
    sides = [[one.value for one in judge.items if one.label is label] for label in (False, True)]
    style = {"stacked": True, "edgecolor": "white", "linewidth": 0.5}
    names = ["labels fail", "labels pass"]
    axes.hist(sides, bins=HISTOGRAM_BARS, range=(0, 1), color=[FAILING, PASSING], label=names, **style)
    axes.axvline(judge.threshold, color="black", linewidth=1, label=f"threshold {judge.threshold:.2f}")
    if judge.review_band:
        axes.axvspan(*judge.review_band.band, color="#dddddd", zorder=0, label="asks a human")
    axes.set(xlim=(0, 1), title="Calibrated values by label", xlabel="value", ylabel="items")
    axes.margins(y=0.25)
    axes.legend(loc="upper left")


def _draw_coverage(axes: Any, judge: JudgeReport) -> None:
    coverage, accuracy = [p.coverage for p in judge.curve], [p.accuracy for p in judge.curve]
    axes.step(coverage, accuracy, color=JUDGE, where="post", marker="o", markersize=3, label="judge")
    human, band = judge.humans.of("accuracy").value if judge.humans else None, judge.review_band
    if human is not None:
        axes.axhline(human, color=HUMAN, linestyle="--", linewidth=1, label="human beside human")
    if band and band.accuracy is not None:
        axes.plot([band.coverage], [band.accuracy], "D", color="black", markersize=5, label="with the band")
    low = min(accuracy) if human is None else min(*accuracy, human)
    axes.set(xlim=(0, 1.03), ylim=(max(0.0, low - 0.08), 1.02), title="Accuracy against coverage")
    axes.set(xlabel="share of items decided", ylabel="accuracy among them")
    axes.legend(loc="lower left")
