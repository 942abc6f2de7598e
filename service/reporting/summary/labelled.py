"""Pair reports with labels: what humans said about some of a criterion's items, and what the reports say about all of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from service.core.models.kinds import FrozenModel
from service.core.outcome import Scored, is_open
from service.errors import InputError
from service.reporting.summary.samples import Sample, list_outcomes

MAX_LABEL_NEXT = 20
"""How many items to label next are named."""

_VERDICTS = {"pass": True, "fail": False}


def _read_verdict(given: object) -> object:
    return _VERDICTS.get(given, given) if isinstance(given, str) else given


class ReportLabel(FrozenModel):
    """A human's label of one report under one criterion. Of several for the same item the majority counts, on a tie the first."""

    trace_id: str = Field(min_length=1)
    criterion: str = Field(min_length=1)
    step: Annotated[int, Field(ge=0)] | None = None
    """The position of the call that it is about. Absent: the criterion as a whole."""
    label: Annotated[bool, BeforeValidator(_read_verdict)]
    """Whether it passes; also "pass" and "fail"."""


class LabelPlace(NamedTuple):
    """The item that was judged: a report by its trace, or one call of it."""

    trace_id: str | None
    step: int | None


@dataclass(frozen=True, slots=True)
class ToLabel:
    """An item that has no label yet."""

    trace_id: str
    step: int | None


@dataclass(frozen=True, slots=True)
class RateEstimate:
    """A rate in [0, 1] with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class CorrectedRate:
    """The share of a criterion's items that people would pass, estimated three ways."""

    criterion: str
    unit: Literal["report", "step"]
    """Whether its items are reports or calls."""
    labelled: int
    unlabelled: int
    unmatched: int
    """Labels of items that no report has, or that were not measured."""
    naive: float | None
    """The share that the reports pass, taken at face value; null where nothing was measured."""
    humans: RateEstimate | None
    """From the labels alone; null for fewer than two labels, or where all are of one group."""
    corrected: RateEstimate | None
    """From both (PPI++); null for fewer than two labels, for no unlabelled item, or where either is all of one group."""
    trust: float | None
    """The judge's weight in [0, 1] in it; 0: labels alone."""
    more_labels: int | None
    """How many more labels would halve its interval; null where no number would."""
    label_next: tuple[ToLabel, ...]
    """Items to label next, drawn at random: labels chosen in any other way would bias the rate."""


@dataclass(frozen=True, slots=True)
class LabelPairing:
    """Labels of one criterion beside the reports' values, ready for the arithmetic: one number per item."""

    criterion: str
    unit: Literal["report", "step"]
    labels: tuple[bool, ...]
    judged: tuple[float, ...]
    """The values of the labelled items, in the same order."""
    groups: tuple[str | None, ...]
    """The groups of the labelled items, which are not independent within one. None: a group of its own."""
    unlabelled: tuple[float, ...] = field(repr=False)
    """The values of the unlabelled items."""
    unlabelled_groups: tuple[str | None, ...] = field(repr=False)
    unmatched: int
    naive: float | None
    label_next: tuple[ToLabel, ...]


class _ReportedItem(NamedTuple):
    place: LabelPlace
    value: float
    passed: bool
    group: str | None


def pair_labels(samples: Sequence[Sample], labels: Iterable[ReportLabel]) -> tuple[LabelPairing, ...]:
    """Pair labels with reports, by criterion and unit. Neither the order of reports nor that of other criteria matters.

    Labelled items must be drawn at random from those that were measured. InputError where two reports have the trace that a
    label names.
    """
    groups: dict[tuple[str, bool], dict[LabelPlace, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for one in labels:
        groups[one.criterion, one.step is not None][LabelPlace(one.trace_id, one.step)].append(one.label)
    _check_names(samples, {place.trace_id for places in groups.values() for place in places})
    return tuple([_pair(samples, *key, places) for key, places in sorted(groups.items())])


def _check_names(samples: Iterable[Sample], named: set[str | None]) -> None:
    counts = Counter(sample.report.trace_id for sample in samples)
    ambiguous = sorted(name for name in named if name is not None and counts[name] > 1)
    if ambiguous:
        message = (
            f"{counts[ambiguous[0]]} reports are of the trace {ambiguous[0]!r}, so it is unclear which one was labelled"
        )
        raise InputError.at("/labels", message)


def _pair(
    samples: Sequence[Sample],
    criterion: str,
    by_step: bool,  # noqa: FBT001
    labels_by_place: Mapping[LabelPlace, list[bool]],
) -> LabelPairing:
    iter_items = _iter_calls if by_step else _iter_reports
    items = [item for at, sample in enumerate(samples) for item in iter_items(sample, criterion, at)]
    labelled = sorted([one for one in items if one.place in labels_by_place], key=lambda one: str(one.place))
    unlabelled = sorted([one for one in items if one.place not in labels_by_place], key=lambda one: one.value)
    candidates = [ToLabel(one.place.trace_id, one.place.step) for one in unlabelled if one.place.trace_id is not None]
    return LabelPairing(
        criterion=criterion,
        unit="step" if by_step else "report",
        labels=tuple([_decide_majority(labels_by_place[one.place]) for one in labelled]),
        judged=tuple([one.value for one in labelled]),
        groups=tuple([one.group for one in labelled]),
        unlabelled=tuple([one.value for one in unlabelled]),
        unlabelled_groups=tuple([one.group for one in unlabelled]),
        unmatched=len(labels_by_place) - len(labelled),
        naive=sum(one.passed for one in items) / len(items) if items else None,
        label_next=tuple(sorted(candidates, key=_hash_item)[:MAX_LABEL_NEXT]),
    )


def _iter_calls(sample: Sample, criterion: str, at: int) -> Iterator[_ReportedItem]:
    """Yield the measured calls of a report; together they form a group, unless the report belongs to one."""
    report, group = sample.report, f"report {at}" if sample.group is None else f"group {sample.group}"
    for step in report.steps:
        outcome = step.outcomes.get(criterion)
        if isinstance(outcome, Scored):
            yield _ReportedItem(LabelPlace(report.trace_id, step.index), outcome.value, outcome.passed, group)


def _iter_reports(sample: Sample, criterion: str, _: int) -> Iterator[_ReportedItem]:
    """Yield the report if it was measured and decided. Its value is the lowest of its outcomes, and all of them must pass."""
    report = sample.report
    outcomes = [each for one in report.criteria if one.id == criterion for each in list_outcomes(one, report)]
    scored = [outcome for outcome in outcomes if isinstance(outcome, Scored)]
    decided = not any(map(is_open, outcomes)) or any(not outcome.passed for outcome in scored)
    if scored and decided:
        value, passed = min(one.value for one in scored), all(one.passed for one in scored)
        yield _ReportedItem(LabelPlace(report.trace_id, None), value, passed, sample.group)


def _decide_majority(labels: Sequence[bool]) -> bool:
    passing = sum(labels)
    return labels[0] if 2 * passing == len(labels) else 2 * passing > len(labels)


def _hash_item(item: ToLabel) -> str:
    return sha256(f"label\0{item.trace_id}\0{item.step}".encode()).hexdigest()
