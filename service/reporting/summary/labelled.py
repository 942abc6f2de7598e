"""The pass rates of criteria, corrected by what humans said about some of their items."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from service.core.models.kinds import FrozenModel
from service.core.outcome import Scored, is_open
from service.errors import InputError
from service.reporting.summary.samples import Sample, list_outcomes
from service.stats.rates import InferredRate

MAX_LABEL_NEXT = 20
"""How many items to label next are named."""

_VERDICTS = {"pass": True, "fail": False}


class ReportLabel(FrozenModel):
    """A human's label of one report under one criterion. Of several for the same item the majority counts, on a tie the first."""

    trace_id: str = Field(min_length=1)
    criterion: str = Field(min_length=1)
    step: Annotated[int, Field(ge=0)] | None = None
    """The position of the call that it is about. Absent: the criterion as a whole."""
    label: Annotated[bool, BeforeValidator(lambda given: _VERDICTS.get(given, given) if type(given) is str else given)]
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
    humans: InferredRate | None
    """From the labels alone; null for fewer than two labels, or where all are of one group."""
    corrected: InferredRate | None
    """From both (PPI++); null for fewer than two labels, for no unlabelled item, or where either is all of one group."""
    label_next: tuple[ToLabel, ...]
    """Items to label next, drawn at random: labels chosen in any other way would bias the rate."""


class _Item(NamedTuple):
    place: LabelPlace
    value: float
    passed: bool
    group: str | None
    """Items of one group are not independent. None: a group of its own."""


def correct_rates(samples: Sequence[Sample], labels: Iterable[ReportLabel]) -> tuple[CorrectedRate, ...]:
    """Correct the rates of each criterion with labels. Neither the order of reports nor that of other criteria matters.

    Labelled items must be drawn at random from those that were measured. InputError where two reports have the trace that a
    label names.
    """
    places: dict[tuple[str, bool], dict[LabelPlace, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for one in labels:
        places[one.criterion, one.step is not None][LabelPlace(one.trace_id, one.step)].append(one.label)
    counts = Counter(sample.report.trace_id for sample in samples)
    for name in sorted({place.trace_id or "" for found in places.values() for place in found}):
        if counts[name] > 1:
            message = f"{counts[name]} reports are of the trace {name!r}, so it is unclear which one was labelled"
            raise InputError.at("/labels", message)
    return tuple([_correct(samples, *key, found) for key, found in sorted(places.items())])


def _correct(
    samples: Sequence[Sample],
    criterion: str,
    by_step: bool,  # noqa: FBT001
    labels: Mapping[LabelPlace, Sequence[bool]],
) -> CorrectedRate:
    from service.stats.corrected import infer_from_labels, ppi  # noqa: PLC0415 (numpy, which few summaries need)

    iter_items = _iter_calls if by_step else _iter_reports
    items = [item for at, sample in enumerate(samples) for item in iter_items(sample, criterion, at)]
    labelled = sorted([one for one in items if one.place in labels], key=lambda one: str(one.place))
    rest = sorted([one for one in items if one.place not in labels], key=lambda one: one.value)
    given = [labels[one.place] for one in labelled]
    said = [
        one[0] if 2 * sum(one) == len(one) else 2 * sum(one) > len(one) for one in given
    ]  # the majority, else the first
    groups, other_groups = [one.group for one in labelled], [one.group for one in rest]
    judged, unlabelled = [one.value for one in labelled], [one.value for one in rest]
    candidates = [ToLabel(one.place.trace_id, one.place.step) for one in rest if one.place.trace_id is not None]
    candidates.sort(key=lambda item: sha256(f"label\0{item.trace_id}\0{item.step}".encode()).hexdigest())
    return CorrectedRate(
        criterion=criterion,
        unit="step" if by_step else "report",
        labelled=len(labelled),
        unlabelled=len(rest),
        unmatched=len(labels) - len(labelled),
        naive=sum(one.passed for one in items) / len(items) if items else None,
        humans=infer_from_labels(said, groups),
        corrected=ppi(said, judged, unlabelled, (groups, other_groups)),
        label_next=tuple(candidates[:MAX_LABEL_NEXT]),
    )


def _iter_calls(sample: Sample, criterion: str, at: int) -> Iterator[_Item]:
    """Yield the measured calls of a report; together they form a group, unless the report belongs to one."""
    report, group = sample.report, f"report {at}" if sample.group is None else f"group {sample.group}"
    for step in report.steps:
        outcome = step.outcomes.get(criterion)
        if isinstance(outcome, Scored):
            yield _Item(LabelPlace(report.trace_id, step.index), outcome.value, outcome.passed, group)


def _iter_reports(sample: Sample, criterion: str, _: int) -> Iterator[_Item]:
    """Yield the report if it was measured and decided. Its value is the lowest of its outcomes, and all of them must pass."""
    report = sample.report
    outcomes = [each for one in report.criteria if one.id == criterion for each in list_outcomes(one, report)]
    scored = [outcome for outcome in outcomes if isinstance(outcome, Scored)]
    decided = not any(map(is_open, outcomes)) or any(not outcome.passed for outcome in scored)
    if scored and decided:
        value, passed = min(one.value for one in scored), all(one.passed for one in scored)
        yield _Item(LabelPlace(report.trace_id, None), value, passed, sample.group)
