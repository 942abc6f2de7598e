"""Warning signs about a judge: verdicts that flip on retest, length bias, and the largest disagreements with the labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

import numpy as np
from scipy import stats  # pyright: ignore[reportMissingTypeStubs]

from service.calibration.figures import Measure
from service.calibration.labels import AnnotatorLabel, LabelledItem
from service.calibration.report.excerpts import Excerpt, build_excerpt, shorten
from service.stats.intervals import bootstrap
from service.stats.rates import RatePart
from service.stats.tallies import Floats

MAX_ANNOTATORS_SHOWN = 6
"""How many annotators of an item are shown."""


@dataclass(frozen=True, slots=True)
class Retest:
    """Items that were asked more than once: how often two answers to the same question differ."""

    items: int
    samples: int
    """The most answers that any item has."""
    flip_rate: Measure
    """The noise floor: the mean share of pairs of answers to an item whose verdicts differ. Its interval draws whole groups."""
    spread: float
    """The mean distance between the highest and the lowest value of an item."""


@dataclass(frozen=True, slots=True)
class LengthBias:
    """Rank correlations with the length of the answer, each in [-1, 1]; None where undefined."""

    score: float | None
    """The correlation with the judge's value."""
    label: float | None
    """The correlation with the label: how humans rate long answers."""
    within: float | None
    """The correlation with the judge's value among items with the same label: about 0 for a judge that measures only quality."""
    n: int


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An item on which judge and labels disagree."""

    id: str
    line: int
    """Its line in the labelled set."""
    label: bool
    labels: tuple[str, ...]
    """Each annotator's label, with their notes."""
    raw: float
    value: float
    distance: float
    reason: str
    """The judge's reason in its own words; empty where none is recorded."""
    excerpt: Excerpt


class RetestItem(NamedTuple):
    """An item that was asked: its group, and the value of each answer."""

    group: str
    values: tuple[float, ...]


def measure_retest(asked: Iterable[RetestItem], threshold: float, *, interval: bool = True) -> Retest | None:
    """Measure items with two or more answers; None where there are none. Values from `threshold` upwards pass.

    Labels play no part, so items that were fitted count as well.
    """
    repeated = [one for one in asked if len(one.values) > 1]
    if not repeated:
        return None
    flips = [RatePart(one.group, _count_flips([value >= threshold for value in one.values])) for one in repeated]
    rate = fsum(part.hits for part in flips) / len(flips)
    return Retest(
        items=len(repeated),
        samples=max(len(one.values) for one in repeated),
        flip_rate=Measure(rate, *bootstrap(flips)) if interval else Measure(rate),
        spread=fsum(max(one.values) - min(one.values) for one in repeated) / len(repeated),
    )


def _count_flips(passed: Sequence[bool]) -> float:
    """Return the share of pairs of answers whose verdicts differ.

    >>> _count_flips([True, True, False]), _count_flips([True, False])
    (0.6666666666666666, 1.0)
    """
    n, yes = len(passed), sum(passed)
    return 2 * yes * (n - yes) / (n * (n - 1))


def measure_length_bias(lengths: Sequence[int], values: Sequence[float], labels: Sequence[bool]) -> LengthBias | None:
    """Compute Spearman's correlations with length; None where fewer than three items have an answer."""
    if len(lengths) < 3:
        return None
    length, value, label = (np.asarray(column, dtype=np.float64) for column in (lengths, values, labels))
    parts = [
        (_correlate_ranks(length[label == side], value[label == side]), int((label == side).sum()))
        for side in (0.0, 1.0)
    ]
    known = [(rho, n) for rho, n in parts if rho is not None]
    within = fsum(rho * n for rho, n in known) / sum(n for _, n in known) if known else None
    return LengthBias(_correlate_ranks(length, value), _correlate_ranks(length, label), within, len(lengths))


def _correlate_ranks(a: Floats, b: Floats) -> float | None:
    if len(a) < 3 or (a == a[0]).all() or (b == b[0]).all():
        return None
    return float(np.corrcoef(stats.rankdata(a), stats.rankdata(b))[0, 1])  # pyright: ignore


def build_disagreement(item: LabelledItem, line: int, *, raw: float, value: float, reason: str = "") -> Disagreement:
    """Describe one item on which judge and labels disagree."""
    return Disagreement(
        id=item.id,
        line=line,
        label=item.passes,
        labels=tuple(map(_describe_label, item.labels[:MAX_ANNOTATORS_SHOWN])),
        raw=raw,
        value=value,
        distance=abs(value - item.passes),
        reason=shorten(reason),
        excerpt=build_excerpt(item),
    )


def _describe_label(label: AnnotatorLabel) -> str:
    verdict = f"{label.annotator}: {'pass' if label.label else 'fail'}"
    return f"{verdict} ({shorten(label.note, 200)})" if label.note else verdict


def find_largest_disagreements(values: Iterable[tuple[LabelledItem, float]], count: int) -> list[LabelledItem]:
    """Return the items with the largest distance between value and label. `values`: each item with its value."""
    ranked = sorted(values, key=lambda pair: (-abs(pair[1] - pair[0].passes), pair[0].id))
    return [item for item, _ in ranked[:count]]
