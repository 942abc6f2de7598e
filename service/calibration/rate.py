"""The pass rate of traffic from a judge's word on all of it and labels for some of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from service.calibration.labels import Key, LabelledItem, LabelledSet
from service.calibration.predictions import JudgePredictions, Prediction, group_by_judge
from service.calibration.splits import SEED
from service.errors import InputError
from service.stats.corrected import InferredRate, code_groups, has_enough_groups, infer_from_labels, ppi
from service.stats.sampling import (
    StratifiedRate,
    Stratum,
    allocate_labels,
    compute_half_width,
    cut_strata,
    estimate_stratified_rate,
)
from service.stats.selective import estimate_icc
from service.stats.transport import MeanShift, compare_means


@dataclass(frozen=True, slots=True)
class PassRate:
    """The share of items that people would pass, three ways."""

    judge: str
    criterion: str
    labelled: int
    unlabelled: int
    naive: float
    """What the judge says, taken at its word."""
    humans: InferredRate
    """From the labels alone."""
    corrected: InferredRate
    """From both (PPI++)."""
    label_next: tuple[str, ...]
    """Items to label next, drawn at random: labels chosen any other way would bend the rates above."""
    sample_shift: MeanShift | None
    """By how much the judge's value is higher on items without a label: far from 0, labels were not drawn from these."""
    period_shift: PeriodShift | None
    """Where labels name their period, whether those of earlier ones correct the judge in the latest."""
    plan: LabelPlan


@dataclass(frozen=True, slots=True)
class PeriodShift:
    """Label minus the judge's value in the latest period, less the same in all earlier ones: 0 where corrections carry over."""

    latest: str
    labels: int
    earlier: int
    shift: MeanShift


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """What to label next for the narrowest interval, where labels are drawn stratum by stratum."""

    strata: tuple[Stratum, ...]
    next: tuple[tuple[str, ...], ...]
    """The items of each stratum to label next, drawn at random."""
    rate: StratifiedRate | None
    """By the labels at hand, each stratum at random; None where one has none."""
    width: float
    """Of the interval with the planned labels, roughly."""
    width_at_random: float
    """With as many labels drawn from all items alike."""


def compute_pass_rates(
    labels: LabelledSet, predictions: Iterable[Prediction], *, threshold: float = 0.75, count: int = 20
) -> tuple[PassRate, ...]:
    """The rate by each judge and criterion. The labelled items must be drawn at random from those that were judged.

    `threshold` is the least raw value that passes; it matters for the naive rate alone. Items of one group are not
    independent, and widen the intervals; that of an item without a label is its prediction's. InputError where a judge has
    labelled items of fewer than two groups, or too few others.
    """
    return tuple([_compute_rate(labels, judge, threshold, count) for judge in group_by_judge(predictions)])


def _compute_rate(labels: LabelledSet, judge: JudgePredictions, threshold: float, count: int) -> PassRate:
    known = {item.key: item for item in labels.items if item.criterion == judge.criterion and item.key in judge.raw}
    labelled, rest = sorted(known), sorted(judge.raw.keys() - known.keys())
    groups = [known[key].group for key in labelled], [judge.groups.get(key) for key in rest]
    if not has_enough_groups(*groups):
        told = f"{len(labelled)} labelled items of {judge.criterion!r} and {len(rest)} others"
        raise InputError.at(judge.name, f"{told}; a rate needs two groups of each")
    verdicts = [known[key].passes for key in labelled]
    said, elsewhere = ([judge.raw[key][0] for key in keys] for keys in (labelled, rest))
    return PassRate(
        judge=judge.name,
        criterion=judge.criterion,
        labelled=len(labelled),
        unlabelled=len(rest),
        naive=sum(raw >= threshold for raw in [*said, *elsewhere]) / (len(said) + len(elsewhere)),
        humans=infer_from_labels(verdicts, groups[0]),
        corrected=ppi(verdicts, said, elsewhere, groups),
        label_next=tuple(_shuffle([name for name, _ in rest]))[:count],
        sample_shift=compare_means(said, elsewhere, groups),
        period_shift=_compare_periods([known[key] for key in labelled], said),
        plan=_build_plan([known[key] for key in labelled], said, dict(zip(rest, elsewhere, strict=True)), count),
    )


def _compare_periods(items: Sequence[LabelledItem], said: Sequence[float]) -> PeriodShift | None:
    """None for one period, or where a side has too few groups."""
    periods = sorted({item.period for item in items if item.period})
    if len(periods) < 2:
        return None
    rests = [(item, item.passes - raw) for item, raw in zip(items, said, strict=True) if item.period]
    sides = [[one for one in rests if (one[0].period == periods[-1]) is late] for late in (False, True)]
    earlier, latest = ([rest for _, rest in side] for side in sides)
    groups = [item.group for item, _ in sides[0]], [item.group for item, _ in sides[1]]
    shift = compare_means(earlier, latest, groups)
    return None if shift is None else PeriodShift(periods[-1], len(latest), len(earlier), shift)


def _build_plan(
    items: Sequence[LabelledItem], said: Sequence[float], rest: Mapping[Key, float], count: int
) -> LabelPlan:
    ranges = cut_strata([*said, *rest.values()])
    strata: list[Stratum] = []
    for low, high in ranges:
        own = [item.passes for item, raw in zip(items, said, strict=True) if low <= raw <= high]
        size = len(own) + sum(low <= raw <= high for raw in rest.values())
        strata.append(Stratum(low, high, size, len(own), sum(own)))
    more, whole = allocate_labels(strata, count), sum(one.items for one in strata)
    alike = [round(count * one.items / whole) for one in strata]
    ess_ratio = _estimate_ess_ratio(items)
    chosen = [
        tuple(_shuffle([key[0] for key, raw in rest.items() if low <= raw <= high]))[:number]
        for (low, high), number in zip(ranges, more, strict=True)
    ]
    return LabelPlan(
        strata=tuple(strata),
        next=tuple(chosen),
        rate=estimate_stratified_rate(strata, ess_ratio=ess_ratio),
        width=2 * compute_half_width(strata, more, ess_ratio=ess_ratio),
        width_at_random=2 * compute_half_width(strata, alike, ess_ratio=ess_ratio),
    )


def _estimate_ess_ratio(items: Sequence[LabelledItem]) -> float:
    """How many labels one is worth, where those of a group are alike."""
    size = sum(n * n for n in Counter(item.group for item in items).values()) / len(items)
    passes, groups = np.array([item.passes for item in items]), code_groups([item.group for item in items])
    return 1 / (1 + (size - 1) * estimate_icc(passes, groups))


def _shuffle(names: Iterable[str]) -> Iterator[str]:
    yield from sorted(names, key=lambda name: sha256(f"{SEED}\0label\0{name}".encode()).hexdigest())
