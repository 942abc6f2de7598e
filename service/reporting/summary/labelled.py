"""Reports beside labels: what humans said of some of what a criterion looked at, and what the reports say of all of it."""

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

NEXT = 20
"""How many items are named that could be labelled next."""

_WORDS = {"pass": True, "fail": False}


def _read_verdict(given: object) -> object:
    return _WORDS.get(given, given) if isinstance(given, str) else given


class ReportLabel(FrozenModel):
    """What a human said of one report under one criterion. Of several labels for the same, most decide, else the first."""

    trace_id: str = Field(min_length=1)
    criterion: str = Field(min_length=1)
    step: Annotated[int, Field(ge=0)] | None = None
    """The position of the call that it is about. Absent: the criterion as a whole."""
    label: Annotated[bool, BeforeValidator(_read_verdict)]
    """Whether it passes; also "pass" and "fail"."""


class LabelPlace(NamedTuple):
    """What was judged: a report by its trace, or one call of it."""

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
    """The share of what a criterion looked at that people would pass, three ways."""

    criterion: str
    unit: Literal["report", "step"]
    """Whether its items are reports or calls."""
    labelled: int
    unlabelled: int
    unmatched: int
    """Labels of items that no report has, or that were not measured."""
    naive: float | None
    """The share that passed, taken at its word; null where nothing was measured."""
    humans: RateEstimate | None
    """From the labels alone; null for fewer than two, or where all are of one group."""
    corrected: RateEstimate | None
    """From both (PPI++); null for fewer than two labels, or none without one, or where one group is all there is of either."""
    trust: float | None
    """The weight in [0, 1] that the judge got in it; 0: labels alone."""
    more_labels: int | None
    """How many more labels would halve its interval; null where no number of them would."""
    label_next: tuple[ToLabel, ...]
    """What to label next, drawn at random: labels chosen any other way would bend the rate."""


@dataclass(frozen=True, slots=True)
class LabelPairing:
    """Labels of one criterion beside what reports say, for the arithmetic: one number for each item."""

    criterion: str
    unit: Literal["report", "step"]
    labels: tuple[bool, ...]
    said: tuple[float, ...]
    """The values of the labelled items, in the same order."""
    groups: tuple[str | None, ...]
    """Theirs: items of one group are not independent. None: one of its own."""
    elsewhere: tuple[float, ...] = field(repr=False)
    """The values of the others."""
    groups_elsewhere: tuple[str | None, ...] = field(repr=False)
    unmatched: int
    naive: float | None
    label_next: tuple[ToLabel, ...]


class _ReportedItem(NamedTuple):
    place: LabelPlace
    value: float
    passed: bool
    group: str | None


def pair_labels(samples: Sequence[Sample], labels: Iterable[ReportLabel]) -> tuple[LabelPairing, ...]:
    """Labels beside reports, by criterion and unit. Neither the order of reports nor that of other criteria matters.

    Labelled items are to be drawn at random from those that were measured. InputError where two reports have the trace that a
    label names.
    """
    groups: dict[tuple[str, bool], dict[LabelPlace, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for one in labels:
        groups[one.criterion, one.step is not None][LabelPlace(one.trace_id, one.step)].append(one.label)
    _check_names(samples, {place.trace_id for places in groups.values() for place in places})
    return tuple([_pair(samples, *key, places) for key, places in sorted(groups.items())])


def _check_names(samples: Iterable[Sample], named: set[str | None]) -> None:
    counts = Counter(sample.report.trace_id for sample in samples)
    twice = sorted(name for name in named if name is not None and counts[name] > 1)
    if twice:
        told = f"{counts[twice[0]]} reports are of the trace {twice[0]!r}, so that nobody knows which one was labelled"
        raise InputError.at("/labels", told)


def _pair(
    samples: Sequence[Sample],
    criterion: str,
    by_step: bool,  # noqa: FBT001
    given: Mapping[LabelPlace, list[bool]],
) -> LabelPairing:
    look = _iter_calls if by_step else _iter_reports
    seen = [found for at, sample in enumerate(samples) for found in look(sample, criterion, at)]
    known = sorted([one for one in seen if one.place in given], key=lambda one: str(one.place))
    rest = sorted([one for one in seen if one.place not in given], key=lambda one: one.value)
    free = [ToLabel(one.place.trace_id, one.place.step) for one in rest if one.place.trace_id is not None]
    return LabelPairing(
        criterion=criterion,
        unit="step" if by_step else "report",
        labels=tuple([_decide_majority(given[one.place]) for one in known]),
        said=tuple([one.value for one in known]),
        groups=tuple([one.group for one in known]),
        elsewhere=tuple([one.value for one in rest]),
        groups_elsewhere=tuple([one.group for one in rest]),
        unmatched=len(given) - len(known),
        naive=sum(one.passed for one in seen) / len(seen) if seen else None,
        label_next=tuple(sorted(free, key=_hash_item)[:NEXT]),
    )


def _iter_calls(sample: Sample, criterion: str, at: int) -> Iterator[_ReportedItem]:
    """The calls of a report that were measured: a group, if it is not a part of one."""
    report, group = sample.report, f"report {at}" if sample.group is None else f"group {sample.group}"
    for step in report.steps:
        outcome = step.outcomes.get(criterion)
        if isinstance(outcome, Scored):
            yield _ReportedItem(LabelPlace(report.trace_id, step.index), outcome.value, outcome.passed, group)


def _iter_reports(sample: Sample, criterion: str, _: int) -> Iterator[_ReportedItem]:
    """The report, if it was measured and decided. Of several outcomes the lowest value stands for it, and all must pass."""
    report = sample.report
    found = [each for one in report.criteria if one.id == criterion for each in list_outcomes(one, report)]
    scored = [outcome for outcome in found if isinstance(outcome, Scored)]
    decided = not any(map(is_open, found)) or any(not outcome.passed for outcome in scored)
    if scored and decided:
        value, passed = min(one.value for one in scored), all(one.passed for one in scored)
        yield _ReportedItem(LabelPlace(report.trace_id, None), value, passed, sample.group)


def _decide_majority(labels: Sequence[bool]) -> bool:
    passing = sum(labels)
    return labels[0] if 2 * passing == len(labels) else 2 * passing > len(labels)


def _hash_item(item: ToLabel) -> str:
    return sha256(f"label\0{item.trace_id}\0{item.step}".encode()).hexdigest()
