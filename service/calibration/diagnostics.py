"""Warning signs about a judge: verdicts that flip when it is asked again, and first wrong steps of runs that it does not name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

from service.calibration.figures import Measure
from service.stats.intervals import bootstrap
from service.stats.rates import RatePart


@dataclass(frozen=True, slots=True)
class Retest:
    """Items that were asked more than once: how often two answers to the same question differ."""

    items: int
    samples: int
    """The most answers that any item has."""
    flip_rate: Measure
    """The noise floor: the mean share of pairs of answers to an item whose verdicts differ. Its interval draws whole groups."""
    spread: float
    """The mean distance between the highest and the lowest value of an item."""


def measure_retest(
    asked: Iterable[tuple[str, tuple[float, ...]]], threshold: float, *, interval: bool = True
) -> Retest | None:
    """Measure items with two or more answers; None where there are none. Values from `threshold` upwards pass.

    `asked`: the group of each item, and the value of each answer.

    Labels play no part, so items that were fitted count as well.
    """
    repeated = [(group, values) for group, values in asked if len(values) > 1]
    if not repeated:
        return None
    flips = [RatePart(group, _count_flips([value >= threshold for value in values])) for group, values in repeated]
    rate = fsum(part.hits for part in flips) / len(flips)
    return Retest(
        items=len(repeated),
        samples=max(len(values) for _, values in repeated),
        flip_rate=Measure(rate, *bootstrap(flips)) if interval else Measure(rate),
        spread=fsum(max(values) - min(values) for _, values in repeated) / len(repeated),
    )


def _count_flips(passed: Sequence[bool]) -> float:
    """Return the share of pairs of answers whose verdicts differ.

    >>> _count_flips([True, True, False]), _count_flips([True, False])
    (0.6666666666666666, 1.0)
    """
    n, yes = len(passed), sum(passed)
    return 2 * yes * (n - yes) / (n * (n - 1))


class JudgedStep(NamedTuple):
    """A step of a run: its position, and whether judge and label pass it."""

    run: str
    position: int
    group: str
    passed: bool
    label: bool


def score_first_errors(steps: Iterable[JudgedStep]) -> list[tuple[str, bool]]:
    """For each run, return its group, and whether judge and labels name the same first wrong step, or both name none.

    FirstErrAcc of AgentProcessBench.
    """
    runs: dict[str, list[JudgedStep]] = defaultdict(list)
    for step in sorted(steps):
        runs[step.run].append(step)
    return [
        (
            run[0].group,
            next((one.position for one in run if not one.passed), None)
            == next((one.position for one in run if not one.label), None),
        )
        for run in runs.values()
    ]
