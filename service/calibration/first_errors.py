"""Runs of several steps: whether a judge names the first wrong one, as people do.

FirstErrAcc of AgentProcessBench: the share of runs whose first wrong step is named, or none where there is none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from service.stats.rates import RatePart


class JudgedStep(NamedTuple):
    """A step of a run: where it stands, and whether judge and labels pass it."""

    run: str
    position: int
    group: str
    passed: bool
    label: bool


def count_named(steps: Iterable[JudgedStep]) -> dict[str, RatePart]:
    """For each run whether judge and labels name the same first wrong step, or none both, with its group."""
    runs: dict[str, list[JudgedStep]] = defaultdict(list)
    for step in steps:
        runs[step.run].append(step)
    return {name: RatePart(found[0].group, float(_names_same(found))) for name, found in sorted(runs.items())}


def _names_same(steps: Sequence[JudgedStep]) -> bool:
    """>>> steps = [JudgedStep("r", 1, "g", True, True), JudgedStep("r", 3, "g", False, False)]
    >>> _names_same(steps), _names_same([steps[0]._replace(passed=False), steps[1]])
    (True, False)
    """  # noqa: D205 (a doctest says it)
    ordered = sorted(steps, key=lambda step: step.position)
    said = next((step.position for step in ordered if not step.passed), None)
    return said == next((step.position for step in ordered if not step.label), None)
