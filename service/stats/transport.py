"""Whether labels carry over: whether what they show about a judge also holds for another sample.

This is an audit, not a proof. It tests for a difference of means, with cluster-robust variances (Liang and Zeger 1986,
Biometrika 73:13-22) and the lower bound of Welch's degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, sqrt

import numpy as np

from service.stats.corrected import Groups, code_groups
from service.stats.intervals import CONFIDENCE, wilson
from service.stats.student import find_t_quantile
from service.stats.tallies import Floats

ROUNDING_ERROR = 1e-12


@dataclass(frozen=True, slots=True)
class MeanShift:
    """How much higher the mean of the second sample is, with its interval and the p-value of no difference."""

    value: float
    low: float
    high: float
    p_value: float


def compare_means(one: Sequence[float], other: Sequence[float], groups: tuple[Groups, Groups]) -> MeanShift | None:
    """Compare the mean of `other` with that of `one`; None where a sample has fewer than two groups, or nothing differs.

    Where neither sample varies but the means differ, the half-width is the upper end of Wilson's interval for 0 of the
    smaller number of groups, and the p-value is the chance of so clean a split. An item whose group is None is a group of its
    own. Groups that appear in both samples make the interval too wide, never too narrow.
    """
    from scipy.special import stdtr  # noqa: PLC0415 (few need it)  # pyright: ignore[reportMissingTypeStubs]

    moved: list[Floats] = []
    for values, names in zip((one, other), groups, strict=True):
        codes, column = code_groups(names), np.asarray(values, dtype=np.float64)
        if len(set(codes.tolist())) < 2:
            return None
        moved.append(np.bincount(codes, (column - column.mean()) / len(column)).astype(np.float64))
    counts = [len(part) for part in moved]
    fewest, shift = min(counts), float(np.mean(other) - np.mean(one))
    variance = sum(len(part) / (len(part) - 1) * float(part @ part) for part in moved)
    if variance > ROUNDING_ERROR**2:
        error = sqrt(variance)
        half = find_t_quantile(fewest - 1, (1 + CONFIDENCE) / 2) * error
        p_value = 2 * float(stdtr(fewest - 1, -abs(shift) / error))
    elif abs(shift) <= ROUNDING_ERROR:
        return None
    else:
        half, p_value = wilson(0, fewest)[1], 2 / comb(sum(counts), counts[0])
    return MeanShift(shift, shift - half, shift + half, min(1.0, p_value))
