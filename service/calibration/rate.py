"""The pass rate of traffic, from a judge's values for all of it and labels for some of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from service.calibration.labels import LabelledItem, LabelledSet
from service.calibration.options import OWN_THRESHOLD
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
    corrected: InferredRate
    """From labels and judge (PPI++); `humans` is from the labels alone."""
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
    labels: LabelledSet, predictions: Iterable[Prediction], *, count: int = 20
) -> tuple[PassRate, ...]:
    """Compute the rate by each judge and criterion. The labelled items must be drawn at random from those that were judged.

    `count`: how many items to label next. Items of one group are not independent and widen the intervals; the group of an
    unlabelled item is the one its prediction names. InputError where a judge has labelled items of fewer than two groups, or
    too few others.
    """
    return tuple([_compute_rate(labels, judge, count) for judge in group_by_judge(predictions)])


def _compute_rate(labels: LabelledSet, judge: JudgePredictions, count: int) -> PassRate:
    items = [item for item in labels.items if item.criterion == judge.criterion and item.key in judge.raw]
    rest = sorted(judge.raw.keys() - {item.key for item in items})
    groups = [item.group for item in items], [judge.first[key].group for key in rest]
    if not has_enough_groups(*groups):
        counts = f"{len(items)} labelled items of {judge.criterion!r} and {len(rest)} others"
        raise InputError.at(judge.name, f"{counts}; a rate needs two groups of each")
    verdicts, on_labelled = [item.passes for item in items], [judge.raw[item.key][0] for item in items]
    on_unlabelled = {name: judge.raw[name, criterion][0] for name, criterion in rest}
    judged = [*on_labelled, *on_unlabelled.values()]
    return PassRate(
        judge=judge.name,
        criterion=judge.criterion,
        labelled=len(items),
        unlabelled=len(rest),
        naive=sum(raw >= OWN_THRESHOLD for raw in judged) / len(judged),
        humans=infer_from_labels(verdicts, groups[0]),
        corrected=ppi(verdicts, on_labelled, list(on_unlabelled.values()), groups),
        label_next=tuple(_shuffle(on_unlabelled)[:count]),
        sample_shift=compare_means(on_labelled, list(on_unlabelled.values()), groups),
        period_shift=_compare_periods(items, on_labelled),
        plan=_plan_labels(items, on_labelled, on_unlabelled, count),
    )


def _compare_periods(items: Sequence[LabelledItem], judged: Sequence[float]) -> PeriodShift | None:
    """Compare the latest period with the earlier ones; None for a single period, or where a side has too few groups."""
    latest = max((item.period for item in items), default="")
    sides: list[tuple[list[float], list[str]]] = []
    for late in (False, True):
        pairs = zip(items, judged, strict=True)
        own = [(item, raw) for item, raw in pairs if item.period and (item.period == latest) is late]
        sides.append(([item.passes - raw for item, raw in own], [item.group for item, _ in own]))
    (before, groups), (since, latest_groups) = sides
    shift = compare_means(before, since, (groups, latest_groups))
    return None if shift is None else PeriodShift(latest, len(since), len(before), shift)


def _plan_labels(
    items: Sequence[LabelledItem], on_labelled: Sequence[float], on_unlabelled: Mapping[str, float], count: int
) -> LabelPlan:
    strata, names = list[Stratum](), list[list[str]]()
    for low, high in cut_strata(Counter([*on_labelled, *on_unlabelled.values()])):
        passes = [item.passes for item, raw in zip(items, on_labelled, strict=True) if low <= raw <= high]
        names.append(_shuffle(name for name, raw in on_unlabelled.items() if low <= raw <= high))
        strata.append(Stratum(low, high, len(passes) + len(names[-1]), len(passes), sum(passes)))
    extra, total = allocate_labels(strata, count), sum(one.items for one in strata)
    proportional = [round(count * one.items / total) for one in strata]
    # Labels within a group may be alike: the effective sample size per label.
    size = sum(n * n for n in Counter(item.group for item in items).values()) / len(items)
    icc = estimate_icc(np.array([item.passes for item in items]), code_groups([item.group for item in items]))
    ess_ratio = 1 / (1 + (size - 1) * icc)
    return LabelPlan(
        strata=tuple(strata),
        next=tuple([tuple(own[:number]) for own, number in zip(names, extra, strict=True)]),
        rate=estimate_stratified_rate(strata, ess_ratio=ess_ratio),
        width=2 * compute_half_width(strata, extra, ess_ratio=ess_ratio),
        width_at_random=2 * compute_half_width(strata, proportional, ess_ratio=ess_ratio),
    )


def _shuffle(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: sha256(f"{SEED}\0label\0{name}".encode()).hexdigest())
