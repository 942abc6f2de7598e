"""One report as a summary sees it: numbers by name, and which calls were right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import fsum
from types import MappingProxyType
from typing import NamedTuple

from service.core.outcome import Errored, Outcome, Scored, Skipped
from service.core.report import CriterionScore, Report
from service.core.rubric import STAGES, Stage

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


@dataclass(frozen=True, slots=True)
class Sample:
    """A report with its metrics. `values` are those measured; `unmeasured` apply and could not be told."""

    report: Report
    values: Mapping[str, float]
    unmeasured: frozenset[str]
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

    def passes(self, metric: str) -> bool:
        """A stage by its verdict, a criterion where nothing of it failed or was blocked, any other metric from 0.5 on."""
        if metric not in self.values:
            return False
        name = metric.partition(".")[2]
        if metric.startswith(STAGE):
            return any(stage.stage == name and stage.verdict in PASSING for stage in self.report.stages)
        if metric.startswith(CRITERION):
            return name not in self.report.failing and not _was_blocked(name, self.report)
        return self.passed if metric == "score" else self.values[metric] >= HALF

    def broke_at(self, metric: str | None = None) -> Stage | None:
        """The first stage that failed; where none did, the stage that the metric is about."""
        return self.report.first_failing_stage or (None if metric is None else self._stage_of(metric))

    def _stage_of(self, metric: str) -> Stage | None:
        name = metric.partition(".")[2]
        if metric.startswith(STAGE):
            return next((stage for stage in STAGES if stage == name), None)
        if metric.startswith(CRITERION):
            return next((c.stage for c in self.report.criteria if c.id == name), None)
        return DERIVED[metric][0]


def sample_of(report: Report) -> Sample:
    """The metrics of one report."""
    namings = named(report)
    read = dict(_readings(report, namings))
    return Sample(
        report=report,
        values=MappingProxyType({name: value for name, value in read.items() if value is not None}),
        unmeasured=frozenset(name for name, value in read.items() if value is None),
        namings=namings,
    )


def named(report: Report) -> tuple[Naming, ...] | None:
    """Each expected call with the tool called for it, then calls too many. None where nothing says which are right."""
    pairs = [Naming(step.expected_tool, step.tool) for step in report.steps if step.expected_tool is not None]
    missing = [Naming(call.tool, None) for call in report.missing]
    extra = [Naming(None, step.tool) for step in report.steps if step.unexpected]
    if not (pairs or missing or extra) and all(one.expected == "call" for one in report.decisions):
        return None
    return (*pairs, *missing, *extra)


def tool_counts(namings: Iterable[Naming]) -> tuple[int, int, int]:
    """Right calls, calls made that count, calls expected."""
    all_of = tuple(namings)
    right = sum(one.expected == one.called for one in all_of)
    return right, sum(one.called is not None for one in all_of), sum(one.expected is not None for one in all_of)


Reading = tuple[str, float | None]
"""A metric with its value; None: it applies and could not be told."""


def _readings(report: Report, namings: tuple[Naming, ...] | None) -> Iterator[Reading]:
    criteria = {one.id: one for one in report.criteria if _applies(one, report)}
    if report.coverage is not None:
        yield "score", report.score
        yield "coverage", report.coverage
    for stage in report.stages:
        if stage.coverage is not None:
            yield STAGE + stage.stage, stage.score
    for one in criteria.values():
        yield CRITERION + one.id, one.value
    if report.decisions:
        yield "call_or_no_call_precision", sum(d.right for d in report.decisions) / len(report.decisions)
    if namings is not None:
        right, made, due = tool_counts(namings)
        yield "tool_name_f1", 2 * right / (made + due) if made + due else 1.0
    yield from _validation(criteria.values())
    for name, ids in ALIASES.items():
        yield from [(name, criteria[i].value) for i in ids if i in criteria][:1]


def _validation(criteria: Iterable[CriterionScore]) -> Iterator[Reading]:
    own = [one for one in criteria if one.stage == "arguments" and one.id not in JUDGED]
    if not own:
        return
    measured = [(one.weight, one.value) for one in own if one.value is not None]
    whole = fsum(weight for weight, _ in measured)
    value = min(1.0, fsum(weight * value for weight, value in measured) / whole) if whole else None
    yield "argument_validation", value


def _applies(criterion: CriterionScore, report: Report) -> bool:
    return criterion.value is not None or any(map(_unknown, outcomes_of(criterion, report)))


def outcomes_of(criterion: CriterionScore, report: Report) -> list[Outcome]:
    """All outcomes of a criterion: of the trace, turns and missing calls, then of the steps."""
    of_steps = [step.outcomes[criterion.id] for step in report.steps if criterion.id in step.outcomes]
    return [*(one.outcome for one in criterion.outcomes), *of_steps]


def _unknown(outcome: Outcome) -> bool:
    """Whether it applies and could not be told."""
    if isinstance(outcome, Scored):
        return False
    return isinstance(outcome, Errored) or outcome.cause not in ("not_applicable", "blocked")


def _was_blocked(criterion: str, report: Report) -> bool:
    outcomes = (o for one in report.criteria if one.id == criterion for o in outcomes_of(one, report))
    return any(isinstance(outcome, Skipped) and outcome.cause == "blocked" for outcome in outcomes)
