"""One report in short, for lists and counts of many traces: its verdict, where it broke first, and how each stage did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from service.core.outcome import Outcome, Scored, Skipped
from service.core.report import Report, StageScore
from service.core.rubric import STAGES, Stage
from service.core.scores import Verdict
from service.reporting.summary.samples import PASSING

PASSED, FAILED, OPEN, ABSENT = "p", "f", "a", "-"
"""How a stage did, as summaries count it: a warning passes, an undecided verdict is open."""


class ReportBreak(NamedTuple):
    """One report in short. `stage`, `finding` and `tool` are empty where nothing broke; `tool` also where no call did."""

    verdict: Verdict
    stage: Stage | str
    """The first stage that failed."""
    finding: str
    """The code of its first finding, or the criterion where it has none."""
    tool: str
    """The tool of the call at which it broke, or of the missing call."""
    stages: str
    """A letter for each of STAGES, in order."""
    score: float | None


class _FailedOutcome(NamedTuple):
    criterion: str
    tool: str
    outcome: Outcome


def describe_break(report: Report) -> ReportBreak:
    """Describe the report in short. Pure; one pass over its outcomes."""
    stage = report.first_failing_stage or ""
    broken = next(_list_failed(report, stage), None) if stage else None
    return ReportBreak(
        report.verdict,
        stage,
        _name_finding(broken) if broken else "",
        broken.tool if broken else "",
        describe_stages(report.stages),
        report.score,
    )


def describe_stages(stages: tuple[StageScore, ...]) -> str:
    """Write a letter for each of STAGES; a stage that does not apply, or about which nothing is known, is absent."""
    found = {one.stage: _describe_stage(one) for one in stages}
    return "".join([found.get(stage, ABSENT) for stage in STAGES])


def _describe_stage(stage: StageScore) -> str:
    if stage.coverage is None or (stage.score is None and stage.score_range is None):
        return ABSENT
    if stage.verdict == "undecided":
        return OPEN
    return PASSED if stage.verdict in PASSING else FAILED


def _list_failed(report: Report, stage: str) -> Iterator[_FailedOutcome]:
    """Yield the failed outcomes of a stage, those of steps first, in the order of the trace."""
    ids = [one.id for one in report.criteria if one.stage == stage]
    for step in report.steps:
        for name in ids:
            outcome = step.outcomes.get(name)
            if outcome is not None and _has_failed(outcome):
                yield _FailedOutcome(name, step.tool, outcome)
    missing = {one.expected: one.tool for one in report.missing}
    for criterion in report.criteria:
        if criterion.stage == stage:
            for one in criterion.outcomes:
                if _has_failed(one.outcome):
                    yield _FailedOutcome(criterion.id, missing.get(one.expected or "", ""), one.outcome)


def _has_failed(outcome: Outcome) -> bool:
    if isinstance(outcome, Scored):
        return not outcome.passed
    return isinstance(outcome, Skipped) and outcome.cause == "blocked"


def _name_finding(broken: _FailedOutcome) -> str:
    findings = broken.outcome.findings if isinstance(broken.outcome, Scored | Skipped) else ()
    return findings[0].code if findings else broken.criterion
