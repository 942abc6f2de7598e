"""One report in short, for lists and counts of many: its verdict, where it failed first, how each stage did, what is open."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from service.core.outcome import Errored, Outcome, Scored
from service.core.report import Report
from service.core.rubric import STAGES, Stage
from service.core.scores import Verdict
from service.reporting.statements import list_statements, read_score

PASSED, FAILED, OPEN, ABSENT = "p", "f", "a", "-"
"""How a trace or a stage did, as summaries count it: a warning passes, an undecided verdict is open."""

LETTERS = {"pass": PASSED, "warn": PASSED, "fail": FAILED, "undecided": OPEN, "error": OPEN}
"""The letter of each verdict; `error` stands for what could not be scored. A verdict without one does not count."""


class ReportBreak(NamedTuple):
    """One report in short. `stage`, `finding` and `tool` are empty where no stage failed; `tool` also where no call did."""

    verdict: Verdict
    stage: Stage | str
    """The first stage that failed."""
    finding: str
    """The code of its first finding, or the criterion where it has none."""
    tool: str
    """The tool of the call at which it failed, or of the missing call."""
    stages: str
    """A letter for each of STAGES, in order."""
    score: float | None
    """The score as views show it: None where too little was checked."""


def describe_break(report: Report) -> ReportBreak:
    """Describe the report in short. Pure; one pass over its outcomes."""
    stage = report.first_failing_stage or ""
    broken = next((one for one in list_statements(report) if one.stage == stage), None) if stage else None
    findings = broken.outcome.findings if broken and not isinstance(broken.outcome, Errored) else ()
    return ReportBreak(
        report.verdict,
        stage,
        findings[0].code if findings else broken.criterion if broken else "",
        broken.tool if broken else "",
        describe_stages(report),
        read_score(report),
    )


def describe_stages(report: Report) -> str:
    """Write a letter for each of STAGES; a stage that does not apply, or about which nothing is known, is absent."""
    found = {
        one.stage: LETTERS[one.verdict]
        for one in report.stages
        if one.coverage is not None and (one.score_range if report.is_measured else one.full_range) is not None
    }
    return "".join([found.get(stage, ABSENT) for stage in STAGES])


# Counts, for metrics.


@dataclass(frozen=True, slots=True)
class ReportCounts:
    """What is counted about a report."""

    rubric: str
    """The digest of its rubric."""
    verdict: str
    unscored: Counter[tuple[str, str]]
    """Outcomes that apply and have no score, by kind and cause."""
    cache_hits: int = 0
    asked: int = 0
    """Replies that were not in the cache."""


def count_report(report: Report) -> ReportCounts:
    """Count a report."""
    outcomes: list[Outcome] = [one.outcome for criterion in report.criteria for one in criterion.outcomes]
    outcomes += [outcome for step in report.steps for outcome in step.outcomes.values()]
    unscored = [(o.kind, o.cause) for o in outcomes if not isinstance(o, Scored) and o.cause != "not_applicable"]
    source = report.provenance
    asked = source.replies - source.cache_hits
    return ReportCounts(report.rubric.hash, report.verdict, Counter(unscored), source.cache_hits, asked)
