"""The pass rate of traffic from a judge's word on all of it and labels for some of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from service.calibration.labels import LabelledSet
from service.calibration.predictions import JudgePredictions, Prediction, group_by_judge
from service.calibration.splits import SEED
from service.errors import InputError
from service.stats.corrected import InferredRate, infer_from_labels, is_enough, ppi


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
    """Items to label next, drawn at random: labels chosen any other way would bend the rate."""


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
    if not is_enough(*groups):
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
    )


def _shuffle(names: Iterable[str]) -> Iterator[str]:
    yield from sorted(names, key=lambda name: sha256(f"{SEED}\0label\0{name}".encode()).hexdigest())
