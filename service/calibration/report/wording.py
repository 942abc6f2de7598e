"""The names of figures and how their values are written."""

from __future__ import annotations

from service.core.judging.fits.fit import Origin
from service.stats.rates import Measure

FIGURE_NAMES = {
    "prevalence": "share that labels pass",
    "passed": "share that it passes",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "kappa": "Cohen's kappa",
    "ac1": "Gwet's AC1",
    "alpha": "Krippendorff's alpha",
    "auroc": "AUROC",
    "auroc_within": "AUROC, within strata",
    "brier": "Brier score",
    "ece": "ECE",
    "precision": "precision of passes",
    "recall": "recall of passes",
    "fail_precision": "precision of failures",
    "fail_recall": "recall of failures",
}
OVERVIEW_FIGURES = ("balanced_accuracy", "kappa", "ac1", "auroc", "auroc_within", "brier", "ece")
ORIGIN_NAMES: dict[Origin, str] = {
    "human": "human labels",
    "gold": "right answers known beforehand (no human agreement)",
    "weak": "thumbs and corrections of users (no human agreement)",
    "constructed": "constructed labels (no human agreement)",
}


def show_measure(measure: Measure) -> str:
    """Show the figure with its interval; `-` where undefined.

    >>> show_measure(Measure(0.5, 0.4, 0.61)), show_measure(Measure(None)), show_measure(Measure(0.5))
    ('0.500 [0.400, 0.610]', '-', '0.500')
    """
    if measure.low is None or measure.high is None:
        return show_number(measure.value)
    return f"{show_number(measure.value)} [{show_number(measure.low)}, {show_number(measure.high)}]"


def show_number(value: float | None) -> str:
    """Show three digits, without a sign before 0; `-` where undefined.

    >>> show_number(0.12345), show_number(-1e-9), show_number(None)
    ('0.123', '0.000', '-')
    """
    return "-" if value is None else f"{round(value, 3) + 0.0:.3f}"


def show_usd(value: float | None) -> str:
    """Show dollars to the cent, below one dollar to three significant digits; `-` where unknown.

    >>> show_usd(12.345), show_usd(0.00421), show_usd(None), show_usd(0.0)
    ('12.35', '0.00421', '-', '0.00')
    """
    if value is None:
        return "-"
    return f"{value:.2f}" if value >= 1 or value == 0 else f"{value:.3g}"
