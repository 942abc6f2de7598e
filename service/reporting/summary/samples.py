"""One report as a summary sees it: numbers by name, and which calls were right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from types import MappingProxyType
from typing import NamedTuple

from service.core.outcome import Errored, Outcome, Scored, Skipped
from service.core.report import CriterionScore, Report
from service.core.rubric import STAGES, Stage
from service.core.scores import Range

PASSING = ("pass", "warn")
"""Verdicts that pass. `abstain` does not: silence is never a pass."""

HALF = 0.5
"""From where on a metric without a verdict of its own counts as passed, as in Future AGI's `fi run`."""

STAGE, CRITERION = "stage.", "criterion."

JUDGED = frozenset({"plausible", "argument_plausibility"})
"""Criteria of the stage `arguments` that are a judge's, and so no part of argument_validation."""

ALIASES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "argument_plausibility": ("argument_plausibility", "plausible"),
        "result_groundedness": ("result_groundedness", "grounded"),
    }
)
"""Metrics that are a criterion under another name: the first of these that the report has."""

DERIVED: Mapping[str, tuple[Stage | None, str]] = MappingProxyType(
    {
        "score": (None, "the score of the case"),
        "coverage": (None, "the share of the weight that could be measured"),
        "call_or_no_call_precision": ("decide", "the share of the case's decisions, call or no call, that were right"),
        "tool_name_f1": (
            "select",
            "F1 of the tool names called against those expected; 1 for none expected, none made",
        ),
        "argument_validation": (
            "arguments",
            "the weighted mean of the criteria of the stage arguments that code decides",
        ),
        "argument_plausibility": ("arguments", "the criterion plausible"),
        "result_groundedness": ("integrate", "the criterion grounded"),
    }
)
"""Metrics of a case beside its stages and criteria: the step of the contract each is about, and what it is."""


class Naming(NamedTuple):
    """The tool that was due and the one that was called: None where none was due, or none was called."""

    expected: str | None
    called: str | None


class MetricReading(NamedTuple):
    """A metric of a case, each number in [0, 1]."""

    value: float | None
    """The estimate over what was measured; None: nothing was."""
    span: Range | None
    """The estimate with what is open at worst and at best; None: nothing was measured and nothing is open."""
    decided: Range | None
    """The same with 1 for what a judge passed and 0 for what it did not."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A report with its metrics.

    `values` are those measured; `unmeasured` apply and nothing of them was measured. `spans` and `decided` are between which
    ends they lie, the latter with 1 for what a judge passed and 0 for what it did not.
    """

    report: Report
    values: Mapping[str, float]
    unmeasured: frozenset[str]
    spans: Mapping[str, Range]
    decided: Mapping[str, Range]
    namings: tuple[Naming, ...] | None
    """None where the expectation names no tools."""

    @property
    def group(self) -> str | None:
        """Cases of one group are not independent: resampled together."""
        return self.report.tags.get("group")

    @property
    def verdict_counts(self) -> bool:
        """Whether anything applied."""
        return self.report.verdict != "not_applicable"

    @property
    def passed(self) -> bool:
        """Whether the verdict is a pass."""
        return self.report.verdict in PASSING

    def applies(self, metric: str) -> bool:
        """Whether the metric says something of this case, measured or not."""
        return metric in self.values or metric in self.unmeasured

    @property
    def calls_are_known(self) -> bool:
        """Whether every call could be read."""
        return not any(one.cause == "unread" and one.stage in ("decide", "select") for one in self.report.open)

    @property
    def undecided(self) -> bool:
        """Whether the verdict is none."""
        return self.report.verdict == "abstain"

    def passes(self, metric: str) -> bool | None:
        """Whether the case passes; None where that is open, or where nothing of it was measured.

        A stage by its verdict, a criterion where nothing of it failed or was blocked, any other metric from 0.5 on.
        """
        name = metric.partition(".")[2]
        if metric == "score":
            return None if self.undecided else self.passed
        if metric.startswith(STAGE):
            verdicts = [stage.verdict for stage in self.report.stages if stage.stage == name]
            return None if "abstain" in verdicts else any(verdict in PASSING for verdict in verdicts)
        if metric.startswith(CRITERION) and (name in self.report.failing or _was_blocked(name, self.report)):
            return False
        if metric.startswith(CRITERION) and any(one.criterion == name for one in self.report.open):
            return None
        low, high = self.decided.get(metric, (0.0, 1.0))
        if metric.startswith(CRITERION):
            return True if metric in self.values else None
        return low >= HALF if (low >= HALF) == (high >= HALF) else None

    def is_left_out(self, metric: str) -> bool:
        """Whether the metric applies, nothing of it was measured and no answer could change that."""
        return metric in self.unmeasured and metric not in self.spans

    def find_break(self, metric: str | None = None) -> Stage | None:
        """The first stage that failed; where none did, the stage that the metric is about."""
        return self.report.first_failing_stage or (None if metric is None else self._find_stage(metric))

    def _find_stage(self, metric: str) -> Stage | None:
        name = metric.partition(".")[2]
        if metric.startswith(STAGE):
            return next((stage for stage in STAGES if stage == name), None)
        if metric.startswith(CRITERION):
            return next((c.stage for c in self.report.criteria if c.id == name), None)
        return DERIVED[metric][0]


