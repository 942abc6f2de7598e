"""Signs of trouble: verdicts that flip when asked again, a taste for length, and where judge and labels differ most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np
from scipy import stats  # pyright: ignore[reportMissingTypeStubs]

from service.calibrating.labels import LabelledItem
from service.stats.tallies import Floats

EXCERPT = 300
"""Characters of an item that a report shows."""


@dataclass(frozen=True, slots=True)
class Retest:
    """Items that were asked several times: how often two answers to the same question differ."""

    items: int
    samples: int
    """The most answers that an item has."""
    flip_rate: float
    """The chance that two answers, drawn from those of an item, lie on two sides of the threshold; the noise floor."""
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
    """What each annotator said."""
    raw: float
    value: float
    distance: float
    excerpt: str


def retest(raw: Sequence[Sequence[float]], threshold: float) -> Retest | None:
    """The figures of items with two or more values; None where there are none. `threshold` is one of raw values."""
    several = [values for values in raw if len(values) > 1]
    if not several:
        return None
    return Retest(
        items=len(several),
        samples=max(len(values) for values in several),
        flip_rate=fsum(_flips([value >= threshold for value in values]) for values in several) / len(several),
        spread=fsum(max(values) - min(values) for values in several) / len(several),
    )


def _flips(passed: Sequence[bool]) -> float:
    n, yes = len(passed), sum(passed)
    return 2 * yes * (n - yes) / (n * (n - 1))


def length_bias(lengths: Sequence[int], values: Sequence[float], labels: Sequence[bool]) -> LengthBias | None:
    """Spearman's correlations with length; None where fewer than three items have an answer."""
    if len(lengths) < 3:
        return None
    long, said, so = (np.asarray(column, dtype=np.float64) for column in (lengths, values, labels))
    parts = [(_rank_correlation(long[so == side], said[so == side]), int((so == side).sum())) for side in (0.0, 1.0)]
    known = [(rho, n) for rho, n in parts if rho is not None]
    within = fsum(rho * n for rho, n in known) / sum(n for _, n in known) if known else None
    return LengthBias(_rank_correlation(long, said), _rank_correlation(long, so), within, len(lengths))


def _rank_correlation(a: Floats, b: Floats) -> float | None:
    if len(a) < 3 or (a == a[0]).all() or (b == b[0]).all():
        return None
    return float(np.corrcoef(stats.rankdata(a), stats.rankdata(b))[0, 1])  # pyright: ignore


def disagreement(item: LabelledItem, line: int, *, raw: float, value: float) -> Disagreement:
    """How far apart judge and labels are on one item."""
    return Disagreement(
        id=item.id,
        line=line,
        label=item.passes,
        labels=tuple([f"{one.annotator}: {'pass' if one.label else 'fail'}" for one in item.labels[:6]]),
        raw=raw,
        value=value,
        distance=abs(value - item.passes),
        excerpt=(item.answer or "")[:EXCERPT],
    )


def worst(found: Sequence[Disagreement], count: int) -> tuple[Disagreement, ...]:
    """Those that are furthest apart."""
    return tuple(sorted(found, key=lambda one: (-one.distance, one.id))[:count])
