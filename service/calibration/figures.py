"""The figures of a judge against labels, and of one human against another, each with its interval by groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from service.calibration.labels import LabelledItem
from service.core.judging.fits import Metric
from service.stats.agreement import ConfusionTable, compare_annotators, compute_alpha_of_counts
from service.stats.intervals import SEED, wilson
from service.stats.rates import Interval
from service.stats.resampling import DRAWS, StatisticsFunction, compute_intervals
from service.stats.tallies import Floats, LabelTally, TallyRows, auroc, auroc_within, brier, build_confusion_at, ece

CONFUSION_FIGURES = (
    *("prevalence", "passed", "accuracy", "balanced_accuracy", "kappa", "ac1"),
    *("precision", "recall", "fail_precision", "fail_recall"),
)


class FigureRow(NamedTuple):
    """One item as the figures need it: its group and stratum, a value in [0, 1], and whether label and judge pass it."""

    group: str
    stratum: str
    value: float
    label: bool
    passed: bool


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure with its 95 % interval; None where undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured on `n` items of `groups` groups."""

    n: int
    groups: int
    confusion: ConfusionTable
    """For a judge, its verdicts at the threshold; for humans, the mean over ordered pairs of annotators of an item."""
    measures: Mapping[str, Measure] = field(default_factory=dict[str, Measure])

    def of(self, name: str) -> Measure:
        """Return a figure by name; an undefined one for an unknown name."""
        return self.measures.get(name, Measure(None))


@dataclass(frozen=True, slots=True)
class Resampling:
    """How many times whole groups are drawn for the intervals, and the seed. No draws: no intervals."""

    draws: int = DRAWS
    seed: int = SEED


def compute_judge_figures(rows: Sequence[FigureRow], resampling: Resampling) -> Figures:
    """Compute the figures of values and verdicts against labels. The order of the rows changes no digit."""
    labels = [row.label for row in rows]
    table, verdicts = TallyRows([row.value for row in rows], labels), TallyRows([row.passed for row in rows], labels)
    places = _group_places([row.stratum for row in rows])
    strata = [(at, TallyRows([rows[n].value for n in at], [rows[n].label for n in at])) for at in places]

    def statistics(weights: Floats) -> dict[str, float | None]:
        weighted = table.tally(weights)
        within = auroc_within([part.tally(weights[at]) for at, part in strata])
        confusion = build_confusion_at(verdicts.tally(weights), 1.0)
        return {**_read_table(confusion), **_read_tally(weighted), "auroc_within": within}

    return _build_figures(
        statistics, [row.group for row in rows], resampling, build_confusion_at(verdicts.tally(), 1.0)
    )


def _read_table(table: ConfusionTable) -> dict[str, float | None]:
    return {name: getattr(table, name) for name in CONFUSION_FIGURES}


def _read_tally(tally: LabelTally) -> dict[str, float | None]:
    return {"auroc": auroc(tally), "brier": brier(tally), "ece": ece(tally)}


def _group_places(names: Sequence[str]) -> list[list[int]]:
    places: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        places.setdefault(name, []).append(at)
    return [places[name] for name in sorted(places)]


def compute_human_figures(items: Sequence[LabelledItem], resampling: Resampling) -> Figures | None:
    """Compute the figures of one human in place of the judge against another in place of the label.

    None where nobody labelled an item twice. Only human labels count. Each pair of annotators counts in both orders, so
    precision equals recall; a second human's value is 0 or 1, so its AUROC is the balanced accuracy, and its Brier score and
    ECE are the share of disagreement.
    """
    double_labelled = [item for item in items if item.origin == "human" and len(item.opinions) > 1]
    if not double_labelled:
        return None
    ordered = sorted(double_labelled, key=lambda item: item.key)
    counts = [item.counts for item in ordered]
    cells = np.array([compare_annotators([count]) for count in counts])
    sides = np.array([[count[True], count[False]] for count in counts], dtype=np.float64)

    def statistics(weights: Floats) -> dict[str, float | None]:
        table = ConfusionTable(*(weights @ cells).tolist())
        disagreement = None if table.accuracy is None else 1 - table.accuracy
        alike = {"auroc": table.balanced_accuracy, "brier": disagreement, "ece": disagreement}
        return {**_read_table(table), **alike, "alpha": compute_weighted_alpha(sides, weights)}

    figures = _build_figures(statistics, [item.group for item in ordered], resampling, compare_annotators(counts))
    alpha = figures.of("alpha")
    return Figures(
        figures.n,
        figures.groups,
        figures.confusion,
        {
            name: _ensure_width(name, measure, figures.n)
            for name, measure in {
                **figures.measures,
                "alpha": Measure(compute_alpha_of_counts(counts), alpha.low, alpha.high),
            }.items()
        },
    )


def _ensure_width(name: str, measure: Measure, n: int) -> Measure:
    """Return the figure with an interval that has a width, because draws of items that are all alike have none.

    For a share of items this is Wilson's interval; other figures then have none.
    """
    if measure.value is None or measure.low is None or measure.low != measure.high:
        return measure
    return Measure(measure.value, *wilson(measure.value * n, n)) if name == "accuracy" else Measure(measure.value)


def compute_weighted_alpha(sides: Floats, weights: Floats) -> float | None:
    """Compute Krippendorff's alpha of label counts of shape (items, 2), each item weighted.

    Equals `compute_alpha_of_counts` of that many copies; vectorized for resampling.
    """
    sizes = sides.sum(axis=1)
    kept = weights * (sizes > 1)
    totals = kept @ sides
    n = float(totals.sum())
    expected = n * n - float((totals**2).sum())
    differing = float((kept * 2 * sides.prod(axis=1) / np.maximum(sizes - 1, 1)).sum())
    return None if expected <= 0 else 1 - (n - 1) * differing / expected


def _build_figures(
    statistics: StatisticsFunction, groups: Sequence[str], resampling: Resampling, confusion: ConfusionTable
) -> Figures:
    values = statistics(np.ones(len(groups)))
    intervals: dict[str, Interval | None] = {}
    if resampling.draws:
        intervals = compute_intervals(statistics, groups, count=resampling.draws, seed=resampling.seed)
    measures = {name: _build_measure(value, intervals.get(name)) for name, value in values.items()}
    return Figures(len(groups), len(set(groups)), confusion, measures)


def _build_measure(value: float | None, interval: Interval | None) -> Measure:
    if value is None or interval is None:
        return Measure(value)
    return Measure(value, *interval)


def select_agreed(items: Sequence[LabelledItem]) -> list[LabelledItem]:
    """Select the items on which two or more people all gave the same label."""
    return [item for item in items if item.origin == "human" and len(item.opinions) > 1 and len(item.counts) == 1]


def read_metrics(figures: Figures | None) -> dict[str, Metric]:
    """Return the figures as a fit stores them, rounded to six digits: finer than any interval can resolve."""
    if figures is None:
        return {}
    return {
        name: Metric(value=_round_figure(m.value), low=_round_figure(m.low), high=_round_figure(m.high))
        for name, m in figures.measures.items()
    }


def _round_figure(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
