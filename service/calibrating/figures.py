"""The figures of a judge beside labels, and of one human beside another, each with its interval by groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import NamedTuple

import numpy as np

from service.calibrating.labels import LabelledItem
from service.core.calibrate import Metric
from service.core.rates import Interval
from service.stats.agreement import Confusion, alpha_of_counts, between
from service.stats.resampling import Statistics, intervals
from service.stats.tallies import Floats, Rows, Tally, auroc, auroc_within, brier, confusion_at, ece

CONFUSION_FIGURES = (
    *("prevalence", "passed", "accuracy", "balanced_accuracy", "kappa", "ac1"),
    *("precision", "recall", "fail_precision", "fail_recall"),
)


class Row(NamedTuple):
    """One item as the figures need it: its group and stratum, a value in [0, 1], and whether the labels pass it."""

    group: str
    stratum: str
    value: float
    label: bool


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure with its 95 % interval; None where it is undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured on `n` items of so many groups."""

    n: int
    groups: int
    confusion: Confusion
    """Of verdicts at the threshold; of humans, the mean over ordered pairs of annotators of an item."""
    measures: Mapping[str, Measure] = field(default_factory=dict[str, Measure])

    def of(self, name: str) -> Measure:
        """A figure by name; undefined where there is none of that name."""
        return self.measures.get(name, Measure(None))


@dataclass(frozen=True, slots=True)
class Resampling:
    """How often whole groups are drawn for the intervals, and from which seed. No draws: no intervals."""

    draws: int = 1000
    seed: int = 20_240_229


def judged_figures(rows: Sequence[Row], threshold: float, resampling: Resampling) -> Figures:
    """Values against labels, with verdicts from `threshold` upwards. Their order changes no digit."""
    table = Rows([row.value for row in rows], [row.label for row in rows])
    places = _places([row.stratum for row in rows])
    strata = [(at, Rows([rows[n].value for n in at], [rows[n].label for n in at])) for at in places]

    def statistics(weights: Floats) -> dict[str, float | None]:
        found = table.tally(weights)
        within = auroc_within([part.tally(weights[at]) for at, part in strata])
        return {**_of(confusion_at(found, threshold)), **_of_values(found), "auroc_within": within}

    return _figures(statistics, [row.group for row in rows], resampling, confusion_at(table.tally(), threshold))


def _of(table: Confusion) -> dict[str, float | None]:
    return {name: getattr(table, name) for name in CONFUSION_FIGURES}


def _of_values(found: Tally) -> dict[str, float | None]:
    return {"auroc": auroc(found), "brier": brier(found), "ece": ece(found)}


def _places(names: Sequence[str]) -> list[list[int]]:
    places: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        places.setdefault(name, []).append(at)
    return [places[name] for name in sorted(places)]


def human_figures(items: Sequence[LabelledItem], resampling: Resampling) -> Figures | None:
    """One human in place of the judge, another in place of the label; None where nobody labelled an item twice.

    Only labels of people count. Each pair of annotators stands for itself and turned around, so precision and recall are
    alike; a second human's word is 0 or 1, so its AUROC is balanced accuracy and its Brier score and ECE are what they differ in.
    """
    twice = [item for item in items if item.origin == "human" and len(item.labels) > 1]
    if not twice:
        return None
    ordered = sorted(twice, key=lambda item: item.key)
    counts = [item.counts for item in ordered]
    cells = np.array([between([count]) for count in counts])
    sides = np.array([[count[True], count[False]] for count in counts], dtype=np.float64)

    def statistics(weights: Floats) -> dict[str, float | None]:
        table = Confusion(*(weights @ cells).tolist())
        differ = None if table.accuracy is None else 1 - table.accuracy
        alike = {"auroc": table.balanced_accuracy, "brier": differ, "ece": differ}
        return {**_of(table), **alike, "alpha": weighted_alpha(sides, weights)}

    found = _figures(statistics, [item.group for item in ordered], resampling, between(counts))
    alpha = found.of("alpha")
    return Figures(
        found.n,
        found.groups,
        found.confusion,
        {**found.measures, "alpha": Measure(alpha_of_counts(counts), alpha.low, alpha.high)},
    )


def weighted_alpha(sides: Floats, weights: Floats) -> float | None:
    """Krippendorff's alpha of counts by label, of shape (items, 2), each item as often as its weight says.

    The same as `alpha_of_counts` of so many copies; at once, for resampling.
    """
    sizes = sides.sum(axis=1)
    kept = weights * (sizes > 1)
    totals = kept @ sides
    n = float(totals.sum())
    expected = n * n - float((totals**2).sum())
    differing = float((kept * 2 * sides.prod(axis=1) / np.maximum(sizes - 1, 1)).sum())
    return None if expected <= 0 else 1 - (n - 1) * differing / expected


def _figures(statistics: Statistics, groups: Sequence[str], resampling: Resampling, confusion: Confusion) -> Figures:
    values = statistics(np.ones(len(groups)))
    found: dict[str, Interval | None] = {}
    if resampling.draws:
        found = intervals(statistics, groups, count=resampling.draws, seed=resampling.seed)
    measures = {name: _measure(value, found.get(name)) for name, value in values.items()}
    return Figures(len(groups), len(set(groups)), confusion, measures)


def _measure(value: float | None, interval: Interval | None) -> Measure:
    if value is None or interval is None:
        return Measure(value)
    return Measure(value, *interval)


def agreed(items: Sequence[LabelledItem]) -> list[LabelledItem]:
    """The items on which two or more people said the same."""
    return [item for item in items if item.origin == "human" and len(item.labels) > 1 and len(item.counts) == 1]


def metrics_of(figures: Figures | None) -> dict[str, Metric]:
    """The figures as a fit keeps them, rounded to what their intervals could ever tell."""
    if figures is None:
        return {}
    return {
        name: Metric(value=_kept(m.value), low=_kept(m.low), high=_kept(m.high)) for name, m in figures.measures.items()
    }


def _kept(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def mean(values: Sequence[float]) -> float | None:
    """The mean; None of nothing."""
    return fsum(values) / len(values) if values else None
