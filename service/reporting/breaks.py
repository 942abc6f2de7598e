"""In short: one report (its verdict, where it failed first, each stage, what is open), and a run from counts alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from service.core.outcome import Errored, Outcome, Scored
from service.core.report import Report
from service.core.rubric import STAGES, Stage
from service.core.scores import Verdict
from service.reporting.statements import list_statements, read_score
from service.stats.intervals import choose_interval, wilson
from service.stats.rates import NO_ESTIMATE, CaseBounds, Estimate, estimate_with_bounds

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


class OutcomeKind(NamedTuple):
    """The key that items are counted by: verdict, a letter for each stage, and group (empty for none)."""

    verdict: str
    stages: str
    cluster: str


@dataclass(frozen=True, slots=True)
class StageTally:
    """One stage over the reports that it applies to."""

    stage: Stage
    passed: int
    failed: int
    open: int
    rate: Estimate
    """The share that passed among the decided reports, and its bounds with the open ones included."""


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The outcomes of the items of a run so far."""

    items: int
    """How many items have an outcome."""
    unfinished: int
    """How many have none: they are not finished, or the run ended before them. In the pass rate they are open."""
    verdicts: dict[str, int]
    """How many items have each verdict; `error` counts those that could not be scored, which are open in the pass rate."""
    passed: Estimate
    stages: tuple[StageTally, ...]
    """The stages that apply to any report, in order."""


PassedPart = tuple[str, str, int]
"""A group, a letter, and how many reports of that group have it."""

_ENDS = {PASSED: (1.0, 1.0, 1.0), FAILED: (0.0, 0.0, 0.0), OPEN: (0.0, 1.0, None)}
"""What a report with this letter adds to the share that passed: at worst, at best, and measured."""


def build_breakdown(counts: Mapping[OutcomeKind, int], *, unfinished: int = 0) -> Breakdown:
    """Build the breakdown from counts by kind. Pure; its time does not grow with the number of items unless they name groups."""
    verdicts: Counter[str] = Counter()
    for kind, count in counts.items():
        verdicts[kind.verdict] += count
    whole = [(kind.cluster, LETTERS.get(kind.verdict, ABSENT), n) for kind, n in counts.items()]
    stages: list[StageTally] = []
    for place, stage in enumerate(STAGES):
        parts = [(kind.cluster, kind.stages[place], n) for kind, n in counts.items() if kind.stages]
        passed, failed, undecided = (_count(parts, letter) for letter in (PASSED, FAILED, OPEN))
        if passed or failed or undecided:
            stages.append(StageTally(stage, passed, failed, undecided, estimate_passed(parts)))
    return Breakdown(
        items=verdicts.total(),
        unfinished=unfinished,
        verdicts=dict(sorted(verdicts.items())),
        passed=estimate_passed([*whole, ("", OPEN, unfinished)]),
        stages=tuple(stages),
    )


def _count(parts: Iterable[PassedPart], letter: str) -> int:
    return sum(count for _, one, count in parts if one == letter)


def estimate_passed(parts: Iterable[PassedPart]) -> Estimate:
    """Estimate the share that passed among the decided reports, and its bounds with the open ones included."""
    kept = [part for part in parts if part[1] != ABSENT and part[2]]
    if any(group for group, _, _ in kept):
        cases = [CaseBounds(group or None, *_ENDS[letter]) for group, letter, count in kept for _ in range(count)]
        return estimate_with_bounds(cases, choose_interval)
    passed, failed, undecided = (_count(kept, letter) for letter in (PASSED, FAILED, OPEN))
    decided, whole = passed + failed, passed + failed + undecided
    if not whole:
        return NO_ESTIMATE
    worst, best = passed / whole, (passed + undecided) / whole
    if not decided:
        return Estimate(None, None, None, 0, worst, best, undecided)
    value, (low, high) = passed / decided, wilson(passed, decided)
    return Estimate(value, min(low, value), max(high, value), decided, worst, best, undecided)
