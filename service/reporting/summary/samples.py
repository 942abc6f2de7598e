"""One report as a summary sees it: metrics by name, and which calls were right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import fsum
from types import MappingProxyType
from typing import NamedTuple

from service.core.outcome import Outcome, Skipped
from service.core.report import ENGINE, CriterionScore, OpenOutcome, Provenance, Report, RubricRef, StageScore
from service.core.rubric import STAGES, Stage
from service.core.scores import Range
from service.reporting.statements import PASSING

PASS_THRESHOLD = 0.5
"""The value from which a metric without a verdict of its own passes, as in Future AGI's `fi run`."""

STAGE, CRITERION = "stage.", "criterion."

JUDGED = "argument_plausibility"
"""The judged criterion of the stage `arguments`, which therefore does not count in argument_validation."""

DERIVED: Mapping[str, Stage | None] = MappingProxyType(
    {
        "score": None,
        "coverage": None,
        "call_or_no_call_precision": "decide",  # the share of the case's decisions, call or no call, that were right
        "tool_name_f1": "select",  # of the tools called against those expected; 1 for none expected, none made
        "argument_validation": "arguments",  # the weighted mean of the criteria of this stage that code decides
    }
)
"""Metrics of a case besides its stages and criteria, and the stage that each is about."""


class ToolPair(NamedTuple):
    """The tool that was due and the one that was called: None where none was due, or none was called."""

    expected: str | None
    called: str | None


class MetricReading(NamedTuple):
    """A metric of a case, each number in [0, 1]."""

    value: float | None
    """Over what was measured; None: nothing was, or too little for a number."""
    bounds: Range | None
    """The number with what is open at worst and at best; None: nothing was measured and nothing is open."""


UNKNOWN = MetricReading(None, (0.0, 1.0))


@dataclass(frozen=True, slots=True)
class Sample:
    """A report with its metrics."""

    report: Report
    readings: Mapping[str, MetricReading]
    tool_pairs: tuple[ToolPair, ...] | None
    """None where the expectation names no tools."""
    otherwise: MetricReading | None = None
    """The reading of every other metric."""

    def read(self, metric: str) -> MetricReading | None:
        """Read a metric; None where it does not apply."""
        return self.readings.get(metric, self.otherwise)

    @property
    def group(self) -> str | None:
        """The group; cases of one group are not independent and are resampled together."""
        return self.report.tags.get("group")

    @property
    def is_lost(self) -> bool:
        """Whether it stands for a case without a report."""
        return self.otherwise is not None

    @property
    def is_applicable(self) -> bool:
        """Whether anything applied."""
        return self.report.verdict != "not_applicable"

    @property
    def passed(self) -> bool:
        """Whether the verdict is a pass."""
        return self.report.verdict in PASSING

    @property
    def undecided(self) -> bool:
        """Whether there is no verdict."""
        return self.report.verdict == "undecided"

    @property
    def calls_are_known(self) -> bool:
        """Whether every call could be read."""
        return not any(one.cause == "unread" and one.stage in ("decide", "select") for one in self.report.open)

    def passes(self, metric: str) -> bool | None:
        """Whether the case passes; None where that is open, or where nothing of it was measured.

        A stage passes by its verdict, a criterion where nothing of it failed or was blocked, any other metric from 0.5 on.
        """
        kind, _, name = metric.partition(".")
        reading = self.read(metric) or UNKNOWN
        if metric == "score":
            return None if self.undecided else self.passed
        if kind == "stage":
            verdicts = [stage.verdict for stage in self.report.stages if stage.stage == name]
            return None if "undecided" in verdicts else any(verdict in PASSING for verdict in verdicts)
        if kind == "criterion":
            outcomes = [o for one in self.report.criteria if one.id == name for o in list_outcomes(one, self.report)]
            blocked = any(isinstance(outcome, Skipped) and outcome.cause == "blocked" for outcome in outcomes)
            if name in self.report.failing or blocked:
                return False
            is_open = reading.value is None or any(one.criterion == name for one in self.report.open)
            return None if is_open else True
        low, high = reading.bounds or (0.0, 1.0)
        return low >= PASS_THRESHOLD if (low >= PASS_THRESHOLD) == (high >= PASS_THRESHOLD) else None

    def is_left_out(self, metric: str) -> bool:
        """Whether the metric applies, nothing of it was measured and no answer could change that."""
        return self.read(metric) == MetricReading(None, None)