def read_sample(report: Report) -> Sample:
    """The metrics of one report."""
    namings = list_namings(report)
    read = dict(_iter_readings(report, namings))
    return Sample(
        report=report,
        values=MappingProxyType({name: one.value for name, one in read.items() if one.value is not None}),
        unmeasured=frozenset(name for name, one in read.items() if one.value is None),
        spans=MappingProxyType({name: one.span for name, one in read.items() if one.span is not None}),
        decided=MappingProxyType({name: one.decided for name, one in read.items() if one.decided is not None}),
        namings=namings,
    )


def list_namings(report: Report) -> tuple[Naming, ...] | None:
    """Each expected call with the tool called for it, then calls too many. None where nothing says which are right."""
    pairs = [Naming(step.expected_tool, step.tool) for step in report.steps if step.expected_tool is not None]
    missing = [Naming(call.tool, None) for call in report.missing]
    extra = [Naming(None, step.tool) for step in report.steps if step.unexpected]
    if not (pairs or missing or extra) and all(one.expected == "call" for one in report.decisions):
        return None
    return (*pairs, *missing, *extra)


def count_tools(namings: Iterable[Naming]) -> tuple[int, int, int]:
    """Right calls, calls made that count, calls expected."""
    all_of = tuple(namings)
    right = sum(one.expected == one.called for one in all_of)
    return right, sum(one.called is not None for one in all_of), sum(one.expected is not None for one in all_of)


NamedReading = tuple[str, MetricReading]
"""A metric's name and what a case has of it."""

UNKNOWN = MetricReading(None, (0.0, 1.0), (0.0, 1.0))


def _build_exact(value: float) -> MetricReading:
    return MetricReading(value, (value, value), (value, value))


def _build_reading(value: float | None, span: Range | None, decided: Range | None) -> MetricReading:
    """Reports of engines before 3 tell no ranges: what they measured is all that they know."""
    if span is None and value is not None:
        return _build_exact(value)
    return MetricReading(value, span, decided)


def _iter_readings(report: Report, namings: tuple[Naming, ...] | None) -> Iterator[NamedReading]:
    criteria = {one.id: one for one in report.criteria if _applies(one, report)}
    if report.coverage is not None:
        yield "score", _build_reading(report.score, report.score_range, report.decided_range)
        yield "coverage", _build_exact(report.coverage)
    for stage in report.stages:
        if stage.coverage is not None:
            yield STAGE + stage.stage, _build_reading(stage.score, stage.score_range, stage.decided_range)
    for one in criteria.values():
        yield CRITERION + one.id, _read_criterion(one)
    unread = any(one.cause == "unread" and one.stage in ("decide", "select") for one in report.open)
    if report.decisions:
        right = sum(d.right for d in report.decisions) / len(report.decisions)
        yield "call_or_no_call_precision", UNKNOWN if unread else _build_exact(right)
    if namings is not None:
        right, made, due = count_tools(namings)
        yield "tool_name_f1", UNKNOWN if unread else _build_exact(2 * right / (made + due) if made + due else 1.0)
    yield from _read_validation(criteria.values())
    for name, ids in ALIASES.items():
        yield from [(name, _read_criterion(criteria[i])) for i in ids if i in criteria][:1]


def _read_criterion(criterion: CriterionScore) -> MetricReading:
    return _build_reading(criterion.value, criterion.score_range, criterion.decided_range)


def _read_validation(criteria: Iterable[CriterionScore]) -> Iterator[NamedReading]:
    own = [(one.weight, _read_criterion(one)) for one in criteria if one.stage == "arguments" and one.id not in JUDGED]
    if own:
        yield (
            "argument_validation",
            MetricReading(
                _average([(weight, one.value) for weight, one in own]),
                _average_ends([(weight, one.span) for weight, one in own]),
                _average_ends([(weight, one.decided) for weight, one in own]),
            ),
        )


def _average_ends(spans: Sequence[tuple[float, Range | None]]) -> Range | None:
    low = _average([(weight, span and span[0]) for weight, span in spans])
    high = _average([(weight, span and span[1]) for weight, span in spans])
    return None if low is None or high is None else (low, high)


def _average(values: Iterable[tuple[float, float | None]]) -> float | None:
    known = [(weight, value) for weight, value in values if value is not None]
    whole = fsum(weight for weight, _ in known)
    return min(1.0, fsum(weight * value for weight, value in known) / whole) if whole else None


def _applies(criterion: CriterionScore, report: Report) -> bool:
    if criterion.value is not None or criterion.score_range is not None:
        return True
    return any(map(_is_unknown, list_outcomes(criterion, report)))


def list_outcomes(criterion: CriterionScore, report: Report) -> list[Outcome]:
    """All outcomes of a criterion: of the trace, turns and missing calls, then of the steps."""
    of_steps = [step.outcomes[criterion.id] for step in report.steps if criterion.id in step.outcomes]
    return [*(one.outcome for one in criterion.outcomes), *of_steps]


def _is_unknown(outcome: Outcome) -> bool:
    """Whether it applies and could not be told."""
    if isinstance(outcome, Scored):
        return False
    return isinstance(outcome, Errored) or outcome.cause not in ("not_applicable", "blocked")


def _was_blocked(criterion: str, report: Report) -> bool:
    outcomes = (o for one in report.criteria if one.id == criterion for o in list_outcomes(one, report))
    return any(isinstance(outcome, Skipped) and outcome.cause == "blocked" for outcome in outcomes)
