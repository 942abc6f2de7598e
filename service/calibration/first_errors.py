"""Runs of several steps: whether a judge names the same first wrong step as people do.

FirstErrAcc of AgentProcessBench: the share of runs in which judge and labels name the same first wrong step, or both name
none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from service.stats.rates import RatePart


class JudgedStep(NamedTuple):
    """A step of a run: its position, and whether judge and label pass it."""

    run: str
    position: int
    group: str
    passed: bool
    label: bool


def score_first_errors(steps: Iterable[JudgedStep]) -> dict[str, RatePart]:
    """For each run, score whether judge and labels name the same first wrong step, or both name none."""
    runs: dict[str, list[JudgedStep]] = defaultdict(list)
    for step in steps:
        runs[step.run].append(step)
    return {
        name: RatePart(run_steps[0].group, float(_names_same_step(run_steps)))
        for name, run_steps in sorted(runs.items())
    }


def _names_same_step(steps: Sequence[JudgedStep]) -> bool:
    """>>> steps = [JudgedStep("r", 1, "g", True, True), JudgedStep("r", 3, "g", False, False)]
    >>> _names_same_step(steps), _names_same_step([steps[0]._replace(passed=False), steps[1]])
    (True, False)
    """  # noqa: D205 (a doctest says it)
    ordered = sorted(steps, key=lambda step: step.position)
    judged = next((step.position for step in ordered if not step.passed), None)
    return judged == next((step.position for step in ordered if not step.label), None)
