"""Paired differences of two judges on the same items: an interval that keeps the two values of each item together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from service.calibration.figures import FigureRow, Measure, Resampling
from service.stats.resampling import compute_intervals
from service.stats.tallies import Floats, LabelTally, TallyRows

TallyFigure = Callable[[LabelTally], float | None]


def compute_differences(
    a: Sequence[FigureRow],
    b: Sequence[FigureRow],
    figures: Mapping[str, tuple[TallyFigure, TallyFigure]],
    resampling: Resampling,
) -> dict[str, Measure]:
    """Compute each figure of b minus that of a. The rows are of the same items in the same order; which order does not matter.

    `figures`: the functions that compute each figure for a and for b (the two may use different thresholds). Whole groups are
    drawn, the same ones for both sides. None where a figure is undefined on one side.
    """
    pairs = sorted(zip(a, b, strict=True))
    left, right = (TallyRows([pair[at].value for pair in pairs], [pair[at].label for pair in pairs]) for at in (0, 1))

    def statistics(weights: Floats) -> Mapping[str, float | None]:
        one, other = left.tally(weights), right.tally(weights)
        return {name: _subtract(of_b(other), of_a(one)) for name, (of_a, of_b) in figures.items()}

    values = statistics(np.ones(len(pairs)))
    if not resampling.draws:
        return {name: Measure(value) for name, value in values.items()}
    intervals = compute_intervals(
        statistics, [one.group for one, _ in pairs], count=resampling.draws, seed=resampling.seed
    )
    return {name: Measure(value, *(intervals[name] or (None, None))) for name, value in values.items()}


def _subtract(minuend: float | None, subtrahend: float | None) -> float | None:
    return None if minuend is None or subtrahend is None else minuend - subtrahend
