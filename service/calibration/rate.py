"""The pass rate of traffic, from a judge's values for all of it and labels for some of it."""

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
    """The share of items that people would pass, estimated three ways."""

    judge: str
    criterion: str
    labelled: int
    unlabelled: int
    naive: float
    """The share that the judge passes, taken at face value."""
    humans: InferredRate
    """From the labels alone."""
    corrected: InferredRate
    """From both (PPI++)."""
    label_next: tuple[str, ...]
    """Items to label next, drawn at random: labels chosen in any other way would bias the rates above."""
    sample_shift: MeanShift | None
    """How much higher the judge's mean value is on unlabelled items: far from 0, the labels were not drawn from the same
    traffic."""
    period_shift: PeriodShift | None
    """Where labels name their period, whether labels of earlier periods correct the judge in the latest one."""
    plan: LabelPlan


@dataclass(frozen=True, slots=True)
class PeriodShift:
    """Mean label minus judge's value in the latest period, less the same in all earlier ones: 0 where corrections carry over."""

    latest: str
    labels: int
    earlier: int
    shift: MeanShift


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """What to label next for the narrowest interval, with labels drawn stratum by stratum."""

    strata: tuple[Stratum, ...]
    next: tuple[tuple[str, ...], ...]
    """The items of each stratum to label next, drawn at random."""
    rate: StratifiedRate | None
    """The rate from the labels at hand, taken as random within each stratum; None where a stratum has none."""
    width: float
    """The approximate width of the interval with the planned labels."""
    width_at_random: float
    """The same with as many labels drawn from all items alike."""


def compute_pass_rates(
    labels: LabelledSet, predictions: Iterable[Prediction], *, threshold: float = 0.75, count: int = 20
) -> tuple[PassRate, ...]:
    """Compute the rate by each judge and criterion. The labelled items must be drawn at random from those that were judged.

    `threshold` is the least raw value that passes; it affects only the naive rate. Items of one group are not independent and
    widen the intervals; the group of an unlabelled item is the one its prediction names. InputError where a judge has
    labelled items of fewer than two groups, or too few others.
    """
    return tuple([_compute_rate(labels, judge, threshold, count) for judge in group_by_judge(predictions)])


def _compute_rate(labels: LabelledSet, judge: JudgePredictions, threshold: float, count: int) -> PassRate:
    labelled_items = {
        item.key: item for item in labels.items if item.criterion == judge.criterion and item.key in judge.raw
    }
    labelled, rest = sorted(labelled_items), sorted(judge.raw.keys() - labelled_items.keys())
    groups = [labelled_items[key].group for key in labelled], [judge.groups.get(key) for key in rest]
    if not has_enough_groups(*groups):
        counts = f"{len(labelled)} labelled items of {judge.criterion!r} and {len(rest)} others"
        raise InputError.at(judge.name, f"{counts}; a rate needs two groups of each")
    verdicts = [labelled_items[key].passes for key in labelled]
    on_labelled, on_unlabelled = ([judge.raw[key][0] for key in keys] for keys in (labelled, rest))
    return PassRate(
        judge=judge.name,
        criterion=judge.criterion,
        labelled=len(labelled),
        unlabelled=len(rest),
        naive=sum(raw >= threshold for raw in [*on_labelled, *on_unlabelled]) / (len(on_labelled) + len(on_unlabelled)),
        humans=infer_from_labels(verdicts, groups[0]),
        corrected=ppi(verdicts, on_labelled, on_unlabelled, groups),
        label_next=tuple(_shuffle([name for name, _ in rest]))[:count],
        sample_shift=compare_means(on_labelled, on_unlabelled, groups),
        period_shift=_compare_periods([labelled_items[key] for key in labelled], on_labelled),
        plan=_build_plan(
            [labelled_items[key] for key in labelled], on_labelled, dict(zip(rest, on_unlabelled, strict=True)), count
        ),
    )


def _compare_periods(items: Sequence[LabelledItem], judged: Sequence[float]) -> PeriodShift | None:
    """Compare the latest period with the earlier ones; None for a single period, or where a side has too few groups."""
    periods = sorted({item.period for item in items if item.period})
    if len(periods) < 2:
        return None
    residuals = [(item, item.passes - raw) for item, raw in zip(items, judged, strict=True) if item.period]
    sides = [[one for one in residuals if (one[0].period == periods[-1]) is late] for late in (False, True)]
    earlier, latest = ([residual for _, residual in side] for side in sides)
    groups = [item.group for item, _ in sides[0]], [item.group for item, _ in sides[1]]
    shift = compare_means(earlier, latest, groups)
    return None if shift is None else PeriodShift(periods[-1], len(latest), len(earlier), shift)


def _build_plan(
    items: Sequence[LabelledItem], on_labelled: Sequence[float], on_unlabelled: Mapping[Key, float], count: int
) -> LabelPlan:
    ranges = cut_strata([*on_labelled, *on_unlabelled.values()])
    strata: list[Stratum] = []
    for low, high in ranges:
        labels_within = [item.passes for item, raw in zip(items, on_labelled, strict=True) if low <= raw <= high]
        size = len(labels_within) + sum(low <= raw <= high for raw in on_unlabelled.values())
        strata.append(Stratum(low, high, size, len(labels_within), sum(labels_within)))
    extra, total = allocate_labels(strata, count), sum(one.items for one in strata)
    proportional = [round(count * one.items / total) for one in strata]
    ess_ratio = _estimate_ess_ratio(items)
    chosen = [
        tuple(_shuffle([key[0] for key, raw in on_unlabelled.items() if low <= raw <= high]))[:number]
        for (low, high), number in zip(ranges, extra, strict=True)
    ]
    return LabelPlan(
        strata=tuple(strata),
        next=tuple(chosen),
        rate=estimate_stratified_rate(strata, ess_ratio=ess_ratio),
        width=2 * compute_half_width(strata, extra, ess_ratio=ess_ratio),
        width_at_random=2 * compute_half_width(strata, proportional, ess_ratio=ess_ratio),
    )


def _estimate_ess_ratio(items: Sequence[LabelledItem]) -> float:
    """Estimate the effective sample size per label where labels within a group are alike."""
    size = sum(n * n for n in Counter(item.group for item in items).values()) / len(items)
    passes, groups = np.array([item.passes for item in items]), code_groups([item.group for item in items])
    return 1 / (1 + (size - 1) * estimate_icc(passes, groups))


def _shuffle(names: Iterable[str]) -> Iterator[str]:
    yield from sorted(names, key=lambda name: sha256(f"{SEED}\0label\0{name}".encode()).hexdigest())
