"""Call or no call, over many cases: precision, recall, F1 and accuracy of each class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from service.core.call_decisions import CallClass
from service.reporting.summary.samples import Sample
from service.stats.rates import Estimate, IntervalMethod, RatePart, estimate


@dataclass(frozen=True, slots=True)
class ClassScore:
    """One class. `support` counts the decisions in which it was expected, `chosen` those in which it was made."""

    support: int
    chosen: int
    right: int
    precision: Estimate
    """right / chosen"""
    recall: Estimate
    """right / support"""
    f1: Estimate
    accuracy: Estimate
    """The share of this class's own decisions that were right. With two classes this equals its recall."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """Both classes; `accuracy` is the share of all decisions that were right."""

    call: ClassScore
    no_call: ClassScore
    accuracy: Estimate


class ClassTally:
    """The decisions of each case about one class: right, chosen, expected."""

    def __init__(self, samples: Iterable[Sample], label: CallClass) -> None:
        self.rows = [(sample.group, *_count_decisions(sample, label)) for sample in samples]

    def list_parts(self, measure: str) -> list[RatePart]:
        """Return what each case adds to `precision`, `recall`, `accuracy` or `f1`."""
        if measure == "precision":
            return [RatePart(group, right, chosen) for group, right, chosen, _ in self.rows]
        if measure == "f1":
            return [RatePart(group, 2 * right, chosen + due) for group, right, chosen, due in self.rows]
        return [RatePart(group, right, due) for group, right, _, due in self.rows]


def summarize_decisions(samples: Sequence[Sample], interval: IntervalMethod) -> Decisions:
    """Score both classes over all decisions, turns included, of the cases whose calls could all be read."""
    samples = [sample for sample in samples if sample.calls_are_known]
    return Decisions(
        call=_score_class(samples, "call", interval),
        no_call=_score_class(samples, "no_call", interval),
        accuracy=estimate(list_decision_parts(samples), interval),
    )


def list_decision_parts(samples: Iterable[Sample]) -> list[RatePart]:
    """List what each case adds to the share of right decisions."""
    return [
        RatePart(sample.group, sum(one.right for one in sample.report.decisions), len(sample.report.decisions))
        for sample in samples
    ]


def _score_class(samples: Sequence[Sample], label: CallClass, interval: IntervalMethod) -> ClassScore:
    tally = ClassTally(samples, label)
    return ClassScore(
        support=sum(due for *_, due in tally.rows),
        chosen=sum(chosen for _, _, chosen, _ in tally.rows),
        right=sum(right for _, right, _, _ in tally.rows),
        precision=estimate(tally.list_parts("precision"), interval),
        recall=estimate(tally.list_parts("recall"), interval),
        f1=estimate(tally.list_parts("f1"), interval),
        accuracy=estimate(tally.list_parts("accuracy"), interval),
    )


def _count_decisions(sample: Sample, label: CallClass) -> tuple[int, int, int]:
    is_call = label == "call"
    all_decisions = sample.report.decisions
    return (
        sum(one.expected == label and one.right for one in all_decisions),
        sum(one.made == is_call for one in all_decisions),
        sum(one.expected == label for one in all_decisions),
    )
