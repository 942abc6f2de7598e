"""Signs of trouble: verdicts that flip when asked again, a taste for length, and where judge and labels differ most."""

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

SEVERAL = 6
"""Annotators of an item that are shown."""


@dataclass(frozen=True, slots=True)
class Retest:
    """Items that were asked several times: how often two answers to the same question differ."""

    items: int
    samples: int
    """The most answers that an item has."""
    flip_rate: Measure
    """The noise floor: the share of items whose verdict differs between two of their answers, over all pairs of answers; its
    interval by drawing whole groups."""
    spread: float
    """The mean distance of the highest and the lowest value of an item."""


@dataclass(frozen=True, slots=True)
class LengthBias:
    """Rank correlations of the length of the answer, each in [-1, 1]; None where it is undefined."""

    score: float | None
    """With the judge's value."""
    label: float | None
    """With the label: what humans make of long answers."""
    within: float | None
    """With the judge's value among items of one label: a judge that only measures quality has about 0."""
    n: int


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An item on which judge and labels differ."""

    id: str
    line: int
    """Where it stands in the labelled set."""
    label: bool
    labels: tuple[str, ...]
    """What each annotator said, with their notes."""
    raw: float
    value: float
    distance: float
    reason: str
    """Why, in the judge's words; empty where it is not recorded."""
    excerpt: Excerpt


class AskedItem(NamedTuple):
    """An item that was asked: its group, and the value of each answer."""

    group: str
    values: tuple[float, ...]


def measure_retest(asked: Iterable[AskedItem], threshold: float, *, interval: bool = True) -> Retest | None:
    """The figures of items with two or more answers; None where there are none. Values from `threshold` upwards pass.

    Labels have no part in it, so items that were fitted count as well.
    """
    several = [one for one in asked if len(one.values) > 1]
    if not several:
        return None
    flips = [RatePart(one.group, _count_flips([value >= threshold for value in one.values])) for one in several]
    rate = fsum(part.hits for part in flips) / len(flips)
    return Retest(
        items=len(several),
        samples=max(len(one.values) for one in several),
        flip_rate=Measure(rate, *bootstrap(flips)) if interval else Measure(rate),
        spread=fsum(max(one.values) - min(one.values) for one in several) / len(several),
    )


def _count_flips(passed: Sequence[bool]) -> float:
    """The share of pairs of answers that differ.

    >>> _count_flips([True, True, False]), _count_flips([True, False])
    (0.6666666666666666, 1.0)
    """
    n, yes = len(passed), sum(passed)
    return 2 * yes * (n - yes) / (n * (n - 1))


def measure_length_bias(lengths: Sequence[int], values: Sequence[float], labels: Sequence[bool]) -> LengthBias | None:
    """Spearman's correlations with length; None where fewer than three items have an answer."""
    if len(lengths) < 3:
        return None
    long, said, so = (np.asarray(column, dtype=np.float64) for column in (lengths, values, labels))
    parts = [(_correlate_ranks(long[so == side], said[so == side]), int((so == side).sum())) for side in (0.0, 1.0)]
    known = [(rho, n) for rho, n in parts if rho is not None]
    within = fsum(rho * n for rho, n in known) / sum(n for _, n in known) if known else None
    return LengthBias(_correlate_ranks(long, said), _correlate_ranks(long, so), within, len(lengths))


def _correlate_ranks(a: Floats, b: Floats) -> float | None:
    if len(a) < 3 or (a == a[0]).all() or (b == b[0]).all():
        return None
    return float(np.corrcoef(stats.rankdata(a), stats.rankdata(b))[0, 1])  # pyright: ignore


def build_disagreement(item: LabelledItem, line: int, *, raw: float, value: float, reason: str = "") -> Disagreement:
    """How far apart judge and labels are on one item."""
    return Disagreement(
        id=item.id,
        line=line,
        label=item.passes,
        labels=tuple(map(_describe_label, item.labels[:SEVERAL])),
        raw=raw,
        value=value,
        distance=abs(value - item.passes),
        reason=shorten(reason),
        excerpt=build_excerpt(item),
    )


def _describe_label(label: AnnotatorLabel) -> str:
    verdict = f"{label.annotator}: {'pass' if label.label else 'fail'}"
    return f"{verdict} ({shorten(label.note, 200)})" if label.note else verdict


def find_furthest(found: Iterable[tuple[LabelledItem, float]], count: int) -> list[LabelledItem]:
    """The items with the largest distance of value and label. `found`: each item with its value."""
    ranked = sorted(found, key=lambda pair: (-abs(pair[1] - pair[0].passes), pair[0].id))
    return [item for item, _ in ranked[:count]]
