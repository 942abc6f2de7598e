"""The figures of a judge against labels, and of one human against another, each with its interval by groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from pydantic import Field

from service.calibration.labels import LabelledItem
from service.core.judging.fits.usefulness import Metric
from service.stats.agreement import ConfusionTable, compare_annotators, compute_alpha
from service.stats.intervals import DRAWS, SEED, StatisticsFunction, compute_intervals, wilson
from service.stats.rates import Measure
from service.stats.tallies import Floats, TallyRows, auroc, auroc_within, brier, build_confusion_at, ece

EDGE = 0.025
"""The error at one end of a 95 % interval."""

CONFUSION_FIGURES = (
    *("prevalence", "passed", "accuracy", "balanced_accuracy", "kappa", "ac1"),
    *("precision", "recall", "fail_precision", "fail_recall"),
)


@dataclass(frozen=True, slots=True)
class HeldOutItem:
    """A held-out item under a judge: its label, and what the map that has not seen it made of the judge's answer."""

    id: str
    group: str
    label: bool
    raw: float
    value: float
    """The calibrated value in [0, 1]; `passed` by that map's threshold."""
    passed: bool
    stratum: Annotated[str, Field(exclude=True)] = ""
    decided: Annotated[bool, Field(exclude=True)] = True
    """Whether the value lies outside that map's band."""

    @property
    def right(self) -> bool:
        """Whether the verdict matches the label."""
        return self.passed is self.label


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


def measure_statistics(
    statistics: StatisticsFunction, groups: Sequence[str], resampling: Resampling
) -> dict[str, Measure]:
    """Measure each figure of the items of these groups, with its interval if any are drawn."""
    values = statistics(np.ones(len(groups)))
    if not resampling.draws:
        return {name: Measure(value) for name, value in values.items()}
    intervals = compute_intervals(statistics, groups, count=resampling.draws, seed=resampling.seed)
    return {name: Measure(value, *(intervals[name] or (None, None))) for name, value in values.items()}


def compute_judge_figures(rows: Sequence[HeldOutItem], resampling: Resampling) -> Figures:
    """Compute the figures of values and verdicts against labels. The order of the rows changes no digit.

    A figure that every draw gives alike, because no item differs, still gets an interval: to what it would be if each class held
    as many opposite verdicts as none in its groups allows at 97.5 % (Clopper and Pearson 1934, Biometrika 26:404).
    """
    groups = [row.group for row in rows]
    measures = measure_statistics(_build_statistics(rows), groups, resampling)
    if any(one.low is not None and one.low == one.high for one in measures.values()):
        more = [HeldOutItem("", "", one, 0.0, float(not one), not one, rows[0].stratum) for one in (True, False)]
        unseen = [_weigh_unseen([row for row in rows if row.label == one.label]) for one in more]
        at_worst = _build_statistics([*rows, *more])(np.array([*[1.0] * len(rows), *unseen]))
        measures = {name: _ensure_width(one, at_worst[name]) for name, one in measures.items()}
    verdicts = TallyRows([row.passed for row in rows], [row.label for row in rows])
    return Figures(len(rows), len(set(groups)), build_confusion_at(verdicts.tally(), 1.0), measures)


def _build_statistics(rows: Sequence[HeldOutItem]) -> StatisticsFunction:
    labels = [row.label for row in rows]
    values, verdicts = TallyRows([row.value for row in rows], labels), TallyRows([row.passed for row in rows], labels)
    strata: list[tuple[list[int], TallyRows]] = []
    for name in sorted({row.stratum for row in rows}):
        at = [n for n, row in enumerate(rows) if row.stratum == name]
        strata.append((at, TallyRows([rows[n].value for n in at], [labels[n] for n in at])))

    def statistics(weights: Floats) -> dict[str, float | None]:
        tally, confusion = values.tally(weights), build_confusion_at(verdicts.tally(weights), 1.0)
        within = auroc_within([part.tally(weights[at]) for at, part in strata])
        ranking = {"auroc": auroc(tally), "brier": brier(tally), "ece": ece(tally), "auroc_within": within}
        return {**_read_table(confusion), **ranking}

    return statistics


def _weigh_unseen(rows: Sequence[HeldOutItem]) -> float:
    """Weigh the items of a class that may be unlike all that were seen, as a number of items."""
    groups = len({row.group for row in rows})
    share = 1 - EDGE ** (1 / groups) if groups else 0.0
    return len(rows) * share / (1 - share)


def _ensure_width(measure: Measure, at_worst: float | None) -> Measure:
    if measure.value is None or measure.low is None or measure.low != measure.high or at_worst is None:
        return measure
    return Measure(measure.value, *sorted((measure.value, at_worst)))


def _read_table(table: ConfusionTable) -> dict[str, float | None]:
    return {name: getattr(table, name) for name in CONFUSION_FIGURES}


def compute_human_figures(items: Sequence[LabelledItem], resampling: Resampling) -> Figures | None:
    """Compute the figures of one human in place of the judge against another in place of the label.

    None where nobody labelled an item twice. Only human labels count. Each pair of annotators counts in both orders, so
    precision equals recall; a second human's value is 0 or 1, so its AUROC is the balanced accuracy, and its Brier score and
    ECE are the share of disagreement.
    """
    twice = [item for item in items if item.origin == "human" and len(item.opinions) > 1]
    if not twice:
        return None
    twice.sort(key=lambda item: item.key)
    sides = np.array([[item.counts[True], item.counts[False]] for item in twice], dtype=np.float64)
    cells, groups = compare_annotators(sides), [item.group for item in twice]

    def tabulate(weights: Floats) -> ConfusionTable:
        return ConfusionTable(*(float(weights @ cell) for cell in cells))

    def statistics(weights: Floats) -> dict[str, float | None]:
        table = tabulate(weights)
        disagreement = None if table.accuracy is None else 1 - table.accuracy
        alike = {"auroc": table.balanced_accuracy, "brier": disagreement, "ece": disagreement}
        return {**_read_table(table), **alike, "alpha": compute_alpha(sides, weights)}

    measures = measure_statistics(statistics, groups, resampling)
    return Figures(
        len(twice),
        len(set(groups)),
        tabulate(np.ones(len(twice))),
        {name: replace_pointlike(name, measure, len(twice)) for name, measure in measures.items()},
    )


def replace_pointlike(name: str, measure: Measure, n: int) -> Measure:
    """Replace an interval without width, which draws of `n` items or groups give that are all alike.

    Their `accuracy` gets Wilson's interval; other figures none.
    """
    if measure.value is None or measure.low is None or measure.low != measure.high:
        return measure
    return Measure(measure.value, *wilson(measure.value * n, n)) if name == "accuracy" else Measure(measure.value)


def read_metrics(measures: Mapping[str, Measure]) -> dict[str, Metric]:
    """Return the figures as a fit stores them, rounded to six digits: finer than any interval can resolve."""

    def shorten(value: float | None) -> float | None:
        return None if value is None else round(value, 6)

    return {
        name: Metric(value=shorten(one.value), low=shorten(one.low), high=shorten(one.high))
        for name, one in measures.items()
    }
