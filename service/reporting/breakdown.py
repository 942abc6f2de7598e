"""A run in short, from counts alone: its pass rate and each stage. The summary of its reports takes these figures from here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from service.core.rubric import STAGES, Stage
from service.reporting.breaks import ABSENT, FAILED, LETTERS, OPEN, PASSED
from service.stats.intervals import choose_interval, wilson
from service.stats.rates import NO_ESTIMATE, CaseBounds, Estimate, estimate_with_bounds


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