_NO_REPORT = Report(
    trace_id="(no report)",
    rubric=RubricRef("", 0, "", 0.0),
    verdict="undecided",
    score=None,
    coverage=0.0,
    all_passed=False,
    first_failing_stage=None,
    failing=(),
    open=(OpenOutcome("", "decide", None, None, None, "skipped", "unread", "", decides=True),),
    stages=tuple([StageScore(one, "undecided", None, 0.0) for one in STAGES]),
    criteria=(),
    steps=(),
    missing=(),
    decisions=(),
    offered=None,
    not_asked=(),
    tags={},
    provenance=Provenance(ENGINE, "none", None, False, 0, 0, 0, None, None, None, calibrators="uncalibrated"),
)
NO_REPORT = Sample(_NO_REPORT, {}, None, otherwise=UNKNOWN)
"""Stands for a case without a report in gates: one that is not finished or could not be scored may pass and may fail."""


def read_sample(report: Report) -> Sample:
    """Read the metrics of one report."""
    tool_pairs = _list_tool_pairs(report)
    return Sample(report, MappingProxyType(dict(_iter_readings(report, tool_pairs))), tool_pairs)


def _list_tool_pairs(report: Report) -> tuple[ToolPair, ...] | None:
    """List each expected call with the tool called for it, then superfluous calls. None where nothing says which are right."""
    pairs = [ToolPair(step.expected_tool, step.tool) for step in report.steps if step.expected_tool is not None]
    missing = [ToolPair(call.tool, None) for call in report.missing]
    extra = [ToolPair(None, step.tool) for step in report.steps if step.unexpected]
    if not (pairs or missing or extra) and all(one.expected == "call" for one in report.decisions):
        return None
    return (*pairs, *missing, *extra)


def _build_exact(value: float) -> MetricReading:
    return MetricReading(value, (value, value))


def _read_part(report: Report, part: Report | StageScore | CriterionScore, value: float | None) -> MetricReading:
    """Read a score; where less of the trace was measured than its rubric requires, what was left out counts as 0 and as 1."""
    if report.is_measured or part.coverage == 1:
        return MetricReading(value, part.score_range)
    return MetricReading(None, part.full_range)


def _iter_readings(report: Report, tool_pairs: tuple[ToolPair, ...] | None) -> Iterator[tuple[str, MetricReading]]:
    criteria = [(one, _read_part(report, one, one.value)) for one in report.criteria if one.coverage is not None]
    if report.coverage is not None:
        yield "score", _read_part(report, report, report.score)
        yield "coverage", _build_exact(report.coverage)
    for stage in report.stages:
        if stage.coverage is not None:
            yield STAGE + stage.stage, _read_part(report, stage, stage.score)
    for one, reading in criteria:
        yield CRITERION + one.id, reading
    unread = any(one.cause == "unread" and one.stage in ("decide", "select") for one in report.open)
    if report.decisions:
        right = sum(d.right for d in report.decisions) / len(report.decisions)
        yield "call_or_no_call_precision", UNKNOWN if unread else _build_exact(right)
    if tool_pairs is not None:
        right = sum(one.expected == one.called for one in tool_pairs)
        size = sum((one.expected is not None) + (one.called is not None) for one in tool_pairs)
        yield "tool_name_f1", UNKNOWN if unread else _build_exact(2 * right / size if size else 1.0)
    own = [(one.weight, reading) for one, reading in criteria if one.stage == "arguments" and one.id != JUDGED]
    if own:
        value = _average([(weight, reading.value) for weight, reading in own])
        low, high = (_average([(w, reading.bounds and reading.bounds[end]) for w, reading in own]) for end in (0, 1))
        yield "argument_validation", MetricReading(value, None if low is None or high is None else (low, high))


def _average(values: Iterable[tuple[float, float | None]]) -> float | None:
    known = [(weight, value) for weight, value in values if value is not None]
    whole = fsum(weight for weight, _ in known)
    return min(1.0, fsum(weight * value for weight, value in known) / whole) if whole else None


def list_outcomes(criterion: CriterionScore, report: Report) -> list[Outcome]:
    """List all outcomes of a criterion: of the trace, turns and missing calls, then of the steps."""
    of_steps = [step.outcomes[criterion.id] for step in report.steps if criterion.id in step.outcomes]
    return [*(one.outcome for one in criterion.outcomes), *of_steps]
